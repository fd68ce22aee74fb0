/* Names and literals, with attributes, items, calls, filters and tests behind them. */
#include "engine/chat/parser.h"

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
        for (struct node *m = p->macro; m != NULL; m = m->c) {
            m->uses_varargs = m->uses_varargs || slice_is(name, "varargs");
            m->uses_kwargs = m->uses_kwargs || slice_is(name, "kwargs");
            m->uses_caller = m->uses_caller || slice_is(name, "caller");
        }
    }
    p->at++;
    return n;
}

/* Strings beside each other are one. */
static struct node *
parse_literal(struct parser *p)
{
    struct node *n = parse_node(p, NODE_CONST);
    if (n == NULL)
        return NULL;
    n->constant = p->at++->constant;
    while (n->constant.kind == VALUE_TEXT && p->at->type == TOKEN_CONST && p->at->constant.kind == VALUE_TEXT) {
        const struct slice a = n->constant.text, b = p->at++->constant.text;
        char *both = render_memory(p->r, a.len + b.len);
        if (both == NULL)
            return NULL;
        memcpy(both, a.data, a.len);
        memcpy(both + a.len, b.data, b.len);
        n->constant = value_text((struct slice){both, a.len + b.len});
    }
    return n;
}

/* Values to a closing bracket, with commas between and maybe one behind. */
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
        if (kind == NODE_DICT) {
            struct node *pair = parse_node(p, NODE_PAIR);
            if (pair == NULL || !parser_expect_sign(p, SIGN(':')) || (pair->b = parse_expression(p)) == NULL)
                return NULL;
            pair->a = item;
            item = pair;
        }
        node_add(&items, item);
    }
    if (n == NULL || !parser_expect_sign(p, closing))
        return NULL;
    n->list = items.first;
    return n;
}

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
        struct node *n = parse_tuple(p, true, NULL, true);
        return n != NULL && parser_expect_sign(p, SIGN(')')) ? n : NULL;
    }
    parser_fail(p, "an expression is expected");
    return NULL;
}

/* ---- tuples and targets ---- */

static bool
ends_tuple(const struct parser *p, const char *end)
{
    return p->at->type == TOKEN_PRINT_END || p->at->type == TOKEN_BLOCK_END || parser_signs(p, SIGN(')')) ||
           (end != NULL && parser_is(p, end));
}

static struct node *
parse_part(struct parser *p, bool target, bool namespaces, bool conditions)
{
    if (!target)
        return conditions ? parse_expression(p) : parse_unconditional(p);
    struct node *n = parse_primary(p);
    if (n == NULL || !namespaces || n->kind != NODE_NAME || !parser_skip_sign(p, SIGN('.')))
        return n;
    struct node *of = parse_node(p, NODE_NAMESPACE_TARGET);
    if (of == NULL || !parser_expect_name(p, &of->name))
        return NULL;
    of->b = n;
    return of;
}

static struct node *
parse_parts(struct parser *p, bool target, bool namespaces, bool conditions, const char *end, bool brackets)
{
    struct node *n = parse_node(p, NODE_TUPLE), *part;
    struct node_list parts = {0};
    bool commas = false;
    while (n != NULL) {
        if (ends_tuple(p, end))
            break;
        if ((part = parse_part(p, target, namespaces, conditions)) == NULL)
            return NULL;
        node_add(&parts, part);
        if (!parser_skip_sign(p, SIGN(',')))
            break;
        commas = true;
    }
    if (n == NULL || (commas ? NULL : parts.first) != NULL)
        return parts.first;
    if (parts.first == NULL && !brackets) {
        parser_fail(p, "an expression is expected");
        return NULL;
    }
    n->list = parts.first;
    return n;
}

struct node *
parse_tuple(struct parser *p, bool conditions, const char *end, bool brackets)
{
    return parse_parts(p, false, false, conditions, end, brackets);
}

static bool
can_assign(const struct node *n)
{
    bool can = n->kind == NODE_NAME || n->kind == NODE_NAMESPACE_TARGET || n->kind == NODE_TUPLE;
    for (const struct node *part = n->list; part != NULL && can; part = part->next)
        can = can_assign(part);
    return can;
}

struct node *
parse_target(struct parser *p, const char *end, bool namespaces)
{
    struct node *n = parse_parts(p, true, namespaces, false, end, false);
    if (n == NULL || can_assign(n))
        return n;
    parser_fail(p, "only a name can be assigned to");
    return NULL;
}

/* ---- what hangs on a value ---- */

/* a, a:b, a:b:c, with any of them left out. */
static struct node *
parse_index(struct parser *p)
{
    struct node *parts[3] = {NULL};
    int n = 0;
    for (; n < 3; n++) {
        const bool empty =
            parser_signs(p, SIGN(':')) || (n > 0 && (parser_signs(p, SIGN(']')) || parser_signs(p, SIGN(','))));
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
    struct node *n = parse_node(p, NODE_ITEM);
    p->at++;
    if (n == NULL || (n->b = parse_index(p)) == NULL)
        return NULL;
    n->a = of;
    if (parser_signs(p, SIGN(','))) {
        render_fail(p->r, "an item by several indices is not supported");
        return NULL;
    }
    return parser_expect_sign(p, SIGN(']')) ? n : NULL;
}

static struct node *
parse_attribute(struct parser *p, struct node *of)
{
    struct node *n = parse_node(p, NODE_ATTRIBUTE);
    p->at++;
    if (n == NULL)
        return NULL;
    n->a = of;
    if (p->at->type == TOKEN_CONST && p->at->constant.kind == VALUE_INT) {
        n->kind = NODE_ITEM;
        if ((n->b = parse_node(p, NODE_CONST)) != NULL)
            n->b->constant = p->at++->constant;
        return n->b != NULL ? n : NULL;
    }
    return parser_expect_name(p, &n->name) ? n : NULL;
}

bool
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
        if (parser_skip_sign(p, SIGN('*')))
            n->kind = NODE_STAR;
        else if (parser_skip_sign(p, SIGN2('*', '*')))
            n->kind = NODE_STARS;
        else if (p->at->type == TOKEN_NAME && p->at[1].type == TOKEN_SIGN && p->at[1].sign == SIGN('=')) {
            n->name = p->at->text;
            p->at += 2;
        } else if (named)
            return parser_fail(p, "a named argument is expected");
        named = named || n->kind != NODE_ARGUMENT || n->name.len > 0;
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

/* `n`, which hangs on `of`. */
static struct node *
hung_on(struct parser *p, const struct node *of, struct node *n)
{
    return n != NULL && node_deepen(p, n, of) ? n : NULL;
}

static struct node *
parse_postfix(struct parser *p, struct node *n)
{
    while (n != NULL)
        if (parser_signs(p, SIGN('.')))
            n = hung_on(p, n, parse_attribute(p, n));
        else if (parser_signs(p, SIGN('[')))
            n = hung_on(p, n, parse_item(p, n));
        else if (parser_signs(p, SIGN('(')))
            n = hung_on(p, n, parse_call(p, n));
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
        if (of != NULL && !node_deepen(p, n, of))
            return NULL;
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
        if (parser_is(p, "is")) {
            render_fail(p->r, "tests can't be chained with 'is'");
            return NULL;
        }
        if (argument == NULL || (argument->a = parse_postfix(p, parse_primary(p))) == NULL)
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
parse_signed(struct parser *p, bool filters)
{
    struct node *n;
    if (parser_signs(p, SIGN('-')) || parser_signs(p, SIGN('+'))) {
        n = parse_node(p, parser_signs(p, SIGN('-')) ? NODE_NEGATIVE : NODE_POSITIVE);
        p->at++;
        if (n == NULL || !render_enter(p->r) || (n->a = parse_signed(p, false)) == NULL)
            return NULL;
        p->r->depth--;
    } else
        n = parse_primary(p);
    n = parse_postfix(p, n);
    while (n != NULL && filters)
        if (parser_signs(p, SIGN('|')))
            n = parse_filters(p, n, false);
        else if (parser_is(p, "is"))
            n = hung_on(p, n, parse_test(p, n));
        else if (parser_signs(p, SIGN('(')))
            n = hung_on(p, n, parse_call(p, n));
        else
            break;
    return n;
}

struct node *
parse_unary(struct parser *p)
{
    return parse_signed(p, true);
}
