/* Filters of lists (sort, select, map), and filters that return a text, a number or a default. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "engine/jinja/template.h"

/* Returns the sort key of a value: the value or its attribute, in lower case unless `cased`. */
static bool
key_of(struct render *r, struct value item, struct value attribute, bool cased, struct value *key)
{
    if (!attribute_path(r, item, attribute, value_none(), key))
        return false;
    return cased || key->kind != VALUE_TEXT || text_to_case(r, key->text, CASE_LOWER, &key->text);
}

/* Sorts values by the keys at the same indexes; stable. */
static bool
sort_by(struct render *r, struct list *values, struct list *keys, bool reverse)
{
    for (size_t i = 1; i < values->n; i++) {
        const struct value v = values->at[i], key = keys->at[i];
        size_t at = i;
        for (; at > 0; at--) {
            int order;
            const struct value other = keys->at[at - 1];
            if (!render_step(r, 1) || !values_order(r, reverse ? other : key, reverse ? key : other, "<", &order))
                return false;
            if (order != -1)
                break;
            values->at[at] = values->at[at - 1];
            keys->at[at] = keys->at[at - 1];
        }
        values->at[at] = v;
        keys->at[at] = key;
    }
    return true;
}

static bool
sort(struct call *c, struct value *out)
{
    struct list *values = walk_list(c->r, c->self, LIST_LIST);
    struct list *keys = values == NULL ? NULL : render_list(c->r, LIST_LIST, values->n);
    if (keys == NULL)
        return false;
    if (c->a[2].kind == VALUE_TEXT && text_find(c->a[2].text, slice_of(","), 0) != SIZE_MAX)
        return render_fail(c->r, "sorting by several attributes is not supported");
    for (size_t i = 0; i < values->n; i++)
        if (!key_of(c->r, values->at[i], c->a[2], value_truth(c->a[1]), &keys->at[i]))
            return false;
    *out = value_list(values);
    return sort_by(c->r, values, keys, value_truth(c->a[0]));
}

/* Sorts by keys. */
static bool
dictsort(struct call *c, struct value *out)
{
    if (c->self.kind != VALUE_DICT)
        return call_unfit(c, "sorted as a dict");
    const struct dict *d = c->self.dict;
    struct list *all = render_list(c->r, LIST_LIST, d->n), *keys = render_list(c->r, LIST_LIST, d->n);
    if (all == NULL || keys == NULL)
        return false;
    for (size_t i = 0; i < d->n; i++)
        if (!render_pair(c->r, d->at[i].key, d->at[i].value, &all->at[i]) ||
            !key_of(c->r, d->at[i].key, value_none(), false, &keys->at[i]))
            return false;
    *out = value_list(all);
    return sort_by(c->r, all, keys, false);
}

static bool
list(struct call *c, struct value *out)
{
    struct list *all = walk_list(c->r, c->self, LIST_LIST);
    *out = value_list(all);
    return all != NULL;
}

static bool
first(struct call *c, struct value *out)
{
    struct walk s;
    if (!walk_begin(c->r, c->self, &s))
        return false;
    return walk_next(c->r, &s, out) || (c->r->failed == NULL && value_undefined(c->r, out, "there is no first item"));
}

static bool
last(struct call *c, struct value *out)
{
    struct list *all;
    if (value_is_list(c->self, LIST_GENERATOR))
        return render_fail(c->r, "a generator has no last item; `| list` makes a list");
    if ((all = walk_list(c->r, c->self, LIST_LIST)) == NULL)
        return false;
    if (all->n == 0)
        return value_undefined(c->r, out, "there is no last item");
    *out = all->at[all->n - 1];
    return true;
}

/* min and max: `which` is -1 or 1. */
static bool
best(struct call *c, struct value *out)
{
    const int wanted = c->which;
    struct walk s;
    struct value item, key, best_key = {0};
    if (!walk_begin(c->r, c->self, &s))
        return false;
    while (walk_next(c->r, &s, &item)) {
        int order = wanted;
        if (!key_of(c->r, item, c->a[1], value_truth(c->a[0]), &key) ||
            (best_key.kind != VALUE_MISSING && !values_order(c->r, key, best_key, wanted < 0 ? "<" : ">", &order)))
            return false;
        if (order == wanted) {
            *out = item;
            best_key = key;
        }
    }
    if (best_key.kind == VALUE_MISSING && c->r->failed == NULL)
        return value_undefined(c->r, out, "there is no item to take");
    return c->r->failed == NULL;
}

static bool
unique(struct call *c, struct value *out)
{
    struct walk s;
    struct value item, key;
    struct list *kept = render_list(c->r, LIST_GENERATOR, 0), *seen = render_list(c->r, LIST_LIST, 0);
    *out = value_list(kept);
    bool ok = kept != NULL && seen != NULL && walk_begin(c->r, c->self, &s);
    while (ok && walk_next(c->r, &s, &item)) {
        bool there = false;
        ok = key_of(c->r, item, c->a[1], value_truth(c->a[0]), &key) && value_check_key(c->r, key) &&
             value_contains(c->r, value_list(seen), key, &there) &&
             (there || (list_add(c->r, kept, item) && list_add(c->r, seen, key)));
    }
    return ok && c->r->failed == NULL;
}

static bool
reverse(struct call *c, struct value *out)
{
    struct list *all;
    struct buffer b = {0};
    if ((all = walk_list(c->r, c->self, LIST_LIST)) == NULL)
        return false;
    for (size_t i = 0; i < all->n / 2; i++) {
        const struct value v = all->at[i];
        all->at[i] = all->at[all->n - 1 - i];
        all->at[all->n - 1 - i] = v;
    }
    all->kind = value_is_list(c->self, LIST_GENERATOR) ? LIST_LIST : LIST_GENERATOR;
    *out = value_list(all);
    for (size_t i = 0; c->self.kind == VALUE_TEXT && i < all->n; i++)
        if (!buffer_add(c->r, &b, all->at[i].text))
            return false;
    if (c->self.kind == VALUE_TEXT)
        *out = value_text(buffer_text(&b));
    return true;
}

/* ---- map, select and similar filters, which return generators ---- */

static struct value
keyword(const struct call *c, const char *name)
{
    for (size_t k = 0; k < c->given.n_keywords; k++)
        if (slice_is(c->given.keywords[k].name, name))
            return c->given.keywords[k].value;
    return (struct value){.kind = VALUE_MISSING};
}

/* Applies map's filter to a value, or reads its attribute. */
static bool
map_one(struct call *c, struct value item, struct value *out)
{
    const struct value attribute = keyword(c, "attribute"), otherwise = keyword(c, "default");
    struct arguments rest = c->given;
    if (c->given.n == 0 && attribute.kind != VALUE_MISSING) {
        if (c->given.n_keywords > (otherwise.kind != VALUE_MISSING ? 2u : 1u))
            return render_fail(c->r, "the filter 'map' takes an attribute and a default");
        return attribute_path(c->r, item, attribute, otherwise, out);
    }
    if (c->given.n == 0 || c->given.at[0].kind != VALUE_TEXT)
        return render_fail(c->r, "the filter 'map' needs a filter's name");
    rest.at++;
    rest.n--;
    return filter_call(c->r, c->given.at[0].text, item, &rest, out);
}

/* Evaluates the named test for a value or its attribute; without a name, the truth of the value. */
static bool
select_one(struct call *c, struct value item, bool attributes, bool *holds)
{
    struct arguments rest = c->given;
    if (attributes) {
        if (rest.n == 0)
            return render_fail(c->r, "an attribute's name is missing");
        if (!attribute_path(c->r, item, rest.at[0], value_none(), &item))
            return false;
        rest.at++;
        rest.n--;
    }
    if (rest.n == 0) {
        *holds = value_truth(item);
        return true;
    }
    if (rest.at[0].kind != VALUE_TEXT)
        return render_fail(c->r, "a test's name is missing");
    const struct slice name = rest.at[0].text;
    rest.at++;
    rest.n--;
    return test_call(c->r, name, item, &rest, holds);
}

enum { MAP = 0, CHOOSE = 1, REJECT = 2, BY_ATTRIBUTE = 4 };

static bool
choose(struct call *c, struct value *out)
{
    struct walk s;
    struct value item;
    struct list *kept = render_list(c->r, LIST_GENERATOR, 0);
    bool holds = true;
    *out = value_list(kept);
    if (kept == NULL || !value_truth(c->self))
        return kept != NULL;
    bool ok = walk_begin(c->r, c->self, &s);
    while (ok && walk_next(c->r, &s, &item)) {
        ok = c->which == MAP ? map_one(c, item, &item) : select_one(c, item, (c->which & BY_ATTRIBUTE) != 0, &holds);
        if (ok && holds == ((c->which & REJECT) == 0))
            ok = list_add(c->r, kept, item);
    }
    return ok && c->r->failed == NULL;
}

const struct builtin list_filters[] = {{"sort", sort, 0, 0, {"reverse", "case_sensitive", "attribute"}},
                                       {"dictsort", dictsort, 0, 0, {0}},
                                       {"list", list, 0, 0, {0}},
                                       {"first", first, 0, 0, {0}},
                                       {"last", last, 0, 0, {0}},
                                       {"min", best, -1, 0, {"case_sensitive", "attribute"}},
                                       {"max", best, 1, 0, {"case_sensitive", "attribute"}},
                                       {"unique", unique, 0, 0, {"case_sensitive", "attribute"}},
                                       {"reverse", reverse, 0, 0, {0}},
                                       {"map", choose, MAP, 0, {"*"}},
                                       {"select", choose, CHOOSE, 0, {"*"}},
                                       {"reject", choose, REJECT, 0, {"*"}},
                                       {"selectattr", choose, CHOOSE | BY_ATTRIBUTE, 0, {"*"}},
                                       {"rejectattr", choose, REJECT | BY_ATTRIBUTE, 0, {"*"}},
                                       {0}};

/* Filters that return a text, a number or a default. */

static bool
string(struct call *c, struct value *out)
{
    return value_to_text(c->r, c->self, out);
}

static bool
safe(struct call *c, struct value *out)
{
    if (!value_to_text(c->r, c->self, out))
        return false;
    out->markup = true;
    return true;
}

/* Reads the next line, which ends before \n, \r or \r\n, from byte *at. Returns false at the end of the text. */
static bool
next_line(struct slice s, size_t *at, struct slice *line)
{
    if (*at >= s.len)
        return false;
    const char *begin = s.data + *at;
    size_t n = 0;
    while (*at + n < s.len && begin[n] != '\n' && begin[n] != '\r')
        n++;
    *line = (struct slice){begin, n};
    *at += n + (text_begins((struct slice){begin + n, s.len - *at - n}, slice_of("\r\n")) ? 2 : 1);
    return true;
}

/* Indents the lines, by default except the first and blank lines. */
static bool
indent(struct call *c, struct value *out)
{
    int64_t width = 4;
    struct slice by = {0}, line;
    struct buffer b = {0}, blanks = {0};
    if (c->self.kind != VALUE_TEXT)
        return call_unfit(c, "indented");
    if (c->a[0].kind == VALUE_TEXT)
        by = c->a[0].text;
    else if (!call_whole(c, 0, &width) || !buffer_fill(c->r, &blanks, slice_of(" "), width > 0 ? (size_t)width : 0))
        return false;
    else
        by = buffer_text(&blanks);
    bool ok = !value_truth(c->a[1]) || buffer_add(c->r, &b, by);
    struct buffer whole = {0};
    ok = ok && buffer_add(c->r, &whole, c->self.text) && buffer_add_words(c->r, &whole, "\n");
    bool first = true;
    for (size_t at = 0; ok && next_line(buffer_text(&whole), &at, &line); first = false) {
        const bool moved = !first && (line.len > 0 || value_truth(c->a[2]));
        ok = (first || buffer_add_words(c->r, &b, "\n")) && (!moved || buffer_add(c->r, &b, by)) &&
             buffer_add(c->r, &b, line);
    }
    *out = value_text(buffer_text(&b));
    return ok;
}

/* tojson as transformers defines it: without HTML escapes, with the parameters of json.dumps(). */
static bool
tojson(struct call *c, struct value *out)
{
    struct json_style style = {.ascii = value_truth(c->a[0]), .sorted = value_truth(c->a[3])};
    struct buffer b = {0}, blanks = {0};
    int64_t width = 0;
    if (c->a[1].kind == VALUE_TEXT)
        style.indent = c->a[1].text;
    else if (c->a[1].kind != VALUE_NONE && c->a[1].kind != VALUE_MISSING) {
        if (!call_whole(c, 1, &width) || !buffer_fill(c->r, &blanks, slice_of(" "), width > 0 ? (size_t)width : 0))
            return false;
        style.indent = buffer_text(&blanks);
    }
    style.item = slice_of(style.indent.data != NULL ? "," : ", ");
    style.key = slice_of(": ");
    if (c->a[2].kind != VALUE_NONE && c->a[2].kind != VALUE_MISSING) {
        const struct list *two = c->a[2].kind == VALUE_LIST ? c->a[2].list : NULL;
        if (two == NULL || two->n != 2 || two->at[0].kind != VALUE_TEXT || two->at[1].kind != VALUE_TEXT)
            return render_fail(c->r, "the separators of 'tojson' are two texts");
        style.item = two->at[0].text;
        style.key = two->at[1].text;
    }
    if (!value_write_json(c->r, &b, c->self, &style, 0))
        return false;
    *out = value_text(buffer_text(&b));
    return true;
}

static bool
join(struct call *c, struct value *out)
{
    struct walk s;
    struct value item, sign = value_words("");
    struct buffer b = {0};
    if ((c->a[0].kind != VALUE_MISSING && !value_to_text(c->r, c->a[0], &sign)) || !walk_begin(c->r, c->self, &s))
        return false;
    for (size_t i = 0; walk_next(c->r, &s, &item); i++)
        if (!attribute_path(c->r, item, c->a[1], value_none(), &item) || (i > 0 && !buffer_add(c->r, &b, sign.text)) ||
            !value_write(c->r, &b, item))
            return false;
    *out = value_text(buffer_text(&b));
    return c->r->failed == NULL;
}

/* ---- numbers ---- */

/* Parses a decimal number; *v is VALUE_MISSING if the text is not one. */
static bool
read_number(struct render *r, struct slice s, struct value *v)
{
    char text[128], *end = NULL;
    s = text_strip(s, (struct slice){0}, TEXT_BOTH);
    *v = (struct value){.kind = VALUE_MISSING};
    if (s.len == 0 || s.len >= sizeof text)
        return true;
    memcpy(text, s.data, s.len);
    text[s.len] = '\0';
    if (text[strspn(text, "+-.0123456789eE")] != '\0')
        return true;
    errno = 0;
    const long long whole = strtoll(text, &end, 10);
    if (*end == '\0') {
        *v = value_int(whole);
        return errno == 0 || render_fail(r, "a number is too large");
    }
    const double real = strtod(text, &end);
    if (*end == '\0')
        *v = value_float(real);
    return true;
}

static bool
to_int(struct call *c, struct value *out)
{
    struct value v = c->self;
    double real;
    if (v.kind == VALUE_UNDEFINED)
        return render_fail_undefined(c->r, v);
    if (v.kind == VALUE_TEXT && !read_number(c->r, v.text, &v))
        return false;
    *out = c->a[0].kind != VALUE_MISSING ? c->a[0] : value_int(0);
    if (!value_is_number(v, &real))
        return true;
    if (!(fabs(real) < 9.2e18))
        return render_fail(c->r, "a number is too large");
    *out = value_int(v.kind == VALUE_INT ? v.whole : (int64_t)real);
    return true;
}

static bool
length(struct call *c, struct value *out)
{
    size_t n;
    if (!value_length(c->self, &n))
        return render_fail(c->r, "a %s has no length", value_type(c->self));
    *out = value_int((int64_t)n);
    return true;
}

static bool
default_(struct call *c, struct value *out)
{
    const bool needed = c->self.kind == VALUE_UNDEFINED || (value_truth(c->a[1]) && !value_truth(c->self));
    *out = !needed ? c->self : c->a[0].kind != VALUE_MISSING ? c->a[0] : value_words("");
    return true;
}

const struct builtin value_filters[] = {{"string", string, 0, 0, {0}},
                                        {"safe", safe, 0, 0, {0}},
                                        {"indent", indent, 0, 0, {"width", "first", "blank"}},
                                        {"tojson", tojson, 0, 0, {"ensure_ascii", "indent", "separators", "sort_keys"}},
                                        {"join", join, 0, 0, {"d", "attribute"}},
                                        {"int", to_int, 0, 0, {"default"}},
                                        {"length", length, 0, 0, {0}},
                                        {"count", length, 0, 0, {0}},
                                        {"default", default_, 0, 0, {"default_value", "boolean"}},
                                        {"d", default_, 0, 0, {"default_value", "boolean"}},
                                        {0}};
