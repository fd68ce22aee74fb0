/* Resolves names before a rendering (names_resolve()), and evaluates expressions. */
#include "engine/chat/template.h"

struct frame { /* the part of a scope that has been read */
    struct frame *outer;
    struct name *known; /* read or set in it */
    struct name *unset;
};

static bool
is_among(struct render *r, const struct name *list, struct slice name)
{
    size_t visited = 0;
    for (; list != NULL && slice_compare(list->name, name) != 0; list = list->next)
        visited += 1 + name.len / 64;
    return render_step(r, visited / 8) && list != NULL;
}

static bool
is_known(struct render *r, const struct frame *f, struct slice name)
{
    for (; f != NULL; f = f->outer)
        if (is_among(r, f->known, name))
            return true;
    return false;
}

static bool
add(struct render *r, struct name **list, struct slice name)
{
    struct name *n = r->failed != NULL ? NULL : render_memory(r, sizeof *n);
    if (n == NULL)
        return false;
    *n = (struct name){name, *list};
    *list = n;
    return true;
}

/* Records the names that an expression reads. */
static bool
read_names(struct render *r, struct frame *f, const struct node *n)
{
    if (n == NULL)
        return true;
    if (n->kind == NODE_NAME)
        return is_known(r, f, n->name) || add(r, &f->known, n->name);
    if (!render_enter(r))
        return false;
    bool ok = read_names(r, f, n->a) && read_names(r, f, n->b) && read_names(r, f, n->c);
    for (const struct node *i = n->list; i != NULL && ok; i = i->next)
        ok = read_names(r, f, i);
    r->depth--;
    return ok;
}

/* Records that a statement sets a name. In a branch the name may remain unset, so an outer value stays visible. */
static bool
set_name(struct render *r, struct frame *f, struct slice name, bool branch)
{
    if (is_among(r, f->known, name))
        return true;
    if (!branch && !is_known(r, f->outer, name) && !add(r, &f->unset, name))
        return false;
    return add(r, &f->known, name);
}

static bool
set_names(struct render *r, struct frame *f, const struct node *target, bool branch)
{
    if (target->kind == NODE_NAMESPACE_TARGET)
        return read_names(r, f, target->b);
    for (const struct node *part = target->list; part != NULL; part = part->next)
        if (!set_names(r, f, part, branch))
            return false;
    return target->kind != NODE_NAME || set_name(r, f, target->name, branch);
}

static bool
add_parameters(struct render *r, struct frame *f, const struct node *list)
{
    for (const struct node *p = list; p != NULL; p = p->next)
        if (!read_names(r, f, p->a) || !add(r, &f->known, p->name))
            return false;
    return true;
}

static bool
add_targets(struct render *r, struct frame *f, const struct node *target)
{
    for (const struct node *part = target->list; part != NULL; part = part->next)
        if (!add_targets(r, f, part))
            return false;
    return target->kind != NODE_NAME || add(r, &f->known, target->name);
}

/* Reads the statements of a scope in order, without those of nested scopes. */
static bool
read_statements(struct render *r, struct frame *f, const struct node *n, bool branch)
{
    bool ok = true;
    for (; n != NULL && ok; n = n->next)
        switch (n->kind) {
        case NODE_PRINT: ok = read_names(r, f, n->a); break;
        case NODE_IF:
            ok = read_names(r, f, n->a) && read_statements(r, f, n->body, true) &&
                 read_statements(r, f, n->list, true) && read_statements(r, f, n->otherwise, true);
            break;
        case NODE_FILTER_BLOCK:
        case NODE_FOR: ok = read_names(r, f, n->b); break;
        case NODE_SET: ok = read_names(r, f, n->b) && set_names(r, f, n->a, branch); break;
        case NODE_SET_BLOCK: ok = set_names(r, f, n->a, branch); break;
        case NODE_MACRO: ok = set_name(r, f, n->name, branch); break;
        default: break;
        }
    return ok;
}

static bool resolve_inner(struct render *, struct frame *, struct node *);

/* Resolves the names of a scope with this body; *unset is the list of names that are undefined at its beginning. */
static bool
resolve_body(struct render *r, struct frame *f, struct node *body, struct name **unset)
{
    if (!read_statements(r, f, body, false) || !resolve_inner(r, f, body))
        return false;
    *unset = f->unset;
    return true;
}

static bool
resolve_node(struct render *r, struct frame *outer, struct node *n)
{
    struct frame f = {.outer = outer}, otherwise = {.outer = outer};
    switch (n->kind) {
    case NODE_IF:
        return resolve_inner(r, outer, n->body) && resolve_inner(r, outer, n->list) &&
               resolve_inner(r, outer, n->otherwise);
    case NODE_FOR:
        return add(r, &f.known, slice_of("loop")) && add_targets(r, &f, n->a) &&
               resolve_body(r, &f, n->body, &n->unset) &&
               resolve_body(r, &otherwise, n->otherwise, &n->unset_otherwise);
    case NODE_MACRO: return add_parameters(r, &f, n->list) && resolve_body(r, &f, n->body, &n->unset);
    case NODE_FILTER_BLOCK: return read_names(r, &f, n->b) && resolve_body(r, &f, n->body, &n->unset);
    case NODE_SET_BLOCK: return resolve_body(r, &f, n->body, &n->unset);
    default: return true;
    }
}

/* Resolves the names of the scopes nested in these statements. */
static bool
resolve_inner(struct render *r, struct frame *f, struct node *n)
{
    for (; n != NULL; n = n->next)
        if (!resolve_node(r, f, n))
            return false;
    return true;
}

bool
names_resolve(struct render *r, struct node *first, struct name **root)
{
    return resolve_body(r, &(struct frame){0}, first, root);
}

/* Expressions. */

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
