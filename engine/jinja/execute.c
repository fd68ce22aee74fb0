/* Executes statements: output, conditions, loops, assignments and blocks. */
#include "engine/jinja/template.h"

static enum ending
ending_of(bool well)
{
    return well ? ENDS_NORMALLY : FAILS;
}

static bool assign_target(struct render *, const struct node *target, struct value);

static bool
assign_parts(struct render *r, const struct node *target, struct value v)
{
    struct walk s;
    struct value part;
    if (!walk_begin(r, v, &s))
        return false;
    for (const struct node *t = target->list; t != NULL; t = t->next)
        if (!walk_next(r, &s, &part))
            return render_fail(r, "there are fewer values than names to assign them to");
        else if (!assign_target(r, t, part))
            return false;
    return !walk_next(r, &s, &part) ? r->failed == NULL
                                    : render_fail(r, "there are more values than names to assign them to");
}

/* Assigns a value, or its parts, to the names of a target. */
static bool
assign_target(struct render *r, const struct node *target, struct value v)
{
    struct value of;
    if (target->kind == NODE_NAME)
        return render_bind(r, target->name, v);
    if (target->kind == NODE_TUPLE)
        return assign_parts(r, target, v);
    if (!evaluate(r, target->b, &of))
        return false;
    if (of.kind != VALUE_NAMESPACE)
        return render_fail(r, "'%.*s' is no namespace, and can't be changed", (int)target->b->name.len,
                           target->b->name.data);
    return dict_put(r, of.dict, value_text(target->name), v);
}

/* Executes a block in its own scope, applies the filters to its text, and assigns the result to the target of a `set`
 * or appends it to `out`. */
static enum ending
execute_block(struct render *r, const struct node *n, struct buffer *out)
{
    struct scope *outer = r->scope, *scope = render_scope(r, outer);
    struct buffer b = {0};
    if (scope == NULL)
        return FAILS;
    r->scope = scope;
    const enum ending how = execute(r, n->body, &b);
    r->scope = outer;
    struct value text = value_text(buffer_text(&b));
    if (how != ENDS_NORMALLY)
        return how;
    if (n->b != NULL && !evaluate_filter(r, n->b, &text, &text))
        return FAILS;
    if (n->a != NULL)
        return ending_of(assign_target(r, n->a, text));
    return ending_of(text.kind == VALUE_TEXT ? buffer_add(r, out, text.text)
                                             : render_fail(r, "a block's text became a %s", value_type(text)));
}

static enum ending
execute_if(struct render *r, const struct node *n, struct buffer *out)
{
    const struct node *further = n->list;
    for (const struct node *branch = n; branch != NULL; branch = further, further = further ? further->next : NULL) {
        struct value v;
        if (!evaluate(r, branch->a, &v))
            return FAILS;
        if (value_truth(v))
            return execute(r, branch->body, out);
    }
    return execute(r, n->otherwise, out);
}

static bool
bind_macro(struct render *r, const struct node *n)
{
    struct macro *m = render_memory(r, sizeof *m);
    if (m == NULL)
        return false;
    *m = (struct macro){n, r->scope};
    return render_bind(r, n->name, (struct value){.kind = VALUE_MACRO, .macro = m});
}

/* ---- loops ---- */

struct loop {
    const struct node *node;
    struct scope *scope; /* around the loop */
    struct walk all;
    int64_t index0;
    struct value before, now, after;
    bool peeked;    /* `after` has been read (VALUE_MISSING: there is no further value) */
    int64_t length; /* -1: not computed yet */
    bool filtered;  /* the loop's `if` has been applied to the remaining values */
};

/* Reads the next value for which the loop's `if` is true. */
static bool
next_value(struct render *r, struct loop *l, struct value *out)
{
    while (walk_next(r, &l->all, out)) {
        struct scope *here = r->scope;
        struct value holds = value_bool(true);
        if (l->node->c == NULL || l->filtered)
            return true;
        r->scope = render_scope(r, l->scope);
        const bool ok = r->scope != NULL && assign_target(r, l->node->a, *out) && evaluate(r, l->node->c, &holds);
        r->scope = here;
        if (!ok || value_truth(holds))
            return ok;
    }
    return false;
}

static bool
peek(struct render *r, struct loop *l)
{
    if (!l->peeked && !next_value(r, l, &l->after))
        l->after = (struct value){.kind = VALUE_MISSING};
    l->peeked = true;
    return r->failed == NULL;
}

/* Computes the loop's length. Values without a length are read to the end, as in jinja2. */
static bool
loop_length(struct render *r, struct loop *l)
{
    size_t n;
    if (l->length >= 0)
        return true;
    if (l->node->c == NULL && value_length(l->all.whole, &n)) {
        l->length = (int64_t)n;
        return true;
    }
    struct list *rest = render_list(r, LIST_LIST, 0);
    struct value v;
    if (rest == NULL)
        return false;
    while (next_value(r, l, &v))
        if (!list_add(r, rest, v))
            return false;
    l->length = l->index0 + 1 + (l->peeked && l->after.kind != VALUE_MISSING) + (int64_t)rest->n;
    l->all = (struct walk){.whole = value_list(rest)};
    l->filtered = true;
    return r->failed == NULL;
}

static enum ending
execute_body(struct render *r, const struct node *n, struct loop *loop, struct buffer *out)
{
    struct scope *outer = r->scope;
    if ((r->scope = render_scope(r, outer)) == NULL) {
        r->scope = outer;
        return FAILS;
    }
    const struct value self = {.kind = VALUE_LOOP, .loop = loop};
    const enum ending how =
        render_bind(r, slice_of("loop"), self) && assign_target(r, n->a, loop->now) ? execute(r, n->body, out) : FAILS;
    r->scope = outer;
    return how;
}

/* Advances to the next iteration; returns false if there is none. */
static bool
advance(struct render *r, struct loop *l)
{
    if (!peek(r, l) || l->after.kind == VALUE_MISSING)
        return false;
    l->before = l->now;
    l->now = l->after;
    l->peeked = false;
    l->index0++;
    return true;
}

static enum ending
execute_loop(struct render *r, const struct node *n, struct buffer *out)
{
    struct loop *l = render_memory(r, sizeof *l);
    struct value all;
    if (l == NULL || !evaluate(r, n->b, &all))
        return FAILS;
    *l = (struct loop){.node = n, .scope = r->scope, .index0 = -1, .length = -1};
    if (!walk_begin(r, all, &l->all))
        return FAILS;
    bool whole = false;
    while (advance(r, l)) {
        const enum ending how = execute_body(r, n, l, out);
        if (how == FAILS)
            return FAILS;
        if (how == ENDS_LOOP)
            break;
        whole = whole || how == ENDS_NORMALLY;
    }
    if (r->failed != NULL)
        return FAILS;
    if (whole || n->otherwise == NULL) /* as in jinja2, `else` runs if no iteration was completed */
        return ENDS_NORMALLY;
    struct scope *outer = r->scope;
    r->scope = render_scope(r, outer);
    const enum ending how = r->scope == NULL ? FAILS : execute(r, n->otherwise, out);
    r->scope = outer;
    return how;
}

bool
loop_attribute(struct render *r, struct loop *l, struct slice name, struct value *out, bool *known)
{
    *known = true;
    if (slice_is(name, "index0") || slice_is(name, "index"))
        *out = value_int(l->index0 + (name.len == 5));
    else if (slice_is(name, "first"))
        *out = value_bool(l->index0 == 0);
    else if (slice_is(name, "last")) {
        if (!peek(r, l))
            return false;
        *out = value_bool(l->after.kind == VALUE_MISSING);
    } else if (slice_is(name, "length")) {
        if (!loop_length(r, l))
            return false;
        *out = value_int(l->length);
    } else if (slice_is(name, "previtem")) {
        if (l->index0 == 0)
            return value_undefined(r, out, "there is no previous item");
        *out = l->before;
    } else if (slice_is(name, "nextitem")) {
        if (!peek(r, l))
            return false;
        if (l->after.kind == VALUE_MISSING)
            return value_undefined(r, out, "there is no next item");
        *out = l->after;
    } else
        *known = false;
    return true;
}
static enum ending
execute_node(struct render *r, const struct node *n, struct buffer *out)
{
    struct value v;
    switch (n->kind) {
    case NODE_DATA: return ending_of(buffer_add(r, out, n->constant.text));
    case NODE_PRINT: return ending_of(evaluate(r, n->a, &v) && value_write(r, out, v));
    case NODE_IF: return execute_if(r, n, out);
    case NODE_FOR: return execute_loop(r, n, out);
    case NODE_SET: return ending_of(evaluate(r, n->b, &v) && assign_target(r, n->a, v));
    case NODE_MACRO: return ending_of(bind_macro(r, n));
    case NODE_SET_BLOCK:
    case NODE_FILTER_BLOCK: return execute_block(r, n, out);
    case NODE_BREAK: return ENDS_LOOP;
    case NODE_CONTINUE: return ENDS_PASS;
    default: return ending_of(render_fail(r, "this is no statement"));
    }
}

enum ending
execute(struct render *r, const struct node *first, struct buffer *out)
{
    enum ending how = ENDS_NORMALLY;
    if (!render_enter(r))
        return FAILS;
    for (; first != NULL && how == ENDS_NORMALLY; first = first->next) {
        r->line = first->line;
        how = execute_node(r, first, out);
    }
    r->depth--;
    return how;
}
