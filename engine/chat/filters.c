/* Filters by name, and those that make texts. */
#include "engine/chat/buffer.h"
#include "engine/chat/evaluate.h"
#include "engine/chat/format.h"
#include "engine/chat/functions.h"
#include "engine/chat/parser.h"
#include "engine/chat/text.h"
#include "engine/chat/text_case.h"
#include "engine/chat/walk.h"
#include "engine/chat/write.h"

static const struct builtin *
find_filter(struct slice name)
{
    const struct builtin *const tables[] = {text_filters, number_filters, list_filters, select_filters};
    const struct builtin *b = NULL;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && b == NULL; i++)
        b = builtin_find(tables[i], name);
    return b;
}

bool
filter_known(struct slice name)
{
    return find_filter(name) != NULL;
}

bool
filter_call(struct render *r, struct slice name, struct value self, const struct arguments *given, struct value *out)
{
    const struct builtin *b = find_filter(name);
    return b != NULL ? builtin_call(r, b, "the filter", self, given, out)
                     : render_fail(r, "the filter '%.*s' is not supported", (int)name.len, name.data);
}

/* What the filter is of, as a text. */
static bool
as_text(struct call *c)
{
    return value_to_text(c->r, c->self, &c->self);
}

/* By the text's own method. */
static bool
by_method(struct call *c, const struct builtin *table, const char *name, struct value *out)
{
    return as_text(c) && builtin_find(table, slice_of(name))->function(c, out);
}

static bool
upper(struct call *c, struct value *out)
{
    return by_method(c, text_methods, "upper", out);
}

static bool
lower(struct call *c, struct value *out)
{
    return by_method(c, text_methods, "lower", out);
}

static bool
capitalize(struct call *c, struct value *out)
{
    return by_method(c, text_methods, "capitalize", out);
}

static bool
trim(struct call *c, struct value *out)
{
    return by_method(c, text_methods, "strip", out);
}

static bool
center(struct call *c, struct value *out)
{
    if (c->a[0].kind == VALUE_MISSING)
        c->a[0] = value_int(80);
    return by_method(c, text_methods, "center", out);
}

static bool
string(struct call *c, struct value *out)
{
    return value_to_text(c->r, c->self, out);
}

/* A word begins behind a blank, a hyphen or an opening bracket; jinja2's own idea of it. */
static bool
title(struct call *c, struct value *out)
{
    if (!as_text(c))
        return false;
    const struct slice s = c->self.text;
    struct buffer b = {0};
    for (size_t at = 0; at < s.len;) {
        size_t end = at, n = 0;
        bool sign = false;
        for (bool same = true; same && end < s.len; end += same ? n : 0) {
            uint32_t code;
            n = text_character((struct slice){s.data + end, s.len - end}, &code);
            const bool is = text_is_space(code) || (code < 0x80 && memchr("-({[<", (int)code, 5) != NULL);
            same = end == at || is == sign;
            sign = end == at ? is : sign;
        }
        const size_t first = text_character((struct slice){s.data + at, end - at}, NULL);
        struct slice head, tail;
        if (!text_to_case(c->r, (struct slice){s.data + at, first}, CASE_UPPER, &head) ||
            !text_to_case(c->r, (struct slice){s.data + at + first, end - at - first}, CASE_LOWER, &tail) ||
            !buffer_add(c->r, &b, head) || !buffer_add(c->r, &b, tail))
            return false;
        at = end;
    }
    *out = value_text(buffer_text(&b));
    return true;
}

static bool
replace(struct call *c, struct value *out)
{
    if (!value_to_text(c->r, c->a[0], &c->a[0]) || !value_to_text(c->r, c->a[1], &c->a[1]) || !as_text(c))
        return false;
    if (c->a[2].kind == VALUE_NONE)
        c->a[2] = value_int(-1);
    c->self.markup = false;
    return by_method(c, text_methods, "replace", out);
}

static bool
safe(struct call *c, struct value *out)
{
    if (!value_to_text(c->r, c->self, out))
        return false;
    out->markup = true;
    return true;
}

static bool
escape(struct call *c, struct value *out)
{
    return value_escape(c->r, c->self, out);
}

static bool
force_escape(struct call *c, struct value *out)
{
    if (!as_text(c))
        return false;
    c->self.markup = false;
    return value_escape(c->r, c->self, out);
}

static bool
format(struct call *c, struct value *out)
{
    const struct arguments *a = &c->given;
    struct list *values = render_list(c->r, LIST_TUPLE, a->n);
    struct dict *named = render_dict(c->r);
    if (values == NULL || named == NULL || !as_text(c))
        return false;
    if (a->n > 0 && a->n_keywords > 0)
        return render_fail(c->r, "the filter 'format' takes values by position or by name, not both");
    for (size_t i = 0; i < a->n; i++)
        values->at[i] = a->at[i];
    for (size_t k = 0; k < a->n_keywords; k++)
        if (!dict_put(c->r, named, value_text(a->keywords[k].name), a->keywords[k].value))
            return false;
    return format_percent(c->r, c->self, a->n_keywords > 0 ? value_dict(named) : value_list(values), out);
}

/* Lines, all but the first and the blank ones moved in. */
static bool
indent(struct call *c, struct value *out)
{
    int64_t width = 4;
    struct slice by = {0}, line;
    struct buffer b = {0}, blanks = {0};
    if (c->self.kind != VALUE_TEXT)
        return c->self.kind == VALUE_UNDEFINED ? call_undefined(c, c->self)
                                               : render_fail(c->r, "a %s can't be indented", value_type(c->self));
    if (c->a[0].kind == VALUE_TEXT)
        by = c->a[0].text;
    else if (!call_whole(c, 0, &width) || !buffer_fill(c->r, &blanks, slice_of(" "), width > 0 ? (size_t)width : 0))
        return false;
    else
        by = buffer_text(&blanks);
    bool ok = !call_truth(c, 1) || buffer_add(c->r, &b, by);
    struct buffer whole = {0};
    ok = ok && buffer_add(c->r, &whole, c->self.text) && buffer_add_words(c->r, &whole, "\n");
    bool first = true;
    for (size_t at = 0, end; ok && text_line(buffer_text(&whole), &at, &line, &end); first = false) {
        const bool moved = !first && (line.len > 0 || call_truth(c, 2));
        ok = (first || buffer_add_words(c->r, &b, "\n")) && (!moved || buffer_add(c->r, &b, by)) &&
             buffer_add(c->r, &b, line);
    }
    *out = value_text_like(c->self, buffer_text(&b));
    return ok;
}

static bool
truncate(struct call *c, struct value *out)
{
    int64_t length = 255, leeway = 5;
    struct slice end = {"...", 3};
    struct buffer b = {0};
    size_t n;
    if (!call_whole(c, 0, &length) || !call_text(c, 2, &end) ||
        (c->a[3].kind != VALUE_NONE && !call_whole(c, 3, &leeway)))
        return false;
    const int64_t n_end = (int64_t)text_length(end);
    if (length < n_end || leeway < 0)
        return render_fail(c->r, "the filter 'truncate' needs more length than its end has");
    const bool measured = value_length(c->self, &n);
    if (measured && (int64_t)n - leeway <= length) {
        *out = c->self;
        return true;
    }
    if (c->self.kind != VALUE_TEXT)
        return render_fail(c->r, "a %s can't be truncated", value_type(c->self));
    struct slice kept = text_part(c->self.text, 0, (size_t)(length - n_end));
    const size_t blank = call_truth(c, 1) ? SIZE_MAX : text_find_last(kept, slice_of(" "), kept.len);
    kept.len = blank == SIZE_MAX ? kept.len : blank;
    if (!buffer_add(c->r, &b, kept) || !buffer_add(c->r, &b, end))
        return false;
    *out = value_text_like(c->self, buffer_text(&b));
    return true;
}

/* As transformers replaces it: no HTML escapes, and json.dumps()'s own settings. */
static bool
tojson(struct call *c, struct value *out)
{
    struct json_style style = {.ascii = call_truth(c, 0), .sorted = call_truth(c, 3)};
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
    if (!value_write_json(c->r, &b, c->self, &style))
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
        if (!attribute_path(c->r, item, c->a[1], NULL, &item) || (i > 0 && !buffer_add(c->r, &b, sign.text)) ||
            !value_write(c->r, &b, item))
            return false;
    *out = value_text(buffer_text(&b));
    return c->r->failed == NULL;
}

const struct builtin text_filters[] = {
    {"upper", upper, 0, {0}, false},
    {"lower", lower, 0, {0}, false},
    {"capitalize", capitalize, 0, {0}, false},
    {"title", title, 0, {0}, false},
    {"trim", trim, 0, {"chars"}, false},
    {"center", center, 0, {"width"}, false},
    {"string", string, 0, {0}, false},
    {"replace", replace, 2, {"old", "new", "count"}, false},
    {"safe", safe, 0, {0}, false},
    {"escape", escape, 0, {0}, false},
    {"e", escape, 0, {0}, false},
    {"forceescape", force_escape, 0, {0}, false},
    {"format", format, 0, {0}, true},
    {"indent", indent, 0, {"width", "first", "blank"}, false},
    {"truncate", truncate, 0, {"length", "killwords", "end", "leeway"}, false},
    {"tojson", tojson, 0, {"ensure_ascii", "indent", "separators", "sort_keys"}, false},
    {"join", join, 0, {"d", "attribute"}, false},
    {0}};
