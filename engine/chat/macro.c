/* Calling a macro. */
#include "engine/base/plural.h"
#include "engine/chat/evaluate.h"

/* The value of a parameter: by position, by name, its default, which may use those before; or undefined. */
static bool
bind_parameter(struct render *r, const struct node *p, const struct arguments *given, size_t i, bool *used)
{
    struct value v = {0};
    if (!render_step(r, given->n_keywords / 8 * (1 + p->name.len / 64)))
        return false;
    if (i < given->n)
        v = given->at[i];
    else
        for (size_t k = 0; k < given->n_keywords; k++)
            if (slice_compare(given->keywords[k].name, p->name) == 0) {
                v = given->keywords[k].value;
                used[k] = true;
            }
    if (v.kind == VALUE_MISSING && p->a != NULL && !evaluate(r, p->a, &v))
        return false;
    if (v.kind == VALUE_MISSING && !value_undefined(r, &v, "the parameter '%.*s' was not given",
                                                    (int)(p->name.len < 80 ? p->name.len : 80), p->name.data))
        return false;
    return render_bind(r, p->name, v);
}

static bool
has_parameter(const struct node *macro, const char *name)
{
    const struct node *p = macro->list;
    while (p != NULL && !slice_is(p->name, name))
        p = p->next;
    return p != NULL;
}

/* What the macro has no parameters for: caller, kwargs, varargs, where its body names them. */
static bool
bind_rest(struct render *r, const struct macro *m, const struct arguments *given, size_t n, bool *used)
{
    struct value v;
    struct dict *kwargs = render_dict(r);
    if (kwargs == NULL)
        return false;
    bool called = false;
    for (size_t k = 0; k < given->n_keywords; k++) {
        const struct keyword *keyword = &given->keywords[k];
        if (used[k])
            continue;
        if (m->node->uses_caller && slice_is(keyword->name, "caller")) {
            called = true;
            v = keyword->value;
        } else if (!m->node->uses_kwargs)
            return render_fail(r, "the macro '%.*s' takes no argument called '%.*s'", (int)m->name.len, m->name.data,
                               (int)keyword->name.len, keyword->name.data);
        else if (!dict_put(r, kwargs, value_text(keyword->name), keyword->value))
            return false;
    }
    if (m->node->uses_caller && !has_parameter(m->node, "caller")) {
        if ((!called && !value_undefined(r, &v, "there is no caller")) || !render_bind(r, slice_of("caller"), v))
            return false;
    }
    if (m->node->uses_kwargs && !render_bind(r, slice_of("kwargs"), value_dict(kwargs)))
        return false;
    if (given->n > n && !m->node->uses_varargs)
        return render_fail(r, "the macro '%.*s' takes no more than %zu argument%s", (int)m->name.len, m->name.data, n,
                           plural(n));
    if (!m->node->uses_varargs)
        return true;
    struct list *rest = render_list(r, LIST_TUPLE, given->n > n ? given->n - n : 0);
    if (rest != NULL && rest->n > 0)
        memcpy(rest->at, given->at + n, rest->n * sizeof *rest->at);
    return rest != NULL && render_bind(r, slice_of("varargs"), value_list(rest));
}

bool
macro_call(struct render *r, const struct macro *m, const struct arguments *given, struct value *out)
{
    struct scope *outer = r->scope;
    bool *used = render_memory(r, given->n_keywords);
    struct buffer b = {0};
    size_t n = 0;
    if (used == NULL || (r->scope = render_scope(r, m->scope, m->node->unset)) == NULL || !render_enter(r)) {
        r->scope = outer;
        return false;
    }
    bool ok = true;
    for (const struct node *p = m->node->list; p != NULL && ok; p = p->next)
        ok = bind_parameter(r, p, given, n++, used);
    ok = ok && bind_rest(r, m, given, n, used) && execute(r, m->node->body, &b) == ENDS_WELL;
    r->scope = outer;
    r->depth--;
    *out = value_text(buffer_text(&b));
    return ok;
}
