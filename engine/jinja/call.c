/* Tests (after `is`), global functions, and calls: binding of arguments to the parameters of builtins and macros. */
#include <locale.h>

#include "base/plural.h"
#include "engine/jinja/template.h"

#define IS(kind) (1u << (kind))
#define NUMBERS  (IS(VALUE_BOOL) | IS(VALUE_INT) | IS(VALUE_FLOAT))
#define TEXTUAL  (IS(VALUE_TEXT) | IS(VALUE_DICT) | IS(VALUE_UNDEFINED)) /* in jinja2 this includes an undefined value */

static const struct {
    const char *name;
    unsigned kinds; /* kinds of values that pass; 0: the test is a comparison */
    unsigned sign;  /* operator of a comparison */
} tests[] = {
    {"boolean", IS(VALUE_BOOL), 0},
    {"true", IS(VALUE_BOOL), 0},
    {"false", IS(VALUE_BOOL), 0},
    {"defined", ~IS(VALUE_UNDEFINED), 0},
    {"undefined", IS(VALUE_UNDEFINED), 0},
    {"even", NUMBERS, 0},
    {"odd", NUMBERS, 0},
    {"number", NUMBERS, 0},
    {"float", IS(VALUE_FLOAT), 0},
    {"integer", IS(VALUE_INT), 0},
    {"iterable", TEXTUAL | IS(VALUE_LIST) | IS(VALUE_LOOP), 0},
    {"sequence", TEXTUAL | IS(VALUE_LIST), 0},
    {"mapping", IS(VALUE_DICT), 0},
    {"none", IS(VALUE_NONE), 0},
    {"string", IS(VALUE_TEXT), 0},
    {"in", 0, SIGN_IN},
    {"eq", 0, SIGN2('=', '=')},
    {"equalto", 0, SIGN2('=', '=')},
    {"==", 0, SIGN2('=', '=')},
    {"ne", 0, SIGN2('!', '=')},
    {"!=", 0, SIGN2('!', '=')},
    {"lt", 0, SIGN('<')},
    {"<", 0, SIGN('<')},
    {"le", 0, SIGN2('<', '=')},
    {"<=", 0, SIGN2('<', '=')},
    {"gt", 0, SIGN('>')},
    {">", 0, SIGN('>')},
    {"ge", 0, SIGN2('>', '=')},
    {">=", 0, SIGN2('>', '=')},
};

/* Completes tests that depend on more than the kind. On entry *is is whether the kind matches; on return it is the
 * result. Returns false if the rendering fails. */
static bool
holds(struct render *r, const char *test, struct value v, bool *is)
{
    const bool odd = test[0] == 'o', even = test[0] == 'e';
    struct value rest;
    if (odd || even) {
        if (!operate(r, SIGN('%'), v, value_int(2), &rest))
            return false;
        *is = values_equal(r, rest, value_int(odd));
    } else if (*is && v.kind == VALUE_BOOL && (test[0] == 't' || test[0] == 'f'))
        *is = v.truth == (test[0] == 't');
    else if (*is && v.kind == VALUE_LIST && test[0] == 's') /* supports numeric indexes */
        *is = v.list->kind != LIST_GENERATOR;
    return r->failed == NULL;
}

bool
test_call(struct render *r, struct slice name, struct value self, const struct arguments *given, bool *is)
{
    size_t i = 0;
    while (i < sizeof tests / sizeof *tests && !slice_is(name, tests[i].name))
        i++;
    if (i == sizeof tests / sizeof *tests)
        return render_fail(r, "the test '%.*s' is not supported", (int)name.len, name.data);
    const bool compares = tests[i].kinds == 0;
    if (given->n != compares || given->n_keywords > 0)
        return render_fail(r, "the test '%s' takes %s", tests[i].name, compares ? "one argument" : "no arguments");
    if (!render_step(r, 1))
        return false;
    if (compares)
        return values_compare(r, tests[i].sign, self, given->at[0], is);
    *is = (tests[i].kinds & IS(self.kind)) != 0;
    return holds(r, tests[i].name, self, is);
}

/* Global functions. */

#define MOST_RANGE 100000 /* the limit of jinja2's sandbox */

static bool
range(struct call *c, struct value *out)
{
    int64_t from = 0, to = 0, step = 1;
    const bool one = c->a[1].kind == VALUE_MISSING;
    if (!call_whole(c, 0, one ? &to : &from) || !call_whole(c, 1, &to) || !call_whole(c, 2, &step))
        return false;
    if (step == 0)
        return render_fail(c->r, "a range's step is zero");
    struct list *list = render_list(c->r, LIST_LIST, 0);
    for (bool over = false; list != NULL && !over && (step > 0 ? from < to : from > to);) {
        if (list->n == MOST_RANGE)
            return render_fail(c->r, "a range has more than %d values", MOST_RANGE);
        if (!render_step(c->r, 1) || !list_add(c->r, list, value_int(from)))
            return false;
        over = __builtin_add_overflow(from, step, &from);
    }
    *out = value_list(list);
    return list != NULL;
}

/* Fills a dict with the entries of the dict argument, then with the keyword arguments. */
static bool
fill(struct call *c, struct dict *d)
{
    const struct arguments *a = &c->given;
    if (a->n > 1 || (a->n == 1 && a->at[0].kind != VALUE_DICT))
        return render_fail(c->r, "a dict is made of another one, and of what is given by name");
    for (size_t i = 0; a->n == 1 && i < a->at[0].dict->n; i++)
        if (!dict_put(c->r, d, a->at[0].dict->at[i].key, a->at[0].dict->at[i].value))
            return false;
    for (size_t k = 0; k < a->n_keywords; k++)
        if (!dict_put(c->r, d, value_text(a->keywords[k].name), a->keywords[k].value))
            return false;
    return true;
}

static bool
dict(struct call *c, struct value *out)
{
    struct dict *d = render_dict(c->r);
    *out = (struct value){.kind = c->which == VALUE_DICT ? VALUE_DICT : VALUE_NAMESPACE, .dict = d};
    return d != NULL && fill(c, d);
}

/* raise_exception(): the template rejects the dialogue. */
static bool
raise_exception(struct call *c, struct value *out)
{
    struct buffer b = {0};
    (void)out;
    return value_write(c->r, &b, c->a[0]) && render_fail(c->r, "it says: %.*s", (int)b.len, b.at);
}

/* Copies a date's format, with what Python's datetime without a time zone has for %f (microseconds; dates here have
 * none), %z, %:z and %Z. Returns false if there is no room. */
static bool
resolve_format(struct slice asked, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < asked.len; i++) {
        const char *at = asked.data + i;
        const size_t left = asked.len - i;
        const char *text = NULL;
        size_t used = 1;
        if (left >= 2 && at[0] == '%') {
            used = left >= 3 && at[1] == ':' && at[2] == 'z' ? 3 : 2;
            text = at[1] == 'f' ? "000000" : at[1] == 'z' || at[1] == 'Z' || used == 3 ? "" : NULL;
        }
        const size_t len = text != NULL ? strlen(text) : used;
        if (len >= size - n)
            return false;
        memcpy(out + n, text != NULL ? text : at, len);
        n += len;
        i += used - 1;
    }
    out[n] = '\0';
    return true;
}

/* Formats in English regardless of the locale, like Python's datetime. */
static bool
strftime_now(struct call *c, struct value *out)
{
    char format[256], text[512];
    struct slice asked = {0};
    if (!call_text(c, 0, &asked))
        return false;
    if (memchr(asked.data, '\0', asked.len) != NULL || !resolve_format(asked, format, sizeof format))
        return render_fail(c->r, "a date's format is too long");
    if (format[0] == '\0')
        return *out = value_words(""), true;
    const locale_t english = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (english == (locale_t)0)
        return render_fail(c->r, "out of memory");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const size_t n = strftime_l(text, sizeof text, format, &c->r->now, english);
#pragma GCC diagnostic pop
    freelocale(english);
    *out = (struct value){.kind = VALUE_TEXT};
    return render_copy(c->r, text, n, &out->text);
}

const struct builtin global_functions[] = {
    {"range", range, 0, 1, {"-from", "-to", "-step"}}, {"dict", dict, VALUE_DICT, 0, {"*"}},
    {"namespace", dict, VALUE_NAMESPACE, 0, {"*"}},    {"raise_exception", raise_exception, 0, 1, {"message"}},
    {"strftime_now", strftime_now, 0, 1, {"format"}},  {0}};

/* Calls: binding of arguments to parameters. */

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

/* Charges a few readings of the text arguments; builtins charge longer work themselves. */
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

/* Binds a parameter to its positional or keyword argument or to its default, which may use earlier parameters. */
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
    struct scope *outer = r->scope, *inner = render_scope(r, m->scope);
    struct buffer b = {0};
    if (inner == NULL || !render_enter(r))
        return false;
    r->scope = inner;
    const bool ok = bind_parameters(r, m->node, given) && execute(r, m->node->body, &b) == ENDS_NORMALLY;
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
