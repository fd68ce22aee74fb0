/* Functions that every template has. */
#include "engine/chat/call.h"

#include <locale.h>

#include "engine/chat/write.h"

#define MOST_RANGE 100000 /* as in jinja2's sandbox */

static bool
range(struct call *c, struct value *out)
{
    int64_t from = 0, to = 0, step = 1;
    const bool one = c->a[1].kind == VALUE_MISSING;
    if (!call_whole(c, 0, one ? &to : &from) || !call_whole(c, 1, &to) || !call_whole(c, 2, &step))
        return false;
    if (step == 0)
        return render_fail(c->r, "a range's step is zero");
    int64_t way, n = 0;
    if (__builtin_sub_overflow(to, from, &way) || step == INT64_MIN)
        return render_fail(c->r, "a range has more than %d values", MOST_RANGE);
    if ((way > 0) == (step > 0) && way != 0)
        n = (way > 0 ? way - 1 : -1 - way) / (step > 0 ? step : -step) + 1;
    if (n > MOST_RANGE)
        return render_fail(c->r, "a range has more than %d values", MOST_RANGE);
    struct list *list = render_list(c->r, LIST_RANGE, (size_t)n);
    if (list == NULL || !render_step(c->r, (size_t)n))
        return false;
    for (int64_t i = 0; i < n; i++)
        list->at[i] = value_int(from + i * step);
    *out = value_list(list);
    return true;
}

/* Fills a dict with the entries of the dict that is given, then with the arguments by name. */
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

/* A template refuses a dialogue. */
static bool
raise_exception(struct call *c, struct value *out)
{
    struct buffer b = {0};
    (void)out;
    return value_write(c->r, &b, c->a[0]) && render_fail(c->r, "it says: %.*s", (int)b.len, b.at);
}

/* In English whatever the locale, as Python's datetime has it. */
static bool
strftime_now(struct call *c, struct value *out)
{
    char format[256], text[512];
    struct slice asked = {0};
    if (!call_text(c, 0, &asked))
        return false;
    if (asked.len >= sizeof format || asked.len == 0 || memchr(asked.data, '\0', asked.len) != NULL)
        return asked.len == 0 ? (*out = value_words(""), true) : render_fail(c->r, "a date's format is too long");
    memcpy(format, asked.data, asked.len);
    format[asked.len] = '\0';
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
