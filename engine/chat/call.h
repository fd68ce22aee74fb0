/* What can be called, and how: macros, methods of values, functions, filters and tests. */
#ifndef ENGINE_CHAT_CALL_H
#define ENGINE_CHAT_CALL_H

#include "engine/chat/node.h"

struct keyword {
    struct slice name;
    struct value value;
};

struct arguments {
    size_t n, n_keywords;
    struct value *at;         /* (n) by position */
    struct keyword *keywords; /* (n_keywords) */
};

#define MOST_PARAMETERS 5

struct call { /* of a builtin: what it gets */
    struct render *r;
    struct value self; /* what the filter, test or method is of */
    struct arguments given;
    struct value a[MOST_PARAMETERS]; /* by parameter; VALUE_MISSING where none was given */
};

struct builtin {
    const char *name;
    bool (*function)(struct call *, struct value *out);
    size_t required;                         /* so many of the parameters */
    const char *parameters[MOST_PARAMETERS]; /* "-x": by position alone */
    bool any;                                /* it looks at `given` itself, and takes what it likes */
};

struct macro {
    const struct node *node; /* NODE_MACRO, or a block that is called like one */
    struct slice name;
    struct scope *scope; /* where it was written */
};

struct method {
    const struct builtin *builtin;
    struct value self;
};

/* A row of a table that ends with a NULL name; NULL: it isn't there. */
const struct builtin *builtin_find(const struct builtin *, struct slice name);
/* Arguments into call->a; false says what doesn't fit. `what` is for that line: "the filter". */
bool builtin_call(struct render *, const struct builtin *, const char *what, struct value self,
                  const struct arguments *, struct value *out);

/* Calls whatever it is. */
bool value_call(struct render *, struct value, const struct arguments *, struct value *out);
bool macro_call(struct render *, const struct macro *, const struct arguments *, struct value *out);
bool filter_call(struct render *, struct slice name, struct value self, const struct arguments *, struct value *out);
bool test_call(struct render *, struct slice name, struct value self, const struct arguments *, bool *out);

/* ---- what builtins say of their arguments ---- */
/* A whole number; where it wasn't given, what is in *whole already. */
bool call_whole(struct call *, size_t i, int64_t *whole);
/* A text; *text stays where it was not given, or is None. */
bool call_text(struct call *, size_t i, struct slice *text);
bool call_truth(const struct call *, size_t i); /* not given: false */
/* "… of an undefined value": what is said of that one */
bool call_undefined(struct call *, struct value);

#endif
