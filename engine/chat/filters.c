/* Filters that make a text, a number or a default of a value. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "engine/chat/call.h"
#include "engine/chat/operators.h"
#include "engine/chat/text.h"
#include "engine/chat/write.h"

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

static bool
escape(struct call *c, struct value *out)
{
    return value_escape(c->r, c->self, out);
}

/* Indents the lines, but not the first and the blank ones. */
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
        if (!attribute_path(c->r, item, c->a[1], value_none(), &item) || (i > 0 && !buffer_add(c->r, &b, sign.text)) ||
            !value_write(c->r, &b, item))
            return false;
    *out = value_text(buffer_text(&b));
    return c->r->failed == NULL;
}

/* ---- numbers ---- */

/* Without white space and underscores between digits. */
static bool
tidy(struct slice s, char text[128])
{
    s = text_strip(s, (struct slice){0}, TEXT_BOTH);
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.data[i];
        if (c == '\0' || n == 127 || isspace((unsigned char)c))
            return false;
        if (c == '_' && (i == 0 || i + 1 == s.len || !isalnum((unsigned char)s.data[i - 1]) ||
                         !isalnum((unsigned char)s.data[i + 1])))
            return false;
        if (c != '_')
            text[n++] = c;
    }
    text[n] = '\0';
    return n > 0;
}

/* The number that Python's int() or else float() reads in a text; VALUE_MISSING: neither does. */
static bool
read_number(struct render *r, struct slice s, struct value *v)
{
    char text[128], *end = NULL;
    *v = (struct value){.kind = VALUE_MISSING};
    if (!tidy(s, text))
        return true;
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    const bool word =
        strcasecmp(digits, "inf") == 0 || strcasecmp(digits, "infinity") == 0 || strcasecmp(digits, "nan") == 0;
    if (!word && (!(isdigit((unsigned char)*digits) || *digits == '.') || strpbrk(digits, "xXpP") != NULL))
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

/* int and float: `which` is the kind. */
static bool
number(struct call *c, struct value *out)
{
    struct value v = c->self;
    double real;
    if (v.kind == VALUE_UNDEFINED)
        return render_fail_undefined(c->r, v);
    if (v.kind == VALUE_TEXT && !read_number(c->r, v.text, &v))
        return false;
    *out = c->a[0].kind != VALUE_MISSING ? c->a[0] : c->which == VALUE_INT ? value_int(0) : value_float(0);
    if (!value_is_number(v, &real))
        return true;
    if (c->which == VALUE_FLOAT)
        *out = value_float(real);
    else if (v.kind != VALUE_FLOAT)
        *out = value_int(v.kind == VALUE_BOOL ? v.truth : v.whole);
    else if (!isnan(real) && (!isinf(real) || c->self.kind == VALUE_FLOAT)) {
        if (!(fabs(real) < 9.2e18))
            return render_fail(c->r, "a number is too large");
        *out = value_int((int64_t)real);
    }
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
    const bool needed = c->self.kind == VALUE_UNDEFINED || (call_truth(c, 1) && !value_truth(c->self));
    *out = !needed ? c->self : c->a[0].kind != VALUE_MISSING ? c->a[0] : value_words("");
    return true;
}

const struct builtin value_filters[] = {{"string", string, 0, 0, {0}},
                                        {"safe", safe, 0, 0, {0}},
                                        {"escape", escape, 0, 0, {0}},
                                        {"e", escape, 0, 0, {0}},
                                        {"indent", indent, 0, 0, {"width", "first", "blank"}},
                                        {"tojson", tojson, 0, 0, {"ensure_ascii", "indent", "separators", "sort_keys"}},
                                        {"join", join, 0, 0, {"d", "attribute"}},
                                        {"int", number, VALUE_INT, 0, {"default"}},
                                        {"float", number, VALUE_FLOAT, 0, {"default"}},
                                        {"length", length, 0, 0, {0}},
                                        {"count", length, 0, 0, {0}},
                                        {"default", default_, 0, 0, {"default_value", "boolean"}},
                                        {"d", default_, 0, 0, {"default_value", "boolean"}},
                                        {0}};
