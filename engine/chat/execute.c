/* Statements. */
#include "engine/chat/evaluate.h"
#include "engine/chat/walk.h"
#include "engine/chat/write.h"

enum ending
ending_of(bool well)
{
    return well ? ENDS_WELL : FAILS;
}

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

bool
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

/* A body in a scope of its own, its text apart. */
static enum ending
execute_apart(struct render *r, const struct node *body, struct scope *scope, struct value *text)
{
    struct scope *outer = r->scope;
    struct buffer b = {0};
    if (scope == NULL)
        return FAILS;
    r->scope = scope;
    const enum ending how = execute(r, body, &b);
    r->scope = outer;
    *text = value_text(buffer_text(&b));
    return how;
}

static enum ending
execute_set_block(struct render *r, const struct node *n)
{
    struct value text;
    const enum ending how = execute_apart(r, n->body, render_scope(r, r->scope, n->unset), &text);
    if (how != ENDS_WELL)
        return how;
    return ending_of((n->b == NULL || evaluate_filters(r, n->b, text, &text)) && assign_target(r, n->a, text));
}

/* ---- the others ---- */

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
new_macro(struct render *r, const struct node *n, struct value *out)
{
    struct macro *m = render_memory(r, sizeof *m);
    if (m == NULL)
        return false;
    *m = (struct macro){n, n->kind == NODE_MACRO ? n->name : (struct slice){0}, r->scope};
    *out = (struct value){.kind = VALUE_MACRO, .macro = m};
    return true;
}

/* What a block gives must be a text already. */
static bool
write_text(struct render *r, struct buffer *out, struct value v)
{
    return v.kind == VALUE_TEXT ? buffer_add(r, out, v.text)
                                : render_fail(r, "a block's text became a %s", value_type(v));
}

static bool
execute_call_block(struct render *r, const struct node *n, struct buffer *out)
{
    struct value callee, block;
    struct arguments given;
    if (!evaluate(r, n->a->a, &callee) || !evaluate_arguments(r, n->a->list, &given) || !new_macro(r, n, &block))
        return false;
    struct keyword *keywords = render_memory(r, (given.n_keywords + 1) * sizeof *keywords);
    if (keywords == NULL)
        return false;
    if (given.n_keywords > 0)
        memcpy(keywords, given.keywords, given.n_keywords * sizeof *keywords);
    keywords[given.n_keywords++] = (struct keyword){slice_of("caller"), block};
    given.keywords = keywords;
    r->line = n->line;
    return value_call(r, callee, &given, &callee) && write_text(r, out, callee);
}

static enum ending
execute_with(struct render *r, const struct node *n, struct buffer *out)
{
    struct scope *outer = r->scope, *inner = render_scope(r, outer, n->unset);
    enum ending how = inner == NULL ? FAILS : ENDS_WELL;
    for (const struct node *set = n->list; set != NULL && how == ENDS_WELL; set = set->next) {
        struct value v;
        how = ending_of(evaluate(r, set->b, &v)); /* outside: one doesn't see the other */
        r->scope = inner;
        how = how == ENDS_WELL ? ending_of(assign_target(r, set->a, v)) : how;
        r->scope = outer;
    }
    r->scope = inner;
    how = how == ENDS_WELL ? execute(r, n->body, out) : how;
    r->scope = outer;
    return how;
}

static enum ending
execute_filtered(struct render *r, const struct node *n, struct buffer *out)
{
    struct value text;
    const enum ending how = execute_apart(r, n->body, render_scope(r, r->scope, n->unset), &text);
    if (how == ENDS_WELL && n->kind == NODE_FILTER_BLOCK && !evaluate_filters(r, n->a, text, &text))
        return FAILS;
    return how == ENDS_WELL ? ending_of(write_text(r, out, text)) : how;
}

static enum ending
execute_node(struct render *r, const struct node *n, struct buffer *out)
{
    struct value v;
    switch (n->kind) {
    case NODE_DATA: return ending_of(buffer_add(r, out, n->constant.text));
    case NODE_PRINT:
        for (const struct node *i = n->list; i != NULL; i = i->next)
            if (!evaluate(r, i, &v) || !value_write(r, out, v))
                return FAILS;
        return ENDS_WELL;
    case NODE_IF: return execute_if(r, n, out);
    case NODE_FOR: return execute_loop(r, n, out);
    case NODE_SET: return ending_of(evaluate(r, n->b, &v) && assign_target(r, n->a, v));
    case NODE_SET_BLOCK: return execute_set_block(r, n);
    case NODE_MACRO: return ending_of(new_macro(r, n, &v) && render_bind(r, n->name, v));
    case NODE_CALL_BLOCK: return ending_of(execute_call_block(r, n, out));
    case NODE_FILTER_BLOCK:
    case NODE_GENERATION: return execute_filtered(r, n, out);
    case NODE_WITH: return execute_with(r, n, out);
    case NODE_BREAK: return ENDS_LOOP;
    case NODE_CONTINUE: return ENDS_TURN;
    default: return ending_of(render_fail(r, "this is no statement"));
    }
}

enum ending
execute(struct render *r, const struct node *first, struct buffer *out)
{
    enum ending how = ENDS_WELL;
    if (!render_enter(r))
        return FAILS;
    for (; first != NULL && how == ENDS_WELL; first = first->next) {
        r->line = first->line;
        how = execute_node(r, first, out);
    }
    r->depth--;
    return how;
}
