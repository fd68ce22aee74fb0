/* The internal interfaces of the template engine: tokens, the syntax tree, the parser, calls of builtins, and
 * evaluation. */
#ifndef ENGINE_JINJA_TEMPLATE_H
#define ENGINE_JINJA_TEMPLATE_H

#include "engine/jinja/render.h"

/* ---- tokens: data outside {{ }} and {% %}; names, literals and operators inside ---- */
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
    struct slice text; /* the template's text; newlines are \n */
    struct value constant;
};

struct tokens {
    size_t n, room;
    struct token *at; /* (n), the last is TOKEN_END */
};

bool tokens_read(struct render *, struct slice source, struct tokens *);

/* ---- the tree ---- */
enum node_kind {
    /* expressions */
    NODE_CONST,     /* constant */
    NODE_NAME,      /* name */
    NODE_ATTRIBUTE, /* a.name */
    NODE_ITEM,      /* a[b] */
    NODE_SLICE,     /* the b of a NODE_ITEM: [a:b:c], each may be NULL */
    NODE_CALL,      /* a(list) */
    NODE_FILTER,    /* a|name(list); a is NULL for a block's text */
    NODE_TEST,      /* a is name(list) */
    NODE_ARGUMENT,  /* in an argument list: a, or name=a */
    NODE_NOT,
    NODE_NEGATIVE,
    NODE_AND,
    NODE_OR,
    NODE_BINARY,    /* a sign b */
    NODE_COMPARE,   /* a, then a list of NODE_OPERAND */
    NODE_OPERAND,   /* sign a */
    NODE_CONCAT,    /* list, joined by ~ */
    NODE_CONDITION, /* a if b else c; c may be NULL */
    NODE_LIST,      /* list */
    NODE_TUPLE,
    NODE_DICT, /* a list of NODE_PAIR */
    NODE_PAIR, /* a: b */
    /* statements */
    NODE_DATA,             /* constant */
    NODE_PRINT,            /* a */
    NODE_IF,               /* a, body, otherwise; each elif is a node in `list` with a and body */
    NODE_FOR,              /* a in b if c, body, otherwise */
    NODE_SET,              /* a = b */
    NODE_SET_BLOCK,        /* a = body, through the filters b, which may be NULL */
    NODE_NAMESPACE_TARGET, /* target of a set: b.name, where b is a NODE_NAME */
    NODE_MACRO,            /* name(list of NODE_PARAMETER) body */
    NODE_PARAMETER,        /* name=a; a may be NULL */
    NODE_FILTER_BLOCK,     /* body through the filters b, which may be NULL */
    NODE_BREAK,
    NODE_CONTINUE
};

struct node {
    enum node_kind kind;
    unsigned line, sign;
    struct slice name;
    struct value constant;
    struct node *a, *b, *c;
    struct node *list, *body, *otherwise; /* first node of each list */
    struct node *next;                    /* next node of the list */
};

/* Parses a template and returns its first statement; NULL for an empty template, or on failure, which sets r->failed.
 * The tree is in the arena of `r` and points into its tokens. */
struct node *parse_template(struct render *, struct slice source);

/* ---- shared by the parser's files; functions that return a node return NULL on failure ---- */
struct parser {
    struct render *r;
    const struct token *at;
    bool in_macro;
    unsigned loops; /* number of enclosing loops in the same macro */
};

struct node_list {
    struct node *first, *last;
};

struct node *parse_node(struct parser *, enum node_kind); /* returns a new node with the current line */
void node_add(struct node_list *, struct node *);
bool parser_fail(struct parser *, const char *what); /* appends ", not 'x'" with the current token */
bool parser_is(const struct parser *, const char *name);
bool parser_signs(const struct parser *, unsigned sign);
bool parser_skip(struct parser *, const char *name);
bool parser_skip_sign(struct parser *, unsigned sign);
bool parser_expect_sign(struct parser *, unsigned sign);
bool parser_expect_name(struct parser *, struct slice *name);

struct node *parse_expression(struct parser *);
/* What parse_tuple() accepts between commas. */
enum part {
    PART_EXPRESSION,
    PART_UNCONDITIONAL /* no `a if b` */,
    PART_TARGET,
    PART_SET_TARGET /* also an attribute of a namespace */
};
/* Parses an expression, or a tuple if commas follow. `end` is a name that ends the tuple, or NULL. In brackets the
 * tuple may be empty. */
struct node *parse_tuple(struct parser *, enum part, const char *end, bool brackets);
/* Parses a chain of filters applied to `of`; if that is NULL, to a block's text. */
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

struct call { /* the arguments of a builtin */
    struct render *r;
    int which;         /* the builtin's `which` */
    struct value self; /* the value to which the filter, test or method is applied */
    struct arguments given;
    struct value a[MOST_PARAMETERS]; /* by parameter; VALUE_MISSING if not passed */
};

struct builtin {
    const char *name;
    bool (*function)(struct call *, struct value *out);
    int which; /* distinguishes builtins that share a function */
    size_t required;
    const char *parameters[MOST_PARAMETERS]; /* "-x": positional only; "*": the function reads `given` */
};

struct macro {
    const struct node *node;
    struct scope *scope; /* the scope of its definition */
};

struct method {
    const struct builtin *builtin;
    struct value self;
};

/* Tables of builtins; the name of the last row is NULL. */
extern const struct builtin global_functions[]; /* range, dict, namespace, raise_exception, strftime_now */
extern const struct builtin method_filters[], value_filters[], list_filters[];

/* Returns the table's row of that name; NULL if there is none. */
const struct builtin *builtin_find(const struct builtin *, struct slice name);
/* Returns a value's method; NULL if there is none of that name, or if it is not supported. */
const struct builtin *method_find(struct value, struct slice name);

/* Calls a macro, a method or a function. */
bool value_call(struct render *, struct value, const struct arguments *, struct value *out);
bool filter_call(struct render *, struct slice name, struct value self, const struct arguments *, struct value *out);
bool test_call(struct render *, struct slice name, struct value self, const struct arguments *, bool *out);

/* ---- arguments of builtins ---- */
/* Reads argument i as an integer; *whole is unchanged if it was not passed. */
bool call_whole(struct call *, size_t i, int64_t *whole);
/* Reads argument i as a text; *text is unchanged if it was not passed or is None. */
bool call_text(struct call *, size_t i, struct slice *text);
/* Fails with "a int can't be `what`"; for an undefined value, with its own message. */
bool call_unfit(struct call *, const char *what);

/* Evaluation of expressions and execution of statements. */

/* Evaluates an expression. */
bool evaluate(struct render *, const struct node *, struct value *);
/* Evaluates a filter; if `text` is not NULL, the first filter of its chain is applied to that text of a block. */
bool evaluate_filter(struct render *, const struct node *, const struct value *text, struct value *);

/* How statements end: normally, by a break, by a continue, by an error. */
enum ending { ENDS_NORMALLY, ENDS_LOOP, ENDS_PASS, FAILS };
/* Executes statements and appends their text to `out`. */
enum ending execute(struct render *, const struct node *first, struct buffer *out);

/* Reads an attribute of `loop`; *known is false if it does not have the attribute. */
bool loop_attribute(struct render *, struct loop *, struct slice name, struct value *, bool *known);

#endif
