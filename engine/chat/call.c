#include "engine/chat/call.h"
#include "engine/base/plural.h"
#include "engine/chat/evaluate.h"

const struct builtin *
builtin_find(const struct builtin *table, struct slice name)
{
    for (; table->name != NULL; table++)
        if (slice_is(name, table->name))
            return table;
    return NULL;
}

/* The parameter of that name; MOST_PARAMETERS: there is none. */
static size_t
parameter_named(const struct builtin *b, struct slice name)
{
    size_t i = 0;
    while (i < MOST_PARAMETERS && (b->parameters[i] == NULL || !slice_is(name, b->parameters[i])))
        i++;
    return i;
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
        const size_t i = parameter_named(b, name);
        if (i == MOST_PARAMETERS || c->a[i].kind != VALUE_MISSING)
            return render_fail(c->r, "%s '%s' %s '%.*s'", what, b->name,
                               i == MOST_PARAMETERS ? "takes no argument called" : "has two values for", (int)name.len,
                               name.data);
        c->a[i] = given->keywords[k].value;
    }
    for (size_t i = 0; i < b->required; i++)
        if (c->a[i].kind == VALUE_MISSING)
            return render_fail(c->r, "%s '%s' needs %zu argument%s", what, b->name, b->required, plural(b->required));
    return true;
}

/* Builtins read the texts that they get from end to end, once or a few times; what takes longer is charged where it is done. */
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

bool
builtin_call(struct render *r, const struct builtin *b, const char *what, struct value self,
             const struct arguments *given, struct value *out)
{
    struct call c = {.r = r, .self = self, .given = *given};
    return charge(r, self, given) && (b->any || match(&c, b, what)) && b->function(&c, out) && r->failed == NULL;
}

bool
value_call(struct render *r, struct value v, const struct arguments *given, struct value *out)
{
    switch (v.kind) {
    case VALUE_MACRO: return macro_call(r, v.macro, given, out);
    case VALUE_METHOD: return builtin_call(r, v.method->builtin, "the method", v.method->self, given, out);
    case VALUE_FUNCTION: return builtin_call(r, v.function, "the function", (struct value){0}, given, out);
    case VALUE_UNDEFINED: return render_fail(r, "%.*s", (int)v.text.len, v.text.data);
    case VALUE_LOOP: return loop_call(r, v.loop, given, out);
    default: return render_fail(r, "a %s can't be called", value_type(v));
    }
}

bool
call_undefined(struct call *c, struct value v)
{
    return render_fail(c->r, "%.*s", (int)v.text.len, v.text.data);
}

bool
call_whole(struct call *c, size_t i, int64_t *whole)
{
    const struct value v = c->a[i];
    if (v.kind == VALUE_MISSING || value_is_whole(v, whole))
        return true;
    return v.kind == VALUE_UNDEFINED ? call_undefined(c, v)
                                     : render_fail(c->r, "a whole number is needed, not a %s", value_type(v));
}

bool
call_text(struct call *c, size_t i, struct slice *text)
{
    const struct value v = c->a[i];
    if (v.kind == VALUE_TEXT)
        *text = v.text;
    else if (v.kind != VALUE_MISSING && v.kind != VALUE_NONE)
        return v.kind == VALUE_UNDEFINED ? call_undefined(c, v)
                                         : render_fail(c->r, "a text is needed, not a %s", value_type(v));
    return true;
}

bool
call_truth(const struct call *c, size_t i)
{
    return value_truth(c->a[i]);
}
