/* A template: its tokens, and the tree that they make. */
#ifndef ENGINE_CHAT_TEMPLATE_H
#define ENGINE_CHAT_TEMPLATE_H

#include "engine/chat/render.h"

/* ---- tokens: data outside of {{ }} and {% %}; names, literals and signs inside ---- */
enum token_type {
    TOKEN_END,
    TOKEN_DATA,
    TOKEN_PRINT_BEGIN, /* {{ */
    TOKEN_PRINT_END,
    TOKEN_BLOCK_BEGIN, /* {% */
    TOKEN_BLOCK_END,
    TOKEN_NAME,
    TOKEN_CONST, /* a string or a number */
    TOKEN_SIGN
};

struct token {
    enum token_type type;
    unsigned line;
    unsigned sign;
    struct slice text; /* as it is in the template; newlines are \n */
    struct value constant;
};

struct tokens {
    size_t n, room;
    struct token *at; /* (n), the last one a TOKEN_END */
};

bool tokens_read(struct render *, struct slice source, struct tokens *);

/* ---- the tree ---- */
enum node_kind {
    /* expressions */
    NODE_CONST,     /* constant */
    NODE_NAME,      /* name */
    NODE_ATTRIBUTE, /* a.name */
    NODE_ITEM,      /* a[b] */
    NODE_SLICE,     /* b above: [a:b:c], each may be NULL */
    NODE_CALL,      /* a(list) */
    NODE_FILTER,    /* a|name(list); a NULL: of a block's text */
    NODE_TEST,      /* a is name(list) */
    NODE_ARGUMENT,  /* in lists of arguments: a, or name=a */
    NODE_NOT,
    NODE_NEGATIVE,
    NODE_POSITIVE,
    NODE_AND,
    NODE_OR,
    NODE_BINARY,    /* a sign b */
    NODE_COMPARE,   /* a, then a list of NODE_OPERAND */
    NODE_OPERAND,   /* sign a */
    NODE_CONCAT,    /* list, by ~ */
    NODE_CONDITION, /* a if b else c (NULL) */
    NODE_LIST,      /* list */
    NODE_TUPLE,
    NODE_DICT, /* a list of NODE_PAIR */
    NODE_PAIR, /* a: b */
    /* statements */
    NODE_DATA,             /* constant */
    NODE_PRINT,            /* a */
    NODE_IF,               /* a, body, otherwise; further ones in `list` with a and body */
    NODE_FOR,              /* a in b if c, body, otherwise */
    NODE_SET,              /* a = b */
    NODE_SET_BLOCK,        /* a = body, through the filters b (NULL) */
    NODE_NAMESPACE_TARGET, /* of a set: b.name, b a NODE_NAME */
    NODE_MACRO,            /* name(list of NODE_PARAMETER) body */
    NODE_PARAMETER,        /* name=a (NULL) */
    NODE_FILTER_BLOCK,     /* body through the filters b (NULL: none) */
    NODE_BREAK,
    NODE_CONTINUE
};

struct node {
    enum node_kind kind;
    unsigned line, sign;
    struct slice name;
    struct value constant;
    struct node *a, *b, *c;
    struct node *list, *body, *otherwise; /* the first of them */
    struct node *next;                    /* in a list */
    struct name *unset, *unset_otherwise; /* the names that the scopes of body and otherwise begin without */
};

/* The first of the template's statements; NULL is an empty template where failed is NULL. The tree is in the arena of
 * `r` and points into its tokens. */
struct node *parse_template(struct render *, struct slice source);

/* Fills `unset` of every node that has a scope; *root gets the template's own. Jinja decides where a name lives before
 * anything runs: a name that a scope sets, and that neither it nor one around it read before, belongs to the scope from
 * its beginning, and is undefined until it is set, even where the caller gave a variable of that name. */
bool names_settle(struct render *, struct node *first, struct name **root);

/* ---- between the parser's files; all that return a node return NULL when they fail ---- */
struct parser {
    struct render *r;
    const struct token *at;
    bool in_macro;
    unsigned loops; /* around this place, within that macro */
};

struct node_list {
    struct node *first, *last;
};

struct node *parse_node(struct parser *, enum node_kind); /* a new one, of this line */
void node_add(struct node_list *, struct node *);
bool parser_fail(struct parser *, const char *what); /* "… , not 'x'" */
bool parser_is(const struct parser *, const char *name);
bool parser_signs(const struct parser *, unsigned sign);
bool parser_skip(struct parser *, const char *name);
bool parser_skip_sign(struct parser *, unsigned sign);
bool parser_expect_sign(struct parser *, unsigned sign);
bool parser_expect_name(struct parser *, struct slice *name);

struct node *parse_expression(struct parser *);
/* Values with commas between them are a tuple. A value is assigned to a target. */
enum part {
    PART_EXPRESSION,
    PART_UNCONDITIONAL /* no `a if b` */,
    PART_TARGET,
    PART_SET_TARGET /* or a namespace's */
};
/* `end`: a name that ends the tuple, or NULL. In brackets it may be empty. */
struct node *parse_tuple(struct parser *, enum part, const char *end, bool brackets);
/* A chain of filters over `of`; NULL: over a block's text. */
struct node *parse_filters(struct parser *, struct node *of, bool begun);

/* Calls of macros, methods of values, functions, filters and tests. */

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

/* Walking the tree: expressions to values, statements to text. */

/* The value of an expression. */
bool evaluate(struct render *, const struct node *, struct value *);
/* A chain of filters over a block's text. */
bool evaluate_filters(struct render *, const struct node *, struct value text, struct value *);

/* How statements end: at their end, at a break, at a continue, in a failure. */
enum ending { ENDS_WELL, ENDS_LOOP, ENDS_TURN, FAILS };
/* Executes statements; they add their text to `out`. */
enum ending execute(struct render *, const struct node *first, struct buffer *out);

/* An attribute of `loop`; *known is false for a name that it does not have. */
bool loop_attribute(struct render *, struct loop *, struct slice name, struct value *, bool *known);

#endif
