/* Expressions, from the loosest operator to the tightest. */
#include "engine/chat/template.h"

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
        left = parse_over(p, NODE_BINARY, line, left, operand(p));
        if (left != NULL)
            left->sign = sign;
        line = p->at->line;
    }
    return NULL;
}

static struct node *
parse_product(struct parser *p)
{
    static const unsigned signs[4] = {SIGN('*'), SIGN('/'), SIGN2('/', '/'), SIGN('%')};
    return parse_chain(p, signs, parse_value);
}

static struct node *
parse_concat(struct parser *p)
{
    struct node_list parts = {0};
    struct node *part, *n;
    do {
        if ((part = parse_product(p)) == NULL)
            return NULL;
        node_add(&parts, part);
    } while (parser_skip_sign(p, SIGN('~')));
    if (parts.first == parts.last)
        return part;
    if ((n = parse_node(p, NODE_CONCAT)) != NULL)
        n->list = parts.first;
    return n;
}

static struct node *
parse_sum(struct parser *p)
{
    static const unsigned signs[4] = {SIGN('+'), SIGN('-')};
    return parse_chain(p, signs, parse_concat);
}

/* The sign of a comparison, which is skipped; 0: there is none. */
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
    struct node *n = parse_node(p, NODE_COMPARE);
    if (n != NULL) {
        n->line = line;
        n->a = left;
        n->list = operands.first;
    }
    return n;
}

static struct node *
parse_not(struct parser *p)
{
    struct node *n = parser_is(p, "not") ? parse_node(p, NODE_NOT) : NULL;
    if (n == NULL)
        return p->r->failed != NULL ? NULL : parse_comparison(p);
    p->at++;
    if (!render_enter(p->r))
        return NULL;
    n->a = parse_not(p);
    p->r->depth--;
    return n->a != NULL ? n : NULL;
}

static struct node *
parse_logic(struct parser *p, enum node_kind kind, const char *name, parse_level *operand)
{
    const unsigned line = p->at->line;
    struct node *left = operand(p);
    while (left != NULL && parser_skip(p, name))
        left = parse_over(p, kind, line, left, operand(p));
    return left;
}

static struct node *
parse_and(struct parser *p)
{
    return parse_logic(p, NODE_AND, "and", parse_not);
}

static struct node *
parse_or(struct parser *p)
{
    return parse_logic(p, NODE_OR, "or", parse_and);
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
        value = parse_over(p, NODE_CONDITION, line, value, condition);
        if (value != NULL)
            value->c = otherwise;
        line = p->at->line;
    }
    p->r->depth--;
    return value;
}

/* ---- tuples and targets ---- */

static bool
ends_tuple(const struct parser *p, const char *end)
{
    return p->at->type == TOKEN_PRINT_END || p->at->type == TOKEN_BLOCK_END || parser_signs(p, SIGN(')')) ||
           (end != NULL && parser_is(p, end));
}

static bool
can_assign(const struct node *n)
{
    bool can = n->kind == NODE_NAME || n->kind == NODE_NAMESPACE_TARGET || n->kind == NODE_TUPLE;
    for (const struct node *part = n->list; part != NULL && can; part = part->next)
        can = can_assign(part);
    return can;
}

static struct node *
parse_part(struct parser *p, enum part part)
{
    if (part == PART_EXPRESSION || part == PART_UNCONDITIONAL)
        return part == PART_EXPRESSION ? parse_expression(p) : parse_or(p);
    struct node *n = parse_primary(p);
    if (n != NULL && part == PART_SET_TARGET && n->kind == NODE_NAME && parser_skip_sign(p, SIGN('.'))) {
        struct node *of = n;
        if ((n = parse_node(p, NODE_NAMESPACE_TARGET)) == NULL || !parser_expect_name(p, &n->name))
            return NULL;
        n->b = of;
    }
    if (n != NULL && !can_assign(n)) {
        parser_fail(p, "only a name can be assigned to");
        return NULL;
    }
    return n;
}

struct node *
parse_tuple(struct parser *p, enum part part, const char *end, bool brackets)
{
    struct node *n = parse_node(p, NODE_TUPLE), *one;
    struct node_list parts = {0};
    bool commas = false;
    while (n != NULL && !ends_tuple(p, end)) {
        if ((one = parse_part(p, part)) == NULL)
            return NULL;
        node_add(&parts, one);
        if (!parser_skip_sign(p, SIGN(',')))
            break;
        commas = true;
    }
    if (n == NULL || (!commas && parts.first != NULL))
        return parts.first;
    if (parts.first == NULL && !brackets) {
        parser_fail(p, "an expression is expected");
        return NULL;
    }
    n->list = parts.first;
    return n;
}
