/* A rendering under way: its bounds, its memory, the names it knows, and how it fails. */
#ifndef ENGINE_CHAT_RENDER_H
#define ENGINE_CHAT_RENDER_H

#include <stdarg.h>
#include <time.h>

#include "engine/chat/arena.h"
#include "engine/chat/value.h"

/* Two noncharacters, which Unicode keeps out of text that is exchanged: before a control token that a message spells. */
#define MARK_CODES(code) ((code) == 0xfdd0 || (code) == 0xfdd1)
#define MARK             "\xef\xb7\x90\xef\xb7\x91"

struct binding {
    struct slice name;
    struct value value;
    struct binding *next;
};

struct name {
    struct slice name;
    struct name *next;
};

struct scope { /* of a loop's turn, a macro's call, a block; an `if` has none of its own */
    struct scope *outer;
    struct binding *first;
    const struct name *unset; /* names that are its own before they are bound */
};

struct render {
    struct arena arena;
    struct scope *scope;
    const struct dict *given; /* the variables that the caller gave */
    struct tm now;
    unsigned line;  /* of the template, where it is */
    unsigned depth; /* calls within calls */
    unsigned most_depth;
    uint64_t steps; /* what is left of them */
    bool (*cancelled)(void);
    bool guarded;       /* texts may have marks (chat.c), which nothing escapes */
    size_t output;      /* bytes, at most */
    const char *failed; /* why; NULL as long as all is well */
    unsigned failed_line;
    bool stopped; /* by a bound: nothing may catch that */
};

/* Notes why the rendering fails, at the line where it is, and returns false. */
bool render_fail(struct render *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for what is beyond a bound. */
bool render_stop(struct render *, const char *why);
/* So much work was done; false where it was too much. */
bool render_step(struct render *, size_t n);
/* The work of reading a text character by character. */
bool render_read(struct render *, struct slice);
/* One call deeper; false where it was too deep. What entered leaves by r->depth--. */
bool render_enter(struct render *);

/* n zero bytes, or NULL and the rendering has failed. */
void *render_memory(struct render *, size_t n);
bool render_copy(struct render *, const char *bytes, size_t n, struct slice *out);
bool render_print(struct render *, struct slice *out, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A list of n values, all VALUE_MISSING yet. */
struct list *render_list(struct render *, enum list_kind, size_t n);
/* A pair: (a, b). */
bool render_pair(struct render *, struct value a, struct value b, struct value *out);

struct dict *render_dict(struct render *);
/* NULL: there is none. */
struct value *dict_find(struct render *, const struct dict *, struct value key);
struct value *dict_find_name(struct render *, const struct dict *, struct slice name);
bool dict_put(struct render *, struct dict *, struct value key, struct value value);

/* ---- names ---- */
struct scope *render_scope(struct render *, struct scope *outer, const struct name *unset);
/* In the innermost scope. */
bool render_bind(struct render *, struct slice name, struct value);
/* *out is the nearest value of that name in the scopes, or among the caller's variables; NULL: there is none;
 * VALUE_MISSING: not bound yet. False: the search exceeds the bound of steps. */
bool render_find(struct render *, struct slice name, const struct value **out);

#endif
