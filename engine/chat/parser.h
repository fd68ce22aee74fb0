/* Tokens to a tree. Like jinja2, it refuses a template for whatever it does not know, even where nobody would come by. */
#ifndef ENGINE_CHAT_PARSER_H
#define ENGINE_CHAT_PARSER_H

#include "engine/chat/node.h"
#include "engine/chat/token.h"

/* The template's statements, the first one; NULL is an empty template where failed is NULL. The tree lies in the
 * arena of `r` and points into its tokens. */
struct node *parse_template(struct render *, struct slice source);

/* ---- between the parser's files ---- */
struct parser {
    struct render *r;
    const struct token *at;
    struct node *macro; /* the innermost macro or call block; `a` of it leads outwards while it is parsed */
    unsigned loops;     /* around this place, within that macro */
};

struct node *parse_node(struct parser *, enum node_kind); /* a new one, of this line */
/* At the end of a list. */
struct node_list {
    struct node *first, *last;
};
void node_add(struct node_list *, struct node *);
/* Notes that n stands on another node; false where too many stand on one another. */
bool node_deepen(struct parser *, struct node *n, const struct node *on);

bool parser_fail(struct parser *, const char *what); /* "… , not 'x'" */
bool parser_is(const struct parser *, const char *name);
bool parser_signs(const struct parser *, unsigned sign);
bool parser_skip(struct parser *, const char *name);
bool parser_skip_sign(struct parser *, unsigned sign);
bool parser_expect_sign(struct parser *, unsigned sign);
bool parser_expect_name(struct parser *, struct slice *name);

/* All return NULL when they fail. */
struct node *parse_expression(struct parser *);
struct node *parse_unconditional(struct parser *); /* with no "a if b else c", for a `for` has an `if` behind it */
/* A tuple where there are commas. `end`: a name that ends it, or NULL. */
struct node *parse_tuple(struct parser *, bool conditions, const char *end, bool brackets);
/* What may be assigned to; with namespaces for `set`. */
struct node *parse_target(struct parser *, const char *end, bool namespaces);
/* What is not divided by signs: names and literals with what hangs on them, behind a minus maybe. */
struct node *parse_unary(struct parser *);
bool parse_arguments(struct parser *, struct node_list *);
struct node *parse_filters(struct parser *, struct node *of, bool begun);
/* Whether `name` is a filter or test that there is; elsewhere, so that the parser needs no table. */
bool filter_known(struct slice name);
bool test_known(struct slice name);

#endif
