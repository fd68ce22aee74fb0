/* `for`, and what its body knows of it as `loop`. */
#include "engine/chat/compare.h"
#include "engine/chat/evaluate.h"
#include "engine/chat/walk.h"

struct loop {
    const struct node *node;
    struct scope *scope; /* where it stands */
    struct walk all;
    int64_t index0, depth0;
    struct value before, now, after;
    bool peeked;          /* `after` was read already (VALUE_MISSING: there is none) */
    struct value changed; /* what loop.changed() saw last */
    int64_t length;       /* -1: nobody asked yet */
    bool filtered;        /* what is left was found already */
};

/* The next value for which the loop's `if` holds. */
static bool
next_value(struct render *r, struct loop *l, struct value *out)
{
    while (walk_next(r, &l->all, out)) {
        struct scope *here = r->scope;
        struct value holds = value_bool(true);
        if (l->node->c == NULL || l->filtered)
            return true;
        r->scope = render_scope(r, l->scope, NULL);
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

/* What has no length is read to its end, as jinja2 does. */
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
    struct growing rest;
    struct value v;
    if (!growing_begin(r, &rest, LIST_LIST))
        return false;
    while (next_value(r, l, &v))
        if (!growing_add(r, &rest, v))
            return false;
    l->length = l->index0 + 1 + (l->peeked && l->after.kind != VALUE_MISSING) + (int64_t)rest.list->n;
    l->all = (struct walk){.whole = value_list(rest.list)};
    l->filtered = true;
    return r->failed == NULL;
}

static enum ending
execute_turn(struct render *r, const struct node *n, struct loop *loop, struct buffer *out)
{
    struct scope *outer = r->scope;
    if ((r->scope = render_scope(r, outer, n->unset)) == NULL) {
        r->scope = outer;
        return FAILS;
    }
    const struct value self = {.kind = VALUE_LOOP, .loop = loop};
    const enum ending how =
        render_bind(r, slice_of("loop"), self) && assign_target(r, n->a, loop->now) ? execute(r, n->body, out) : FAILS;
    r->scope = outer;
    return how;
}

/* The next turn's values; false: there is none. */
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

/* All turns of a loop that stands in the scope in force. */
static enum ending
run_loop(struct render *r, const struct node *n, struct value all, int64_t depth0, struct buffer *out)
{
    struct loop *l = render_memory(r, sizeof *l);
    if (l == NULL)
        return FAILS;
    *l = (struct loop){.node = n, .scope = r->scope, .index0 = -1, .depth0 = depth0, .length = -1};
    if (!walk_begin(r, all, &l->all))
        return FAILS;
    bool whole = false;
    while (advance(r, l)) {
        const enum ending how = execute_turn(r, n, l, out);
        if (how == FAILS)
            return FAILS;
        if (how == ENDS_LOOP)
            break;
        whole = whole || how == ENDS_WELL;
    }
    if (r->failed != NULL)
        return FAILS;
    if (whole || n->otherwise == NULL) /* in jinja2 `else` is for a loop of which no turn came to its end */
        return ENDS_WELL;
    struct scope *outer = r->scope;
    r->scope = render_scope(r, outer, n->unset_otherwise);
    const enum ending how = r->scope == NULL ? FAILS : execute(r, n->otherwise, out);
    r->scope = outer;
    return how;
}

enum ending
execute_loop(struct render *r, const struct node *n, struct buffer *out)
{
    struct value all;
    return evaluate(r, n->b, &all) ? run_loop(r, n, all, 0, out) : FAILS;
}

bool
loop_call(struct render *r, struct loop *l, const struct arguments *given, struct value *out)
{
    struct scope *inner = r->scope;
    struct buffer b = {0};
    if (!l->node->recursive)
        return render_fail(r, "a loop that is called must be `recursive`");
    const bool named = given->n == 0 && given->n_keywords == 1 && slice_is(given->keywords[0].name, "iterable");
    if (!named && (given->n != 1 || given->n_keywords > 0))
        return render_fail(r, "a loop is called with what it goes through, and nothing else");
    if (!render_enter(r))
        return false;
    r->scope = l->scope;
    const enum ending how = run_loop(r, l->node, named ? given->keywords[0].value : given->at[0], l->depth0 + 1, &b);
    r->scope = inner;
    r->depth--;
    *out = value_text(buffer_text(&b));
    return how == ENDS_WELL;
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
    } else if (slice_is(name, "length") || slice_is(name, "revindex") || slice_is(name, "revindex0")) {
        if (!loop_length(r, l))
            return false;
        *out = value_int(name.len == 6 ? l->length : l->length - l->index0 - (name.len == 9));
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
    } else if (slice_is(name, "depth") || slice_is(name, "depth0"))
        *out = value_int(l->depth0 + (name.len == 5));
    else
        *known = false;
    return true;
}

bool
loop_changed(struct render *r, struct loop *l, const struct arguments *a, struct value *out)
{
    struct list *seen = render_list(r, LIST_TUPLE, a->n);
    if (seen == NULL)
        return false;
    if (a->n > 0)
        memcpy(seen->at, a->at, a->n * sizeof *a->at);
    const bool same = l->changed.kind != VALUE_MISSING && values_equal(r, l->changed, value_list(seen));
    l->changed = value_list(seen);
    *out = value_bool(!same);
    return r->failed == NULL;
}

int64_t
loop_index(const struct loop *l)
{
    return l->index0;
}
