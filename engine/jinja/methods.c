/* Methods of texts and dicts. Methods that change a value are not supported; transformers forbids them, too. */
#include "engine/jinja/template.h"

static bool
give(struct slice text, struct value *out)
{
    *out = value_text(text);
    return true;
}

/* Reads a required text argument. */
static bool
needed_text(struct call *c, size_t i, struct slice *text)
{
    return c->a[i].kind == VALUE_NONE ? render_fail(c->r, "a text is needed, not a NoneType") : call_text(c, i, text);
}

/* ---- methods of texts, and filters of the same names ---- */

/* Converts a filter's value to a text. */
static bool
as_text(struct call *c)
{
    return value_to_text(c->r, c->self, &c->self);
}

static bool
strip(struct call *c, struct value *out)
{
    struct slice what = {0};
    return as_text(c) && call_text(c, 0, &what) && render_step(c->r, c->self.text.len / 64 * what.len) &&
           give(text_strip(c->self.text, what, (enum text_side)c->which), out);
}

static bool
to_case(struct call *c, struct value *out)
{
    struct slice text;
    if (!as_text(c))
        return false;
    return text_to_case(c->r, c->self.text, (enum text_case)c->which, &text) && give(text, out);
}

static bool
replace(struct call *c, struct value *out)
{
    struct slice from = {0}, to = {0};
    int64_t most = -1;
    if (!needed_text(c, 0, &from) || !needed_text(c, 1, &to) || !call_whole(c, 2, &most))
        return false;
    const struct slice s = c->self.text;
    struct buffer b = {0};
    size_t at = 0;
    while (most != 0 && at <= s.len) {
        const size_t found = text_find(s, from, at);
        if (found == SIZE_MAX)
            break;
        size_t next = found + from.len;
        if (!buffer_add(c->r, &b, (struct slice){s.data + at, found - at}) || !buffer_add(c->r, &b, to) ||
            !render_step(c->r, 1))
            return false;
        if (from.len == 0) { /* between all characters */
            const size_t n = found < s.len ? text_character((struct slice){s.data + found, s.len - found}, NULL) : 1;
            if (found < s.len && !buffer_add(c->r, &b, (struct slice){s.data + found, n}))
                return false;
            next = found + n;
        }
        at = next;
        most -= most > 0;
    }
    return (at >= s.len || buffer_add(c->r, &b, (struct slice){s.data + at, s.len - at})) && give(buffer_text(&b), out);
}

/* The filter `replace`: accepts any values. */
static bool
replace_any(struct call *c, struct value *out)
{
    if (!value_to_text(c->r, c->a[0], &c->a[0]) || !value_to_text(c->r, c->a[1], &c->a[1]) || !as_text(c))
        return false;
    if (c->a[2].kind == VALUE_NONE)
        c->a[2] = value_int(-1);
    return replace(c, out);
}

static bool
join(struct call *c, struct value *out)
{
    struct walk s;
    struct value item;
    struct buffer b = {0};
    if (!walk_begin(c->r, c->a[0], &s))
        return false;
    for (size_t i = 0; walk_next(c->r, &s, &item); i++) {
        if (item.kind != VALUE_TEXT)
            return render_fail(c->r, "join() needs texts, not a %s", value_type(item));
        if ((i > 0 && !buffer_add(c->r, &b, c->self.text)) || !buffer_add(c->r, &b, item.text))
            return false;
    }
    return c->r->failed == NULL && give(buffer_text(&b), out);
}

/* "{} of {}".format(a, b); numbers, names, widths and precisions in the braces are not supported. */
static bool
format(struct call *c, struct value *out)
{
    const struct slice f = c->self.text;
    struct buffer b = {0};
    size_t next = 0;
    for (size_t at = 0; at < f.len;) {
        size_t end = at;
        while (end < f.len && f.data[end] != '{' && f.data[end] != '}')
            end++;
        const bool twice = end + 1 < f.len && f.data[end + 1] == f.data[end];
        if (!buffer_add(c->r, &b, (struct slice){f.data + at, end - at + twice}))
            return false;
        at = end + 1 + twice;
        if (end == f.len || twice)
            continue;
        if (f.data[end] == '}' || at == f.len || f.data[at++] != '}')
            return render_fail(c->r, "a format other than {} is not supported");
        if (next == c->given.n)
            return render_fail(c->r, "a format has more {} than there are values");
        if (!value_write(c->r, &b, c->given.at[next++]))
            return false;
    }
    return give(buffer_text(&b), out);
}

static bool
add_piece(struct call *c, struct list *l, size_t from, size_t to)
{
    return list_add(c->r, l, value_text((struct slice){c->self.text.data + from, to - from}));
}

/* Splits at runs of white space; white space at the ends is ignored. */
static bool
split_space(struct call *c, int64_t most, struct list *l)
{
    const struct slice all = c->self.text;
    struct slice s = text_strip(all, (struct slice){0}, TEXT_LEFT);
    while (s.len > 0) {
        const size_t begin = (size_t)(s.data - all.data);
        size_t end = begin;
        uint32_t code;
        if (most == 0) {
            s = text_strip(s, (struct slice){0}, TEXT_RIGHT);
            return add_piece(c, l, begin, begin + s.len);
        }
        while (end < all.len) {
            const size_t n = text_character((struct slice){all.data + end, all.len - end}, &code);
            if (text_is_space(code))
                break;
            end += n;
        }
        if (!add_piece(c, l, begin, end))
            return false;
        s = text_strip((struct slice){all.data + end, all.len - end}, (struct slice){0}, TEXT_LEFT);
        most -= most > 0;
    }
    return true;
}

static bool
split(struct call *c, struct value *out)
{
    const struct slice s = c->self.text;
    struct slice sign = {0};
    int64_t most = -1;
    struct list *l = render_list(c->r, LIST_LIST, 0);
    *out = value_list(l);
    if (l == NULL || !call_text(c, 0, &sign) || !call_whole(c, 1, &most))
        return false;
    if (sign.data == NULL)
        return split_space(c, most, l);
    if (sign.len == 0)
        return render_fail(c->r, "a text can't be split at an empty one");
    size_t at = 0;
    for (size_t found; most != 0 && (found = text_find(s, sign, at)) != SIZE_MAX; most -= most > 0) {
        if (!add_piece(c, l, at, found))
            return false;
        at = found + sign.len;
    }
    return add_piece(c, l, at, s.len);
}

/* startswith() and endswith(): the argument is a text or a tuple of texts. */
static bool
has_end(struct call *c, struct value *out)
{
    const bool tuple = value_is_list(c->a[0], LIST_TUPLE);
    const struct value *at = tuple ? c->a[0].list->at : c->a;
    bool is = false;
    for (size_t i = 0; i < (tuple ? c->a[0].list->n : 1); i++) {
        if (at[i].kind == VALUE_UNDEFINED)
            return render_fail_undefined(c->r, at[i]);
        if (at[i].kind != VALUE_TEXT)
            return render_fail(c->r, "a text is needed, or a tuple of texts, not a %s", value_type(at[i]));
        if (!render_step(c->r, 1 + at[i].text.len / 64))
            return false;
        is = is || (c->which == TEXT_LEFT ? text_begins : text_ends)(c->self.text, at[i].text);
    }
    *out = value_bool(is);
    return true;
}

static const struct builtin text_methods[] = {{"strip", strip, TEXT_BOTH, 0, {"-characters"}},
                                              {"lstrip", strip, TEXT_LEFT, 0, {"-characters"}},
                                              {"rstrip", strip, TEXT_RIGHT, 0, {"-characters"}},
                                              {"upper", to_case, CASE_UPPER, 0, {0}},
                                              {"lower", to_case, CASE_LOWER, 0, {0}},
                                              {"title", to_case, CASE_TITLE, 0, {0}},
                                              {"capitalize", to_case, CASE_CAPITAL, 0, {0}},
                                              {"replace", replace, 0, 2, {"-old", "-new", "-count"}},
                                              {"format", format, 0, 0, {"*"}},
                                              {"join", join, 0, 1, {"-values"}},
                                              {"split", split, 0, 0, {"sep", "maxsplit"}},
                                              {"startswith", has_end, TEXT_LEFT, 1, {"-what"}},
                                              {"endswith", has_end, TEXT_RIGHT, 1, {"-what"}},
                                              {0}};

/* ---- methods of dicts ---- */

enum { KEYS, VALUES, ITEMS };

/* items(), keys() and values() return a list. */
static bool
parts(struct call *c, struct value *out)
{
    const struct dict *d = c->self.dict;
    struct list *list = render_list(c->r, LIST_LIST, d->n);
    if (list == NULL || !render_step(c->r, d->n))
        return false;
    for (size_t i = 0; i < d->n; i++) {
        list->at[i] = c->which == KEYS ? d->at[i].key : d->at[i].value;
        if (c->which == ITEMS && !render_pair(c->r, d->at[i].key, d->at[i].value, &list->at[i]))
            return false;
    }
    *out = value_list(list);
    return true;
}

static bool
get(struct call *c, struct value *out)
{
    const struct value *there = value_check_key(c->r, c->a[0]) ? dict_find(c->r, c->self.dict, c->a[0]) : NULL;
    *out = there != NULL ? *there : c->a[1].kind != VALUE_MISSING ? c->a[1] : value_none();
    return c->r->failed == NULL;
}

static const struct builtin dict_methods[] = {{"items", parts, ITEMS, 0, {0}},
                                              {"keys", parts, KEYS, 0, {0}},
                                              {"values", parts, VALUES, 0, {0}},
                                              {"get", get, 0, 1, {"-key", "-default"}},
                                              {0}};

static bool
items_of_any(struct call *c, struct value *out)
{
    if (c->self.kind == VALUE_DICT)
        return parts(c, out);
    struct list *none = render_list(c->r, LIST_LIST, 0);
    *out = value_list(none);
    return none != NULL &&
           (c->self.kind == VALUE_UNDEFINED || render_fail(c->r, "a %s has no items", value_type(c->self)));
}

const struct builtin method_filters[] = {
    {"trim", strip, TEXT_BOTH, 0, {"chars"}}, {"upper", to_case, CASE_UPPER, 0, {0}},
    {"lower", to_case, CASE_LOWER, 0, {0}},   {"capitalize", to_case, CASE_CAPITAL, 0, {0}},
    {"title", to_case, CASE_WORDS, 0, {0}},   {"replace", replace_any, 0, 2, {"old", "new", "count"}},
    {"items", items_of_any, ITEMS, 0, {0}},   {0}};

const struct builtin *
method_find(struct value v, struct slice name)
{
    return v.kind == VALUE_TEXT   ? builtin_find(text_methods, name)
           : v.kind == VALUE_DICT ? builtin_find(dict_methods, name)
                                  : NULL;
}
