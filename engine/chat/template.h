/* A template: its tokens, and the tree that they make. */
#ifndef ENGINE_CHAT_TEMPLATE_H
#define ENGINE_CHAT_TEMPLATE_H

#include "engine/chat/operators.h"

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

/* A node over one or two others; NULL where one of them is. */
struct node *parse_over(struct parser *, enum node_kind, unsigned line, struct node *a, struct node *b);
struct node *parse_primary(struct parser *); /* a name, a literal, a list, a dict, something in brackets */
struct node *parse_value(struct parser *);   /* the same with a sign, attributes, calls, filters, … */
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

#endif
