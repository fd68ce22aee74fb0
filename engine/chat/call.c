/* Calls: arguments to parameters. */
#include "engine/chat/call.h"

#include "engine/chat/evaluate.h"
#include "kernels/base/plural.h"

const struct builtin *
builtin_find(const struct builtin *table, struct slice name)
{
    for (; table->name != NULL; table++)
        if (slice_is(name, table->name))
            return table;
    return NULL;
}

static bool
match(struct call *c, const struct builtin *b, const char *what)
{
    const struct arguments *given = &c->given;
    size_t most = 0;
    while (most < MOST_PARAMETERS && b->parameters[most] != NULL)
        most++;
    if (given->n > most)
        return render_fail(c->r, "%s '%s' takes no more than %zu argument%s", what, b->name, most, plural(most));
    for (size_t i = 0; i < given->n; i++)
        c->a[i] = given->at[i];
    for (size_t k = 0; k < given->n_keywords; k++) {
        const struct slice name = given->keywords[k].name;
        size_t i = 0;
        while (i < most && !slice_is(name, b->parameters[i]))
            i++;
        if (i == most || c->a[i].kind != VALUE_MISSING)
            return render_fail(c->r, "%s '%s' %s '%.*s'", what, b->name,
                               i == most ? "takes no argument called" : "has two values for", (int)name.len, name.data);
        c->a[i] = given->keywords[k].value;
    }
    for (size_t i = 0; i < b->required; i++)
        if (c->a[i].kind == VALUE_MISSING)
            return render_fail(c->r, "%s '%s' needs %zu argument%s", what, b->name, b->required, plural(b->required));
    return true;
}

/* A builtin reads the texts that it gets once or a few times; what takes longer is charged where it is done. */
static bool
charge(struct render *r, struct value self, const struct arguments *given)
{
    size_t bytes = self.kind == VALUE_TEXT ? self.text.len : 0;
    for (size_t i = 0; i < given->n; i++)
        bytes += given->at[i].kind == VALUE_TEXT ? given->at[i].text.len : 0;
    for (size_t k = 0; k < given->n_keywords; k++)
        bytes += given->keywords[k].value.kind == VALUE_TEXT ? given->keywords[k].value.text.len : 0;
    return render_step(r, 1 + (given->n + given->n_keywords) / 8 + bytes / 16);
}

static bool
builtin_call(struct render *r, const struct builtin *b, const char *what, struct value self,
             const struct arguments *given, struct value *out)
{
    struct call c = {.r = r, .which = b->which, .self = self, .given = *given};
    const bool any = b->parameters[0] != NULL && b->parameters[0][0] == '*';
    return charge(r, self, given) && (any || match(&c, b, what)) && b->function(&c, out) && r->failed == NULL;
}

bool
filter_call(struct render *r, struct slice name, struct value self, const struct arguments *given, struct value *out)
{
    const struct builtin *const tables[] = {method_filters, value_filters, list_filters}, *b = NULL;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && b == NULL; i++)
        b = builtin_find(tables[i], name);
    if (b == NULL)
        return render_fail(r, "the filter '%.*s' is not supported", (int)name.len, name.data);
    return builtin_call(r, b, "the filter", self, given, out);
}

/* ---- macros ---- */

/* The value of a parameter: by position, by name, or its default, which may use the parameters before it. */
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
bind_parameters(struct render *r, const struct node *macro, const struct arguments *given)
{
    bool *used = render_memory(r, given->n_keywords);
    size_t n = 0;
    if (used == NULL)
        return false;
    for (const struct node *p = macro->list; p != NULL; p = p->next)
        if (!bind_parameter(r, p, given, n++, used))
            return false;
    for (size_t k = 0; k < given->n_keywords; k++)
        if (!used[k])
            return render_fail(r, "the macro '%.*s' takes no argument called '%.*s'", (int)macro->name.len,
                               macro->name.data, (int)given->keywords[k].name.len, given->keywords[k].name.data);
    return given->n <= n || render_fail(r, "the macro '%.*s' takes no more than %zu argument%s", (int)macro->name.len,
                                        macro->name.data, n, plural(n));
}

static bool
macro_call(struct render *r, const struct macro *m, const struct arguments *given, struct value *out)
{
    struct scope *outer = r->scope, *inner = render_scope(r, m->scope, m->node->unset);
    struct buffer b = {0};
    if (inner == NULL || !render_enter(r))
        return false;
    r->scope = inner;
    const bool ok = bind_parameters(r, m->node, given) && execute(r, m->node->body, &b) == ENDS_WELL;
    r->scope = outer;
    r->depth--;
    *out = value_text(buffer_text(&b));
    return ok;
}

bool
value_call(struct render *r, struct value v, const struct arguments *given, struct value *out)
{
    switch (v.kind) {
    case VALUE_MACRO: return macro_call(r, v.macro, given, out);
    case VALUE_METHOD: return builtin_call(r, v.method->builtin, "the method", v.method->self, given, out);
    case VALUE_FUNCTION: return builtin_call(r, v.function, "the function", (struct value){0}, given, out);
    case VALUE_UNDEFINED: return render_fail_undefined(r, v);
    case VALUE_LOOP: return render_fail(r, "calling a loop is not supported");
    default: return render_fail(r, "a %s can't be called", value_type(v));
    }
}

/* ---- arguments of builtins ---- */

bool
call_unfit(struct call *c, const char *what)
{
    return c->self.kind == VALUE_UNDEFINED ? render_fail_undefined(c->r, c->self)
                                           : render_fail(c->r, "a %s can't be %s", value_type(c->self), what);
}

bool
call_whole(struct call *c, size_t i, int64_t *whole)
{
    const struct value v = c->a[i];
    if (v.kind == VALUE_MISSING || value_is_whole(v, whole))
        return true;
    return v.kind == VALUE_UNDEFINED ? render_fail_undefined(c->r, v)
                                     : render_fail(c->r, "a whole number is needed, not a %s", value_type(v));
}

bool
call_text(struct call *c, size_t i, struct slice *text)
{
    const struct value v = c->a[i];
    if (v.kind == VALUE_TEXT)
        *text = v.text;
    else if (v.kind != VALUE_MISSING && v.kind != VALUE_NONE)
        return v.kind == VALUE_UNDEFINED ? render_fail_undefined(c->r, v)
                                         : render_fail(c->r, "a text is needed, not a %s", value_type(v));
    return true;
}

bool
call_truth(const struct call *c, size_t i)
{
    return value_truth(c->a[i]);
}
