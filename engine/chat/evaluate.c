/* Expressions. */
#include "engine/chat/evaluate.h"

#include "engine/chat/compare.h"
#include "engine/chat/functions.h"
#include "engine/chat/walk.h"
#include "engine/chat/write.h"

bool
value_undefined(struct render *r, struct value *out, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    *out = (struct value){.kind = VALUE_UNDEFINED};
    return render_copy(r, text, strlen(text), &out->text);
}

static bool
evaluate_name(struct render *r, const struct node *n, struct value *out)
{
    const struct value *v;
    if (!render_find(r, n->name, &v))
        return false;
    const struct builtin *f = v == NULL ? builtin_find(global_functions, n->name) : NULL;
    if (v == NULL ? f == NULL : v->kind == VALUE_MISSING)
        return value_undefined(r, out, "'%.*s' is undefined", (int)(n->name.len < 80 ? n->name.len : 80), n->name.data);
    *out = v != NULL ? *v : (struct value){.kind = VALUE_FUNCTION, .function = f};
    return true;
}

static bool
evaluate_all(struct render *r, const struct node *first, enum list_kind kind, struct value *out)
{
    size_t n = 0;
    for (const struct node *i = first; i != NULL; i = i->next)
        n++;
    struct list *list = render_list(r, kind, n);
    n = 0;
    for (const struct node *i = first; i != NULL && list != NULL; i = i->next)
        if (!evaluate(r, i, &list->at[n++]))
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

static bool
holds(struct render *r, unsigned sign, struct value a, struct value b, bool *out)
{
    int order = 0;
    const char name[3] = {(char)(sign > 0xff ? sign >> 8 : sign), (char)(sign > 0xff ? sign & 0xff : 0)};
    switch (sign) {
    case SIGN2('=', '='): *out = values_equal(r, a, b); return r->failed == NULL;
    case SIGN2('!', '='): *out = !values_equal(r, a, b); return r->failed == NULL;
    case SIGN_IN: return value_contains(r, b, a, out);
    case SIGN_NOT_IN:
        if (!value_contains(r, b, a, out))
            return false;
        *out = !*out;
        return true;
    default:
        if (!values_order(r, a, b, name, &order))
            return false;
        *out = sign == SIGN('<')         ? order == -1
               : sign == SIGN('>')       ? order == 1
               : sign == SIGN2('<', '=') ? order == -1 || order == 0
                                         : order == 1 || order == 0;
        return true;
    }
}

/* a < b < c: each operand once, up to the first that doesn't hold. */
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
        if (!holds(r, o->sign, left, right, &is))
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

static size_t
count_arguments(const struct node *first, bool named)
{
    size_t n = 0;
    for (; first != NULL; first = first->next)
        n += first->kind == NODE_ARGUMENT && (first->name.len > 0) == named;
    return n;
}

static bool
add_keyword(struct render *r, struct arguments *a, size_t *room, struct keyword k)
{
    if (a->n_keywords == *room) {
        struct keyword *at = render_memory(r, (*room + 8) * 2 * sizeof *at);
        if (at == NULL)
            return false;
        if (a->n_keywords > 0)
            memcpy(at, a->keywords, a->n_keywords * sizeof *at);
        a->keywords = at;
        *room = (*room + 8) * 2;
    }
    if (!render_step(r, a->n_keywords / 8 * (1 + k.name.len / 64)))
        return false;
    for (size_t i = 0; i < a->n_keywords; i++)
        if (slice_compare(a->keywords[i].name, k.name) == 0)
            return render_fail(r, "'%.*s' is given twice", (int)k.name.len, k.name.data);
    a->keywords[a->n_keywords++] = k;
    return true;
}

static bool
add_keywords(struct render *r, struct arguments *a, size_t *room, struct value all)
{
    if (all.kind != VALUE_DICT)
        return render_fail(r, "what follows ** must be a dict, not a %s", value_type(all));
    for (size_t i = 0; i < all.dict->n; i++) {
        const struct entry *e = &all.dict->at[i];
        if (e->key.kind != VALUE_TEXT)
            return render_fail(r, "the names in what follows ** must be texts");
        if (!add_keyword(r, a, room, (struct keyword){e->key.text, e->value}))
            return false;
    }
    return true;
}

bool
evaluate_arguments(struct render *r, const struct node *first, struct arguments *a)
{
    *a = (struct arguments){0};
    size_t room = 0, n = count_arguments(first, false);
    if (first == NULL)
        return true;
    if ((a->at = render_memory(r, n * sizeof *a->at)) == NULL)
        return false;
    for (const struct node *i = first; i != NULL; i = i->next) {
        struct value v;
        if (!evaluate(r, i->a, &v))
            return false;
        if (i->kind == NODE_STARS) {
            if (!add_keywords(r, a, &room, v))
                return false;
        } else if (i->kind == NODE_STAR) {
            const struct list *more = walk_list(r, v, LIST_LIST);
            struct value *at = more == NULL ? NULL : render_memory(r, (n + more->n) * sizeof *at);
            if (at == NULL)
                return false;
            memcpy(at, a->at, a->n * sizeof *at);
            memcpy(at + a->n, more->at, more->n * sizeof *at);
            a->at = at;
            a->n += more->n;
            n += more->n;
        } else if (i->name.len > 0) {
            if (!add_keyword(r, a, &room, (struct keyword){i->name, v}))
                return false;
        } else
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

static bool
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

bool
evaluate_filters(struct render *r, const struct node *n, struct value text, struct value *out)
{
    return evaluate_filter(r, n, &text, out);
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
    case NODE_POSITIVE: return evaluate(r, n->a, &a) && negate(r, a, &b) && negate(r, b, out);
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
