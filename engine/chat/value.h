/* Python's values, as far as templates use them. Values are small and copied freely; they point into the arena of their
 * rendering. Only a namespace, a generator and a loop change. */
#ifndef ENGINE_CHAT_VALUE_H
#define ENGINE_CHAT_VALUE_H

#include <stdint.h>

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
#endif
