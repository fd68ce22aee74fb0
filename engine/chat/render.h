/* A rendering under way: its bounds, its memory, the text that it writes, the names that it sees, and how it fails. */
#ifndef ENGINE_CHAT_RENDER_H
#define ENGINE_CHAT_RENDER_H

#include <stdarg.h>
#include <time.h>

#include "engine/chat/value.h"

/* Two noncharacters, which Unicode keeps out of exchanged text: they precede a control token that a message spells. */
#define MARK_CODES(code) ((code) == 0xfdd0 || (code) == 0xfdd1)
#define MARK             "\xef\xb7\x90\xef\xb7\x91"

/* Memory that is freed all at once, so that values may share their parts. */
struct arena { /* begins as {.most = bytes} */
    struct arena_chunk *chunks;
    size_t used, most; /* bytes */
};
void arena_free(struct arena *);

struct binding {
    struct slice name;
    struct value value;
    struct binding *next;
};

struct name {
    struct slice name;
    struct name *next;
};

struct scope { /* of an iteration, a macro's call, a block; an `if` has none of its own */
    struct scope *outer;
    struct binding *first;
    const struct name *unset; /* names that belong to it before they are bound */
};

struct render {
    struct arena arena;
    struct scope *scope;
    const struct dict *given; /* the caller's variables */
    struct tm now;
    unsigned line;  /* of the template, where it is */
    unsigned depth; /* calls within calls */
    unsigned most_depth;
    uint64_t steps; /* that are left */
    bool (*cancelled)(void);
    bool guarded;       /* texts may have marks (chat.c), which nothing escapes */
    size_t output;      /* bytes, at most */
    const char *failed; /* why; NULL while it has not failed */
    unsigned failed_line;
    bool stopped; /* by a bound, which nothing may catch */
};

/* Notes why the rendering fails, at the current line, and returns false. */
bool render_fail(struct render *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Fails because an undefined value is used; the value has the words. */
bool render_fail_undefined(struct render *, struct value);
/* Fails because a bound is exceeded. */
bool render_stop(struct render *, const char *why);
/* Charges n steps; false where too few are left. */
bool render_step(struct render *, size_t n);
/* Charges the reading of a text character by character. */
bool render_read(struct render *, struct slice);
/* Enters a nested call; false where the nesting is too deep. The caller leaves it by r->depth--. */
bool render_enter(struct render *);

/* n zero bytes, or NULL and the rendering has failed. */
void *render_memory(struct render *, size_t n);
/* The n elements of `size` bytes at `at`, with room for one more; NULL and the rendering has failed. */
void *render_grow(struct render *, void *at, size_t n, size_t *room, size_t size);
bool render_copy(struct render *, const char *bytes, size_t n, struct slice *out);

/* A list of n values, all VALUE_MISSING yet. */
struct list *render_list(struct render *, enum list_kind, size_t n);
bool list_add(struct render *, struct list *, struct value);
void list_reverse(struct list *);
/* A tuple (a, b). */
bool render_pair(struct render *, struct value a, struct value b, struct value *out);
struct dict *render_dict(struct render *);
/* NULL: the dict has no such key, or the rendering has failed. */
struct value *dict_find(struct render *, const struct dict *, struct value key);
struct value *dict_find_name(struct render *, const struct dict *, struct slice name);
bool dict_put(struct render *, struct dict *, struct value key, struct value value);

/* ---- text that grows ---- */
struct buffer { /* begins as {0} */
    char *at;
    size_t len, room;
};
bool buffer_add(struct render *, struct buffer *, struct slice);
bool buffer_add_words(struct render *, struct buffer *, const char *);
bool buffer_add_code(struct render *, struct buffer *, uint32_t code); /* a code point */
bool buffer_print(struct render *, struct buffer *, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Adds the text `times` times. */
bool buffer_fill(struct render *, struct buffer *, struct slice, size_t times);
static inline struct slice
buffer_text(const struct buffer *b)
{
    return (struct slice){b->len == 0 ? "" : b->at, b->len};
}

/* ---- names ---- */
struct scope *render_scope(struct render *, struct scope *outer, const struct name *unset);
/* Binds a name in the innermost scope. */
bool render_bind(struct render *, struct slice name, struct value);
/* *out is the nearest value of that name in the scopes, or among the caller's variables; NULL: there is none;
 * VALUE_MISSING: not bound yet. False: the search exceeds the bound of steps. */
bool render_find(struct render *, struct slice name, const struct value **out);

#endif
