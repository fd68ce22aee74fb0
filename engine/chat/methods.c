/* Methods of values. Methods of Markup return Markup. A method that would change its value is an error, as in jinja2's
 * immutable sandbox. */
#include "engine/chat/template.h"

static bool
give(const struct call *c, struct slice text, struct value *out)
{
    *out = value_text_like(c->self, text);
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
           give(c, text_strip(c->self.text, what, (enum text_side)c->which), out);
}

static bool
to_case(struct call *c, struct value *out)
{
    struct slice text;
    if (!as_text(c))
        return false;
    c->self.markup = c->self.markup && c->which != CASE_WORDS;
    return text_to_case(c->r, c->self.text, (enum text_case)c->which, &text) && give(c, text, out);
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
    return (at >= s.len || buffer_add(c->r, &b, (struct slice){s.data + at, s.len - at})) &&
           give(c, buffer_text(&b), out);
}

/* The filter `replace`: accepts any values; Markup is not escaped. */
static bool
replace_any(struct call *c, struct value *out)
{
    if (!value_to_text(c->r, c->a[0], &c->a[0]) || !value_to_text(c->r, c->a[1], &c->a[1]) || !as_text(c))
        return false;
    if (c->a[2].kind == VALUE_NONE)
        c->a[2] = value_int(-1);
    c->self.markup = false;
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
    return c->r->failed == NULL && give(c, buffer_text(&b), out);
}

/* Finds the value of {}, {0} or {name}. */
static bool
find_field(struct call *c, struct slice field, size_t *next, struct value *v)
{
    const struct arguments *given = &c->given;
    size_t number = field.len == 0 ? *next : 0;
    bool by_name = false;
    if (!render_step(c->r, 1 + given->n_keywords / 8 * (1 + field.len / 64)))
        return false;
    for (size_t i = 0; i < field.len; i++) {
        const char d = field.data[i];
        if (memchr(":!.[{", d, 5) != NULL)
            return render_fail(c->r, "a format like {%.*s} is not supported", (int)field.len, field.data);
        by_name = by_name || d < '0' || d > '9' || i > 8;
        number = number * 10 + (size_t)(by_name ? 0 : d - '0');
    }
    for (size_t i = 0; by_name && i < given->n_keywords; i++)
        if (slice_compare(given->keywords[i].name, field) == 0) {
            *v = given->keywords[i].value;
            return true;
        }
    if (by_name || (number >= given->n && number < SIZE_MAX))
        return render_fail(c->r, "no value is given for {%.*s}", (int)field.len, field.data);
    if (field.len == 0 ? *next == SIZE_MAX : *next > 0 && *next < SIZE_MAX)
        return render_fail(c->r, "a format has {} and {0}");
    *next = field.len == 0 ? *next + 1 : SIZE_MAX;
    *v = given->at[number];
    return true;
}

/* "{} of {n}".format(a, n=b); widths and precisions are not supported. */
static bool
format(struct call *c, struct value *out)
{
    const struct slice f = c->self.text;
    struct buffer b = {0};
    struct value v;
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
        const size_t close = f.data[end] == '{' ? text_find(f, slice_of("}"), at) : SIZE_MAX;
        if (close == SIZE_MAX)
            return render_fail(c->r, "a format has a single '%c'", f.data[end]);
        if (!find_field(c, (struct slice){f.data + at, close - at}, &next, &v) || !value_write(c->r, &b, v))
            return false;
        at = close + 1;
    }
    return give(c, buffer_text(&b), out);
}

static bool
add_piece(struct call *c, struct list *l, size_t from, size_t to)
{
    return list_add(c->r, l, value_text_like(c->self, (struct slice){c->self.text.data + from, to - from}));
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

static bool
splitlines(struct call *c, struct value *out)
{
    struct list *l = render_list(c->r, LIST_LIST, 0);
    struct slice line;
    *out = value_list(l);
    for (size_t at = 0, end; l != NULL && text_line(c->self.text, &at, &line, &end);)
        if (!list_add(c->r, l, value_text_like(c->self, line)))
            return false;
    return l != NULL;
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

static bool
find(struct call *c, struct value *out)
{
    const struct slice s = c->self.text;
    struct slice what = {0};
    if (!needed_text(c, 0, &what))
        return false;
    const size_t found = text_find(s, what, 0);
    *out = value_int(found == SIZE_MAX ? -1 : (int64_t)text_length((struct slice){s.data, found}));
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
                                              {"splitlines", splitlines, 0, 0, {0}},
                                              {"startswith", has_end, TEXT_LEFT, 1, {"-what"}},
                                              {"endswith", has_end, TEXT_RIGHT, 1, {"-what"}},
                                              {"find", find, 0, 1, {"-what"}},
                                              {0}};

/* ---- methods of dicts ---- */

/* items(), keys() and values() return a list of their kind; the filter `items` returns a generator. */
static bool
parts(struct call *c, struct value *out)
{
    const struct dict *d = c->self.dict;
    struct list *list = render_list(c->r, (enum list_kind)c->which, d->n);
    if (list == NULL || !render_step(c->r, d->n))
        return false;
    for (size_t i = 0; i < d->n; i++) {
        list->at[i] = c->which == LIST_KEYS ? d->at[i].key : d->at[i].value;
        if (c->which != LIST_KEYS && c->which != LIST_VALUES &&
            !render_pair(c->r, d->at[i].key, d->at[i].value, &list->at[i]))
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

static const struct builtin dict_methods[] = {{"items", parts, LIST_ITEMS, 0, {0}},
                                              {"keys", parts, LIST_KEYS, 0, {0}},
                                              {"values", parts, LIST_VALUES, 0, {0}},
                                              {"get", get, 0, 1, {"-key", "-default"}},
                                              {0}};

static bool
items_of_any(struct call *c, struct value *out)
{
    if (c->self.kind == VALUE_DICT)
        return parts(c, out);
    struct list *none = render_list(c->r, LIST_GENERATOR, 0);
    if (none != NULL && c->self.kind != VALUE_UNDEFINED)
        none->broken = "only a dict has items";
    *out = value_list(none);
    return none != NULL;
}

const struct builtin method_filters[] = {
    {"trim", strip, TEXT_BOTH, 0, {"chars"}},        {"upper", to_case, CASE_UPPER, 0, {0}},
    {"lower", to_case, CASE_LOWER, 0, {0}},          {"capitalize", to_case, CASE_CAPITAL, 0, {0}},
    {"title", to_case, CASE_WORDS, 0, {0}},          {"replace", replace_any, 0, 2, {"old", "new", "count"}},
    {"items", items_of_any, LIST_GENERATOR, 0, {0}}, {0}};

/* ---- refused methods ---- */

static bool
refuse(struct call *c, struct value *out)
{
    (void)out;
    return render_fail(c->r, "a %s can't be changed by a template; make another one", value_type(c->self));
}

static const struct builtin changes = {"", refuse, 0, 0, {"*"}};
static const char list_changes[] = " append clear extend insert pop remove reverse sort ",
                  dict_changes[] = " clear pop popitem setdefault update ";

/* Other Python methods, which are not supported. */
static const char other_of_lists[] = " copy count index ", other_of_dicts[] = " copy fromkeys ",
                  other_of_texts[] =
                      " casefold center count encode escape expandtabs format_map index isalnum isalpha isascii "
                      "isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper "
                      "ljust maketrans partition removeprefix removesuffix rfind rindex rjust rpartition rsplit "
                      "striptags swapcase translate unescape "
                      "zfill ",
                  other_of_markup[] = " format join replace ",
                  other_of_generators[] = " close gi_code gi_frame gi_running gi_yieldfrom send throw ",
                  other_of_ranges[] = " count index start step stop ", other_of_views[] = " isdisjoint mapping ",
                  other_of_numbers[] =
                      " as_integer_ratio bit_count bit_length conjugate denominator from_bytes fromhex hex "
                      "imag is_integer numerator real to_bytes ",
                  other_of_macros[] = " arguments caller catch_kwargs catch_varargs name ";

static bool
is_among(const char *names, struct slice name)
{
    char padded[40];
    const int n = snprintf(padded, sizeof padded, " %.*s ", (int)name.len, name.data);
    return name.len > 0 && n > 0 && (size_t)n < sizeof padded && strstr(names, padded) != NULL;
}

const struct builtin *
method_find(struct value v, struct slice name, bool *refused)
{
    const struct builtin *b = NULL;
    const char *others = "";
    switch (v.kind) {
    case VALUE_TEXT:
        others = other_of_texts;
        if (!v.markup || !(*refused = is_among(other_of_markup, name)))
            b = builtin_find(text_methods, name);
        break;
    case VALUE_LIST:
        others = v.list->kind <= LIST_TUPLE       ? other_of_lists
                 : v.list->kind == LIST_RANGE     ? other_of_ranges
                 : v.list->kind == LIST_GENERATOR ? other_of_generators
                                                  : other_of_views;
        if (v.list->kind == LIST_LIST && is_among(list_changes, name))
            b = &changes;
        break;
    case VALUE_DICT:
        others = other_of_dicts;
        b = is_among(dict_changes, name) ? &changes : builtin_find(dict_methods, name);
        break;
    case VALUE_BOOL:
    case VALUE_INT:
    case VALUE_FLOAT: others = other_of_numbers; break;
    case VALUE_MACRO: others = other_of_macros; break;
    default: break;
    }
    *refused = *refused || (b == NULL && is_among(others, name));
    return b;
}
