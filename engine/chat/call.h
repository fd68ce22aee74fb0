/* Calls of macros, methods of values, functions, filters and tests. */
#ifndef ENGINE_CHAT_CALL_H
#define ENGINE_CHAT_CALL_H

#include "engine/chat/template.h"

struct keyword {
    struct slice name;
    struct value value;
};

struct arguments {
    size_t n, n_keywords;
    struct value *at;         /* (n) by position */
    struct keyword *keywords; /* (n_keywords) */
};

#define MOST_PARAMETERS 4

struct call { /* a builtin is called with this */
    struct render *r;
    int which;         /* of the builtin */
    struct value self; /* the value that the filter, test or method is of */
    struct arguments given;
    struct value a[MOST_PARAMETERS]; /* by parameter; VALUE_MISSING where none was given */
};

struct builtin {
    const char *name;
    bool (*function)(struct call *, struct value *out);
    int which; /* tells apart builtins that share a function */
    size_t required;
    const char *parameters[MOST_PARAMETERS]; /* "-x": by position alone; "*": the function reads `given` */
};

struct macro {
    const struct node *node;
    struct scope *scope; /* where it was written */
};

struct method {
    const struct builtin *builtin;
    struct value self;
};

/* Tables, the last row without a name. */
extern const struct builtin global_functions[]; /* range, dict, namespace, raise_exception, strftime_now */
extern const struct builtin method_filters[], value_filters[], list_filters[];

/* A row of a table; NULL: it has none of that name. */
const struct builtin *builtin_find(const struct builtin *, struct slice name);
/* The method of a value; NULL: it has none of that name. *refused: Python has one that is not supported here. */
const struct builtin *method_find(struct value, struct slice name, bool *refused);

/* Calls a macro, a method or a function. */
bool value_call(struct render *, struct value, const struct arguments *, struct value *out);
bool filter_call(struct render *, struct slice name, struct value self, const struct arguments *, struct value *out);
bool test_call(struct render *, struct slice name, struct value self, const struct arguments *, bool *out);

/* ---- arguments of builtins ---- */
/* A whole number; *whole stays where it was not given. */
bool call_whole(struct call *, size_t i, int64_t *whole);
/* A text; *text stays where it was not given, or is None. */
bool call_text(struct call *, size_t i, struct slice *text);
bool call_truth(const struct call *, size_t i); /* not given: false */
/* Fails: "a int can't be `what`", or as an undefined value fails. */
bool call_unfit(struct call *, const char *what);

#endif
