/* Expressions, from the loosest to the tightest. */
#include "engine/chat/parser.h"

#define MOST_DEPTH 900 /* a + b + c + … and a.b.c…; calls and brackets have a bound of their own */

bool
parser_fail(struct parser *p, const char *what)
{
    const struct token *t = p->at;
    p->r->line = t->line;
    switch (t->type) {
    case TOKEN_NAME: return render_fail(p->r, "%s, not '%.*s'", what, (int)t->text.len, t->text.data);
    case TOKEN_SIGN:
        return t->sign > 0xff ? render_fail(p->r, "%s, not '%c%c'", what, (int)(t->sign >> 8), (int)(t->sign & 0xff))
                              : render_fail(p->r, "%s, not '%c'", what, (int)t->sign);
    case TOKEN_CONST: return render_fail(p->r, "%s, not a literal", what);
    case TOKEN_BLOCK_END: return render_fail(p->r, "%s, not %%}", what);
    case TOKEN_PRINT_END: return render_fail(p->r, "%s, not }}", what);
    default: return render_fail(p->r, "%s, not the template's end", what);
    }
}

bool
parser_signs(const struct parser *p, unsigned sign)
{
    return p->at->type == TOKEN_SIGN && p->at->sign == sign;
}

bool
parser_skip_sign(struct parser *p, unsigned sign)
{
    const bool is = parser_signs(p, sign);
    p->at += is;
    return is;
}

bool
parser_expect_sign(struct parser *p, unsigned sign)
{
    const char what[] = {'\'', (char)sign, '\'', ' ', 'i', 's', ' ', 'e', 'x', 'p', 'e', 'c', 't', 'e', 'd', '\0'};
    return parser_skip_sign(p, sign) || parser_fail(p, what);
}

bool
parser_expect_name(struct parser *p, struct slice *name)
{
    if (p->at->type != TOKEN_NAME)
        return parser_fail(p, "a name is expected");
    *name = p->at++->text;
    return true;
}

bool
node_deepen(struct parser *p, struct node *n, const struct node *on)
{
    if (on->depth >= n->depth)
        n->depth = on->depth + 1;
    return n->depth < MOST_DEPTH || render_stop(p->r, "an expression has too many parts");
}

/* A node over one or two others; NULL where one of them failed. */
static struct node *
over(struct parser *p, enum node_kind kind, unsigned line, struct node *a, struct node *b)
{
    struct node *n = a == NULL || b == NULL ? NULL : parse_node(p, kind);
    if (n != NULL) {
        n->line = line;
        n->a = a;
        n->b = b;
    }
    return n != NULL && node_deepen(p, n, a) && node_deepen(p, n, b) ? n : NULL;
}

typedef struct node *parse_level(struct parser *);

/* Operands of one level and the signs between them, from the left. */
static struct node *
parse_chain(struct parser *p, const unsigned signs[4], parse_level *operand)
{
    unsigned line = p->at->line;
    struct node *left = operand(p);
    while (left != NULL) {
        unsigned sign = 0;
        for (int i = 0; i < 4; i++)
            if (signs[i] != 0 && parser_signs(p, signs[i]))
                sign = signs[i];
        if (sign == 0)
            return left;
        p->at++;
        left = over(p, NODE_BINARY, line, left, operand(p));
        if (left != NULL)
            left->sign = sign;
        line = p->at->line;
    }
    return NULL;
}

static struct node *
parse_power(struct parser *p)
{
    static const unsigned signs[4] = {SIGN2('*', '*')};
    return parse_chain(p, signs, parse_unary);
}

static struct node *
parse_product(struct parser *p)
{
    static const unsigned signs[4] = {SIGN('*'), SIGN('/'), SIGN2('/', '/'), SIGN('%')};
    return parse_chain(p, signs, parse_power);
}

static struct node *
parse_concat(struct parser *p)
{
    struct node *part = parse_product(p);
    if (part == NULL || !parser_signs(p, SIGN('~')))
        return part;
    struct node *n = parse_node(p, NODE_CONCAT);
    struct node_list parts = {0};
    node_add(&parts, part);
    while (n != NULL && parser_skip_sign(p, SIGN('~'))) {
        if ((part = parse_product(p)) == NULL)
            return NULL;
        node_add(&parts, part);
    }
    if (n != NULL)
        n->list = parts.first;
    return n;
}

static struct node *
parse_sum(struct parser *p)
{
    static const unsigned signs[4] = {SIGN('+'), SIGN('-')};
    return parse_chain(p, signs, parse_concat);
}

/* A comparison's sign, which is skipped; 0: there is none. */
static unsigned
skip_comparison(struct parser *p)
{
    static const unsigned signs[] = {SIGN2('=', '='), SIGN2('!', '='), SIGN2('<', '='),
                                     SIGN2('>', '='), SIGN('<'),       SIGN('>')};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (parser_skip_sign(p, signs[i]))
            return signs[i];
    if (parser_skip(p, "in"))
        return SIGN_IN;
    if (parser_is(p, "not") && p->at[1].type == TOKEN_NAME && slice_is(p->at[1].text, "in")) {
        p->at += 2;
        return SIGN_NOT_IN;
    }
    return 0;
}

static struct node *
parse_comparison(struct parser *p)
{
    const unsigned line = p->at->line;
    struct node *left = parse_sum(p);
    struct node_list operands = {0};
    for (unsigned sign; left != NULL && (sign = skip_comparison(p)) != 0;) {
        struct node *operand = parse_node(p, NODE_OPERAND);
        if (operand == NULL || (operand->a = parse_sum(p)) == NULL)
            return NULL;
        operand->sign = sign;
        node_add(&operands, operand);
    }
    if (left == NULL || operands.first == NULL)
        return left;
    struct node *n = over(p, NODE_COMPARE, line, left, left);
    if (n != NULL)
        n->list = operands.first;
    return n;
}

static struct node *
parse_not(struct parser *p)
{
    const unsigned line = p->at->line;
    if (!parser_skip(p, "not"))
        return parse_comparison(p);
    if (!render_enter(p->r))
        return NULL;
    struct node *of = parse_not(p);
    p->r->depth--;
    return over(p, NODE_NOT, line, of, of);
}

static struct node *
parse_and(struct parser *p)
{
    const unsigned line = p->at->line;
    struct node *left = parse_not(p);
    while (left != NULL && parser_skip(p, "and"))
        left = over(p, NODE_AND, line, left, parse_not(p));
    return left;
}

static struct node *
parse_or(struct parser *p)
{
    const unsigned line = p->at->line;
    struct node *left = parse_and(p);
    while (left != NULL && parser_skip(p, "or"))
        left = over(p, NODE_OR, line, left, parse_and(p));
    return left;
}

struct node *
parse_unconditional(struct parser *p)
{
    return parse_or(p);
}

struct node *
parse_expression(struct parser *p)
{
    if (!render_enter(p->r))
        return NULL;
    unsigned line = p->at->line;
    struct node *value = parse_or(p);
    while (value != NULL && parser_skip(p, "if")) {
        struct node *condition = parse_or(p), *otherwise = NULL;
        if (condition != NULL && parser_skip(p, "else") && (otherwise = parse_expression(p)) == NULL)
            return NULL;
        value = over(p, NODE_CONDITION, line, value, condition);
        if (value != NULL)
            value->c = otherwise;
        line = p->at->line;
    }
    p->r->depth--;
    return value;
}
