/* Parses expressions: names, literals, attributes, items, calls, filters, tests and operators. */
#include "engine/jinja/template.h"

/* Returns a new node with the children a and b; NULL if one of them is NULL. */
static struct node *
parse_over(struct parser *p, enum node_kind kind, unsigned line, struct node *a, struct node *b)
{
    struct node *n = a == NULL || b == NULL ? NULL : parse_node(p, kind);
    if (n != NULL) {
        n->line = line;
        n->a = a;
        n->b = b;
    }
    return n;
}

/* ---- names and literals ---- */

static struct node *
parse_name(struct parser *p)
{
    const struct slice name = p->at->text;
    struct node *n = parse_node(p, NODE_CONST);
    if (n == NULL)
        return NULL;
    if (slice_is(name, "true") || slice_is(name, "True"))
        n->constant = value_bool(true);
    else if (slice_is(name, "false") || slice_is(name, "False"))
        n->constant = value_bool(false);
    else if (slice_is(name, "none") || slice_is(name, "None"))
        n->constant = value_none();
    else {
        n->kind = NODE_NAME;
        n->name = name;
    }
    if (p->in_macro && (slice_is(name, "varargs") || slice_is(name, "kwargs") || slice_is(name, "caller"))) {
        render_fail(p->r, "a macro's '%.*s' is not supported", (int)name.len, name.data);
        return NULL;
    }
    p->at++;
    return n;
}

/* Adjacent strings are concatenated. */
static struct node *
parse_literal(struct parser *p)
{
    struct node *n = parse_node(p, NODE_CONST);
    struct buffer both = {0};
    if (n == NULL)
        return NULL;
    n->constant = p->at++->constant;
    while (n->constant.kind == VALUE_TEXT && p->at->type == TOKEN_CONST && p->at->constant.kind == VALUE_TEXT) {
        if ((both.len == 0 && !buffer_add(p->r, &both, n->constant.text)) ||
            !buffer_add(p->r, &both, p->at++->constant.text))
            return NULL;
        n->constant = value_text(buffer_text(&both));
    }
    return n;
}

/* Parses values up to a closing bracket, separated by commas; a trailing comma is allowed. */
static struct node *
parse_items(struct parser *p, enum node_kind kind, unsigned closing)
{
    struct node *n = parse_node(p, kind), *item;
    struct node_list items = {0};
    p->at++;
    while (n != NULL && !parser_signs(p, closing)) {
        if (items.first != NULL && !parser_expect_sign(p, SIGN(',')))
            return NULL;
        if (parser_signs(p, closing))
            break;
        if ((item = parse_expression(p)) == NULL)
            return NULL;
        if (kind == NODE_DICT && (!parser_expect_sign(p, SIGN(':')) ||
                                  (item = parse_over(p, NODE_PAIR, item->line, item, parse_expression(p))) == NULL))
            return NULL;
        node_add(&items, item);
    }
    if (n == NULL || !parser_expect_sign(p, closing))
        return NULL;
    n->list = items.first;
    return n;
}

/* Parses a name, a literal, a list, a dict or an expression in brackets. */
static struct node *
parse_primary(struct parser *p)
{
    if (p->at->type == TOKEN_NAME)
        return parse_name(p);
    if (p->at->type == TOKEN_CONST)
        return parse_literal(p);
    if (parser_signs(p, SIGN('[')))
        return parse_items(p, NODE_LIST, SIGN(']'));
    if (parser_signs(p, SIGN('{')))
        return parse_items(p, NODE_DICT, SIGN('}'));
    if (parser_skip_sign(p, SIGN('('))) {
        struct node *n = parse_tuple(p, PART_EXPRESSION, NULL, true);
        return n != NULL && parser_expect_sign(p, SIGN(')')) ? n : NULL;
    }
    parser_fail(p, "an expression is expected");
    return NULL;
}

/* ---- attributes, items, calls, filters, tests ---- */

/* Parses an index or a slice: a, a:b or a:b:c; each part of a slice is optional. */
static struct node *
parse_index(struct parser *p)
{
    struct node *parts[3] = {NULL};
    int n = 0;
    for (; n < 3; n++) {
        const bool empty = parser_signs(p, SIGN(':')) || (n > 0 && parser_signs(p, SIGN(']')));
        if (!empty && (parts[n] = parse_expression(p)) == NULL)
            return NULL;
        if (n == 2 || !parser_skip_sign(p, SIGN(':')))
            break;
    }
    if (n == 0)
        return parts[0];
    struct node *slice = parse_node(p, NODE_SLICE);
    if (slice != NULL) {
        slice->a = parts[0];
        slice->b = parts[1];
        slice->c = parts[2];
    }
    return slice;
}

static struct node *
parse_item(struct parser *p, struct node *of)
{
    const unsigned line = p->at++->line;
    struct node *n = parse_over(p, NODE_ITEM, line, of, parse_index(p));
    return n != NULL && parser_expect_sign(p, SIGN(']')) ? n : NULL;
}

static struct node *
parse_attribute(struct parser *p, struct node *of)
{
    struct node *n = parse_node(p, NODE_ATTRIBUTE);
    p->at++;
    if (n == NULL)
        return NULL;
    n->a = of;
    return parser_expect_name(p, &n->name) ? n : NULL;
}

static bool
parse_arguments(struct parser *p, struct node_list *list)
{
    bool named = false;
    if (!parser_expect_sign(p, SIGN('(')))
        return false;
    while (!parser_signs(p, SIGN(')'))) {
        if (list->first != NULL && !parser_expect_sign(p, SIGN(',')))
            return false;
        if (parser_signs(p, SIGN(')')))
            break;
        struct node *n = parse_node(p, NODE_ARGUMENT);
        if (n == NULL)
            return false;
        if (parser_signs(p, SIGN('*')))
            return render_fail(p->r, "an argument with '*' is not supported");
        if (p->at->type == TOKEN_NAME && p->at[1].type == TOKEN_SIGN && p->at[1].sign == SIGN('=')) {
            n->name = p->at->text;
            p->at += 2;
            named = true;
        } else if (named)
            return parser_fail(p, "a named argument is expected");
        if ((n->a = parse_expression(p)) == NULL)
            return false;
        node_add(list, n);
    }
    p->at++;
    return true;
}

static struct node *
parse_call(struct parser *p, struct node *of)
{
    struct node *n = parse_node(p, NODE_CALL);
    struct node_list arguments = {0};
    if (n == NULL || !parse_arguments(p, &arguments))
        return NULL;
    n->a = of;
    n->list = arguments.first;
    return n;
}

static struct node *parse_test(struct parser *, struct node *of);

/* Parses calls, and either filters and tests (`filters`) or attributes and items. */
static struct node *
parse_suffixes(struct parser *p, struct node *n, bool filters)
{
    while (n != NULL)
        if (parser_signs(p, SIGN('(')))
            n = parse_call(p, n);
        else if (!filters && parser_signs(p, SIGN('.')))
            n = parse_attribute(p, n);
        else if (!filters && parser_signs(p, SIGN('[')))
            n = parse_item(p, n);
        else if (filters && parser_signs(p, SIGN('|')))
            n = parse_filters(p, n, false);
        else if (filters && parser_is(p, "is"))
            n = parse_test(p, n);
        else
            break;
    return n;
}

struct node *
parse_filters(struct parser *p, struct node *of, bool begun)
{
    while (begun || parser_skip_sign(p, SIGN('|'))) {
        struct node *n = parse_node(p, NODE_FILTER);
        struct node_list arguments = {0};
        begun = false;
        if (n == NULL || !parser_expect_name(p, &n->name) ||
            (parser_signs(p, SIGN('(')) && !parse_arguments(p, &arguments)))
            return NULL;
        n->a = of;
        n->list = arguments.first;
        of = n;
    }
    return of;
}

static struct node *
parse_test(struct parser *p, struct node *of)
{
    struct node *n = parse_node(p, NODE_TEST);
    struct node_list arguments = {0};
    p->at++;
    const bool negated = parser_skip(p, "not");
    if (n == NULL || !parser_expect_name(p, &n->name))
        return NULL;
    n->a = of;
    const bool starts = p->at->type == TOKEN_NAME || p->at->type == TOKEN_CONST || parser_signs(p, SIGN('[')) ||
                        parser_signs(p, SIGN('{'));
    if (parser_signs(p, SIGN('('))) {
        if (!parse_arguments(p, &arguments))
            return NULL;
    } else if (starts && !parser_is(p, "else") && !parser_is(p, "or") && !parser_is(p, "and")) {
        struct node *argument = parse_node(p, NODE_ARGUMENT);
        if (argument == NULL || (argument->a = parse_suffixes(p, parse_primary(p), false)) == NULL)
            return NULL;
        node_add(&arguments, argument);
    }
    n->list = arguments.first;
    struct node *not = negated ? parse_node(p, NODE_NOT) : NULL;
    if (not != NULL)
        not ->a = n;
    return negated ? not : n;
}

static struct node *
parse_unary(struct parser *p, bool filters)
{
    struct node *n;
    if (parser_signs(p, SIGN('-'))) {
        n = parse_node(p, NODE_NEGATIVE);
        p->at++;
        if (n == NULL || !render_enter(p->r) || (n->a = parse_unary(p, false)) == NULL)
            return NULL;
        p->r->depth--;
    } else
        n = parse_primary(p);
    n = parse_suffixes(p, n, false);
    return filters ? parse_suffixes(p, n, true) : n;
}

/* Parses a primary expression with its unary operators, attributes, calls, filters and tests. */
static struct node *
parse_value(struct parser *p)
{
    return parse_unary(p, true);
}

/* Expressions, in order of increasing operator precedence. */

typedef struct node *parse_level(struct parser *);

/* Parses the operands and operators of one precedence level; left-associative. */
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

/* Skips a comparison operator and returns it; 0 if there is none. */
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
