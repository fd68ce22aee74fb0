/* A template as a tree. */
#ifndef ENGINE_CHAT_NODE_H
#define ENGINE_CHAT_NODE_H

#include "engine/chat/render.h"

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
    NODE_STAR,      /* … *a */
    NODE_STARS,     /* … **a */
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
    NODE_PRINT,            /* list */
    NODE_IF,               /* a, body, otherwise; further ones in `list` with a and body */
    NODE_FOR,              /* a in b if c, body, otherwise */
    NODE_SET,              /* a = b */
    NODE_SET_BLOCK,        /* a = body, through the filters b (NULL) */
    NODE_NAMESPACE_TARGET, /* of a set: b.name, b a NODE_NAME */
    NODE_MACRO,            /* name(list of NODE_PARAMETER) body */
    NODE_PARAMETER,        /* name=a (NULL) */
    NODE_CALL_BLOCK,       /* a: a call; list: the block's own parameters */
    NODE_FILTER_BLOCK,     /* body through the filters a */
    NODE_WITH,             /* list of NODE_SET */
    NODE_GENERATION,       /* body */
    NODE_BREAK,
    NODE_CONTINUE
};

/* A sign as one number: its one or two characters. */
#define SIGN(a)     (unsigned)(a)
#define SIGN2(a, b) ((unsigned)(a) << 8 | (unsigned)(b))
#define SIGN_IN     SIGN('i') /* among the signs of NODE_OPERAND */
#define SIGN_NOT_IN SIGN('n')

struct node {
    enum node_kind kind;
    unsigned line, sign;
    bool recursive;                              /* a loop that may call itself */
    bool uses_varargs, uses_kwargs, uses_caller; /* of a macro */
    struct slice name;
    struct value constant;
    struct node *a, *b, *c;
    struct node *list, *body, *otherwise; /* the first of them */
    struct node *next;                    /* in a list */
    unsigned depth;                       /* of operands and what hangs on them, within each other */
    struct name *unset, *unset_otherwise; /* what the scopes of body and otherwise begin without (names.h) */
};

#endif
