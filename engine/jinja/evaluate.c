/* Evaluates expressions. */
#include "engine/jinja/template.h"

static bool
evaluate_name(struct render *r, const struct node *n, struct value *out)
{
    const struct value *v;
    if (!render_find(r, n->name, &v))
        return false;
    const struct builtin *f = v == NULL ? builtin_find(global_functions, n->name) : NULL;
    if (v == NULL && f == NULL)
        return value_undefined(r, out, "'%.*s' is undefined", (int)(n->name.len < 80 ? n->name.len : 80), n->name.data);
    *out = v != NULL ? *v : (struct value){.kind = VALUE_FUNCTION, .function = f};
    return true;
}

static bool
evaluate_all(struct render *r, const struct node *first, enum list_kind kind, struct value *out)
{
    struct list *list = render_list(r, kind, 0);
    struct value v;
    for (const struct node *i = first; i != NULL && list != NULL; i = i->next)
        if (!evaluate(r, i, &v) || !list_add(r, list, v))
            return false;
    *out = value_list(list);
    return list != NULL;
}

static bool
evaluate_dict(struct render *r, const struct node *n, struct value *out)
{
    struct dict *dict = render_dict(r);
    for (const struct node *pair = n->list; pair != NULL && dict != NULL; pair = pair->next) {
        struct value key, value;
        if (!evaluate(r, pair->a, &key) || !evaluate(r, pair->b, &value) || !dict_put(r, dict, key, value))
            return false;
    }
    *out = value_dict(dict);
    return dict != NULL;
}

static bool
evaluate_concat(struct render *r, const struct node *n, struct value *out)
{
    struct buffer b = {0};
    struct value part;
    for (const struct node *i = n->list; i != NULL; i = i->next)
        if (!evaluate(r, i, &part) || !value_write(r, &b, part))
            return false;
    *out = value_text(buffer_text(&b));
    return true;
}

/* a < b < c: evaluates each operand once and stops at the first comparison that is false. */
static bool
evaluate_compare(struct render *r, const struct node *n, struct value *out)
{
    struct value left, right;
    bool is = true;
    if (!evaluate(r, n->a, &left))
        return false;
    for (const struct node *o = n->list; o != NULL && is; o = o->next) {
        if (!evaluate(r, o->a, &right))
            return false;
        r->line = n->line;
        if (!values_compare(r, o->sign, left, right, &is))
            return false;
        left = right;
    }
    *out = value_bool(is);
    return true;
}

static bool
evaluate_item(struct render *r, const struct node *n, struct value *out)
{
    struct value of, index, parts[3];
    if (!evaluate(r, n->a, &of))
        return false;
    if (n->b->kind != NODE_SLICE)
        return evaluate(r, n->b, &index) && item_of(r, of, index, out);
    const struct node *at[3] = {n->b->a, n->b->b, n->b->c};
    for (int i = 0; i < 3; i++) {
        parts[i] = value_none();
        if (at[i] != NULL && !evaluate(r, at[i], &parts[i]))
            return false;
    }
    return slice_of_value(r, of, parts, out);
}

/* Evaluates the arguments of a call; they are stored in the rendering's arena. */
static bool
evaluate_arguments(struct render *r, const struct node *first, struct arguments *a)
{
    size_t n = 0, named = 0;
    for (const struct node *i = first; i != NULL; i = i->next)
        *(i->name.len > 0 ? &named : &n) += 1;
    *a = (struct arguments){.at = render_memory(r, n * sizeof *a->at),
                            .keywords = render_memory(r, named * sizeof *a->keywords)};
    if (a->at == NULL || a->keywords == NULL)
        return false;
    for (const struct node *i = first; i != NULL; i = i->next) {
        struct value v;
        if (!evaluate(r, i->a, &v) || !render_step(r, i->name.len > 0 ? a->n_keywords / 8 * (1 + i->name.len / 64) : 0))
            return false;
        for (size_t k = 0; i->name.len > 0 && k < a->n_keywords; k++)
            if (slice_compare(a->keywords[k].name, i->name) == 0)
                return render_fail(r, "'%.*s' is given twice", (int)i->name.len, i->name.data);
        if (i->name.len > 0)
            a->keywords[a->n_keywords++] = (struct keyword){i->name, v};
        else
            a->at[a->n++] = v;
    }
    return true;
}

static bool
evaluate_call(struct render *r, const struct node *n, struct value *out)
{
    struct value callee;
    struct arguments arguments;
    if (!evaluate(r, n->a, &callee) || !evaluate_arguments(r, n->list, &arguments))
        return false;
    r->line = n->line;
    return value_call(r, callee, &arguments, out);
}

bool
evaluate_filter(struct render *r, const struct node *n, const struct value *text, struct value *out)
{
    struct value self;
    struct arguments arguments;
    if (n->a == NULL)
        self = *text;
    else if (n->a->kind == NODE_FILTER && text != NULL) {
        if (!evaluate_filter(r, n->a, text, &self))
            return false;
    } else if (!evaluate(r, n->a, &self))
        return false;
    if (!evaluate_arguments(r, n->list, &arguments))
        return false;
    r->line = n->line;
    return filter_call(r, n->name, self, &arguments, out);
}

static bool
evaluate_test(struct render *r, const struct node *n, struct value *out)
{
    struct value self;
    struct arguments arguments;
    bool is;
    if (!evaluate(r, n->a, &self) || !evaluate_arguments(r, n->list, &arguments))
        return false;
    r->line = n->line;
    if (!test_call(r, n->name, self, &arguments, &is))
        return false;
    *out = value_bool(is);
    return true;
}

static bool
evaluate_logic(struct render *r, const struct node *n, struct value *out)
{
    if (n->kind == NODE_CONDITION) {
        struct value condition;
        if (!evaluate(r, n->b, &condition))
            return false;
        if (value_truth(condition))
            return evaluate(r, n->a, out);
        return n->c != NULL ? evaluate(r, n->c, out)
                            : value_undefined(r, out, "an 'if' in an expression was not true, and has no 'else'");
    }
    if (!evaluate(r, n->a, out))
        return false;
    if (n->kind == NODE_NOT) {
        *out = value_bool(!value_truth(*out));
        return true;
    }
    return value_truth(*out) == (n->kind == NODE_OR) || evaluate(r, n->b, out);
}

static bool
evaluate_node(struct render *r, const struct node *n, struct value *out)
{
    struct value a, b;
    switch (n->kind) {
    case NODE_CONST: *out = n->constant; return true;
    case NODE_NAME: return evaluate_name(r, n, out);
    case NODE_ATTRIBUTE: return evaluate(r, n->a, &a) && attribute_of(r, a, n->name, out);
    case NODE_ITEM: return evaluate_item(r, n, out);
    case NODE_CALL: return evaluate_call(r, n, out);
    case NODE_FILTER: return evaluate_filter(r, n, NULL, out);
    case NODE_TEST: return evaluate_test(r, n, out);
    case NODE_NOT:
    case NODE_AND:
    case NODE_OR:
    case NODE_CONDITION: return evaluate_logic(r, n, out);
    case NODE_NEGATIVE: return evaluate(r, n->a, &a) && negate(r, a, out);
    case NODE_BINARY:
        if (!evaluate(r, n->a, &a) || !evaluate(r, n->b, &b))
            return false;
        r->line = n->line;
        return operate(r, n->sign, a, b, out);
    case NODE_COMPARE: return evaluate_compare(r, n, out);
    case NODE_CONCAT: return evaluate_concat(r, n, out);
    case NODE_LIST: return evaluate_all(r, n->list, LIST_LIST, out);
    case NODE_TUPLE: return evaluate_all(r, n->list, LIST_TUPLE, out);
    case NODE_DICT: return evaluate_dict(r, n, out);
    default: return render_fail(r, "this is no expression");
    }
}

bool
evaluate(struct render *r, const struct node *n, struct value *out)
{
    if (!render_enter(r))
        return false;
    r->line = n->line;
    const bool ok = evaluate_node(r, n, out);
    r->depth--;
    return ok;
}
