/* Python's values, as far as templates use them. Values are small and copied freely; they point into the arena of their
 * rendering. Only a namespace, a generator and a loop change. */
#ifndef ENGINE_CHAT_RENDER_H
#define ENGINE_CHAT_RENDER_H

#include <stdarg.h>
#include <stdint.h>
#include <time.h>

#include "engine/base/slice.h"
#include "kernels/base/err.h"

enum value_kind {
    VALUE_MISSING, /* no value at all: an argument that was not given */
    VALUE_UNDEFINED,
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_FLOAT,
    VALUE_TEXT,
    VALUE_LIST, /* and its relatives: enum list_kind */
    VALUE_DICT,
    VALUE_NAMESPACE, /* a dict that `set` changes */
    VALUE_MACRO,
    VALUE_METHOD,   /* of a value: "a".upper */
    VALUE_FUNCTION, /* range, raise_exception, … */
    VALUE_LOOP
};

struct list;
struct dict;
struct macro;
struct method;
struct builtin;
struct loop;

struct value {
    enum value_kind kind;
    bool markup; /* of a text: Markup, which `safe` makes; a text that is added to it gets HTML escapes */
    union {
        bool truth;
        int64_t whole;
        double real;
        struct slice text; /* UTF-8; of an undefined value: the message of its use */
        struct list *list;
        struct dict *dict; /* of a namespace, too */
        struct macro *macro;
        struct method *method;
        const struct builtin *function;
        struct loop *loop;
    };
};

enum list_kind { LIST_LIST, LIST_TUPLE, LIST_RANGE, LIST_KEYS, LIST_VALUES, LIST_ITEMS, LIST_GENERATOR };

struct list {
    enum list_kind kind;
    size_t n, room;
    struct value *at;   /* (n) */
    size_t taken;       /* of a generator: how many were read */
    const char *broken; /* of a generator: its failure after the last value; NULL: none */
};

struct entry {
    struct value key, value;
};

struct dict {
    size_t n, room;
    struct entry *at; /* (n) in the order of their arrival */
};

static inline struct value
value_none(void)
{
    return (struct value){.kind = VALUE_NONE};
}

static inline struct value
value_bool(bool truth)
{
    return (struct value){.kind = VALUE_BOOL, .truth = truth};
}

static inline struct value
value_int(int64_t whole)
{
    return (struct value){.kind = VALUE_INT, .whole = whole};
}

static inline struct value
value_float(double real)
{
    return (struct value){.kind = VALUE_FLOAT, .real = real};
}

static inline struct value
value_text(struct slice text)
{
    return (struct value){.kind = VALUE_TEXT, .text = text};
}

static inline struct value
value_words(const char *words) /* which live as long as the value */
{
    return value_text(slice_of(words));
}

/* The same kind of text: Markup stays Markup. */
static inline struct value
value_text_like(struct value like, struct slice text)
{
    return (struct value){.kind = VALUE_TEXT, .markup = like.kind == VALUE_TEXT && like.markup, .text = text};
}

static inline struct value
value_list(struct list *list)
{
    return (struct value){.kind = VALUE_LIST, .list = list};
}

static inline struct value
value_dict(struct dict *dict)
{
    return (struct value){.kind = VALUE_DICT, .dict = dict};
}

static inline bool
value_is_list(struct value v, enum list_kind kind)
{
    return v.kind == VALUE_LIST && v.list->kind == kind;
}

/* A bool is a number, too. */
bool value_is_whole(struct value, int64_t *whole);
bool value_is_number(struct value, double *real);
/* Python's bool(). */
bool value_truth(struct value);
/* Python's name of the type: "str", "dict", "NoneType". */
const char *value_type(struct value);

/* A rendering under way: its bounds, its memory, the text that it writes, the names that it sees, and how it fails. */

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

/* Texts as Python's str has them: counted, cut and searched by characters (code points); a broken byte counts as one. */

/* Bytes of the character that a text (of at least one byte) begins with; U+FFFD in *code where that is none. */
size_t text_character(struct slice, uint32_t *code);
size_t text_length(struct slice); /* characters */
/* Characters in [from, to). */
struct slice text_part(struct slice, size_t from, size_t to);

bool text_is_space(uint32_t code); /* str.isspace() */
enum text_side { TEXT_LEFT = 1, TEXT_RIGHT = 2, TEXT_BOTH = 3 };
/* Without the characters at its ends that are in `what`, or without white space where what.data is NULL. */
struct slice text_strip(struct slice, struct slice what, enum text_side);

/* The first place from byte `from` on; SIZE_MAX: nowhere. */
size_t text_find(struct slice, struct slice what, size_t from);
bool text_begins(struct slice, struct slice with);
bool text_ends(struct slice, struct slice with);
/* The number of n hexadecimal digits that the text begins with; false: it does not. */
bool text_hex(struct slice, size_t n, uint32_t *number);

/* The next line of str.splitlines() from byte *at on, without its end, which is *end bytes long. False: there is none. */
bool text_line(struct slice, size_t *at, struct slice *line, size_t *end);

/* Upper and lower case beyond ASCII, too. A character that becomes several, or that depends on its neighbours, is refused. */
enum text_case { CASE_UPPER, CASE_LOWER, CASE_TITLE, CASE_CAPITAL, CASE_WORDS /* jinja2's title */ };
bool text_to_case(struct render *, struct slice, enum text_case, struct slice *out);

/* Values as text: Python's str() and repr(), json.dumps() and json.loads(). */

/* Python's str() of a value. Fails for a kind whose text would contain an address. */
bool value_write(struct render *, struct buffer *, struct value);
/* str() as a text; Markup stays Markup, as jinja2's soft_str() has it. */
bool value_to_text(struct render *, struct value, struct value *out);
/* <, >, &, " and ' as HTML's; Markup stays as it is. */
bool value_escape(struct render *, struct value, struct value *out);

struct json_style {
    bool ascii, sorted;
    struct slice indent, item, key; /* indent.data NULL: all in one line */
};
bool value_write_json(struct render *, struct buffer *, struct value, const struct json_style *);

/* JSON to values. Unlike cJSON it keeps 1 and 1.0 apart, as Python does, and all digits of whole numbers. Where the text
 * is not JSON the rendering fails; the message has the byte. */
bool value_read_json(struct render *, struct slice text, struct value *);

/* Python's operations on values: iteration, comparison, arithmetic, a.b, a[b] and a[b:c]. */

/* An operator as one number: its one or two characters. */
#define SIGN(a)     (unsigned)(a)
#define SIGN2(a, b) ((unsigned)(a) << 8 | (unsigned)(b))
#define SIGN_IN     SIGN('i')
#define SIGN_NOT_IN SIGN('n')

/* ---- iteration: lists by values, texts by characters, dicts by keys ---- */
struct walk {
    struct value whole;
    size_t at; /* values, or bytes of a text */
};
/* Python's len(); false where the value has none. */
bool value_length(struct value, size_t *n);
bool walk_begin(struct render *, struct value, struct walk *);
/* False: there is no further value, or the rendering has failed. */
bool walk_next(struct render *, struct walk *, struct value *);
/* Python's list(): the values that are left, in a list of their own. NULL: failed. */
struct list *walk_list(struct render *, struct value, enum list_kind);
/* A generator is filled at once, but fails, as in Python, only where its reader reaches the place: takes the failure off
 * the rendering, unless it is a bound's. */
bool generator_put_off(struct render *, struct list *generator);

/* ---- comparison ---- */
bool values_equal(struct render *, struct value, struct value);
/* -1, 0, 1 in *order, and 2 where a NaN has no order. Fails for kinds without an order; `sign` is for the message. */
bool values_order(struct render *, struct value, struct value, const char *sign, int *order);
/* Whether `a sign b` is true, with a sign of comparison. */
bool values_compare(struct render *, unsigned sign, struct value a, struct value b, bool *out);
bool value_contains(struct render *, struct value whole, struct value part, bool *contains);
/* The same; fails where it may not. */
bool value_check_key(struct render *, struct value);

/* ---- arithmetic ---- */
bool operate(struct render *, unsigned sign, struct value, struct value, struct value *);
bool negate(struct render *, struct value, struct value *);

/* ---- parts of values ---- */
/* a.name and a[b] as jinja2 has them: the former looks for methods first, the latter for items. */
bool attribute_of(struct render *, struct value, struct slice name, struct value *);
bool item_of(struct render *, struct value, struct value index, struct value *);
/* a[b:c:d]; VALUE_NONE for a part that is left out. */
bool slice_of_value(struct render *, struct value, const struct value parts[3], struct value *);
/* item.a.b.0, as filters take an attribute: a text with dots, or a number. VALUE_NONE: the item itself. `otherwise`, if
 * it is given, stands for an undefined part. */
bool attribute_path(struct render *, struct value item, struct value path, struct value otherwise, struct value *out);
bool value_undefined(struct render *, struct value *, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
