/* Values as text: Python's str() and repr(), json.dumps(), and a JSON parser like json.loads(). */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <utf8proc.h>

#include "base/json_read.h"
#include "base/utf8.h"
#include "engine/jinja/template.h"

static bool value_write_repr(struct render *r, struct buffer *b, struct value v);

/* repr() of a float: the shortest digits that are read as the same value. */
static void
float_repr(double x, char text[32])
{
    char digits[40];
    if (isnan(x) || isinf(x)) {
        snprintf(text, 32, "%s", isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    int most = 1;
    do
        snprintf(digits, sizeof digits, "%.*e", most - 1, x);
    while (strtod(digits, NULL) != x && ++most <= 17); /* NOLINT: exact comparison is intended */
    const int exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (exponent >= -4 && exponent < 16) {
        const int behind = most - 1 - exponent;
        snprintf(text, 32, "%.*f", behind > 1 ? behind : 1, x);
        if (behind < 1) /* a whole number */
            snprintf(text, 32, "%.1f", x);
    } else {
        *strchr(digits, 'e') = '\0';
        snprintf(text, 32, "%.24se%c%02u", digits, exponent < 0 ? '-' : '+', (unsigned)abs(exponent) % 1000u);
    }
}

/* ---- repr() of a text ---- */

/* str.isprintable(): of the separators and the categories after them, only the ASCII space is printable. */
static bool
is_shown(uint32_t code)
{
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return code == ' ' || (category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS);
}

static bool
write_shown(struct render *r, struct buffer *b, uint32_t code, char quote)
{
    static const char from[] = "\n\r\t\\", to[] = "nrt\\";
    const char *simple = code > 0 && code < 0x80 ? strchr(from, (int)code) : NULL;
    if (simple != NULL)
        return buffer_print(r, b, "\\%c", to[simple - from]);
    if (code == (uint32_t)quote)
        return buffer_print(r, b, "\\%c", quote);
    if (is_shown(code) || (r->guarded && MARK_CODES(code)))
        return buffer_add_code(r, b, code);
    return buffer_print(r, b, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)code);
}

static bool
write_quoted(struct render *r, struct buffer *b, struct slice s)
{
    if (!render_step(r, s.len / 4))
        return false;
    const char quote =
        s.len > 0 && memchr(s.data, '\'', s.len) != NULL && memchr(s.data, '"', s.len) == NULL ? '"' : '\'';
    if (!buffer_print(r, b, "%c", quote))
        return false;
    for (size_t at = 0; at < s.len;) {
        uint32_t code;
        at += text_character((struct slice){s.data + at, s.len - at}, &code);
        if (!write_shown(r, b, code, quote))
            return false;
    }
    return buffer_print(r, b, "%c", quote);
}

/* ---- repr() ---- */

static bool
write_dict(struct render *r, struct buffer *b, const struct dict *d)
{
    bool ok = buffer_add_words(r, b, "{");
    for (size_t i = 0; i < d->n && ok; i++)
        ok = buffer_add_words(r, b, i > 0 ? ", " : "") && value_write_repr(r, b, d->at[i].key) &&
             buffer_add_words(r, b, ": ") && value_write_repr(r, b, d->at[i].value);
    return ok && buffer_add_words(r, b, "}");
}

static bool
write_list(struct render *r, struct buffer *b, const struct list *l)
{
    if (l->kind == LIST_GENERATOR)
        return render_fail(r, "writing a generator is not supported; `| list` makes a list of it");
    bool ok = buffer_add_words(r, b, l->kind == LIST_LIST ? "[" : "(");
    for (size_t i = 0; i < l->n && ok; i++)
        ok = buffer_add_words(r, b, i > 0 ? ", " : "") && value_write_repr(r, b, l->at[i]);
    return ok && buffer_add_words(r, b, l->kind == LIST_LIST ? "]" : l->n == 1 ? ",)" : ")"); /* a tuple of one: (1,) */
}

static bool
write_within(struct render *r, struct buffer *b, struct value v)
{
    char text[32];
    switch (v.kind) {
    case VALUE_MISSING: break;
    case VALUE_UNDEFINED: return buffer_add_words(r, b, "Undefined");
    case VALUE_NONE: return buffer_add_words(r, b, "None");
    case VALUE_BOOL: return buffer_add_words(r, b, v.truth ? "True" : "False");
    case VALUE_INT: return buffer_print(r, b, "%lld", (long long)v.whole);
    case VALUE_FLOAT: float_repr(v.real, text); return buffer_add_words(r, b, text);
    case VALUE_TEXT: return write_quoted(r, b, v.text);
    case VALUE_LIST: return write_list(r, b, v.list);
    case VALUE_DICT: return write_dict(r, b, v.dict);
    case VALUE_NAMESPACE:
        return buffer_add_words(r, b, "<Namespace ") && write_dict(r, b, v.dict) && buffer_add_words(r, b, ">");
    case VALUE_MACRO:
    case VALUE_METHOD:
    case VALUE_FUNCTION:
    case VALUE_LOOP: break;
    }
    return render_fail(r, "writing a %s is not supported", value_type(v));
}

static bool
value_write_repr(struct render *r, struct buffer *b, struct value v)
{
    if (!render_enter(r))
        return false;
    const bool ok = write_within(r, b, v);
    r->depth--;
    return ok;
}

bool
value_write(struct render *r, struct buffer *b, struct value v)
{
    if (v.kind == VALUE_TEXT)
        return buffer_add(r, b, v.text);
    return v.kind == VALUE_UNDEFINED || value_write_repr(r, b, v);
}

bool
value_to_text(struct render *r, struct value v, struct value *out)
{
    if (v.kind == VALUE_TEXT) {
        *out = v;
        return true;
    }
    struct buffer b = {0};
    if (!value_write(r, &b, v))
        return false;
    *out = value_text(buffer_text(&b));
    return true;
}

/* json.dumps() and json.loads(). */

/* ---- writing ---- */

static bool
write_escaped(struct render *r, struct buffer *b, uint32_t code, bool ascii)
{
    static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
    const char *simple = code > 0 && code < 0x80 ? strchr(from, (int)code) : NULL;
    if (simple != NULL)
        return buffer_print(r, b, "\\%c", to[simple - from]);
    if (r->guarded && MARK_CODES(code))
        return buffer_add_code(r, b, code);
    if (code < 0x20 || (ascii && code >= 0x7f && code < 0x10000))
        return buffer_print(r, b, "\\u%04x", (unsigned)code);
    if (ascii && code >= 0x10000)
        return buffer_print(r, b, "\\u%04x\\u%04x", 0xd800 + (unsigned)((code - 0x10000) >> 10),
                            0xdc00 + (unsigned)(code & 0x3ff));
    return buffer_add_code(r, b, code);
}

static bool
write_string(struct render *r, struct buffer *b, struct slice s, bool ascii)
{
    bool ok = render_read(r, s) && buffer_add_words(r, b, "\"");
    for (size_t at = 0; at < s.len && ok;) {
        uint32_t code;
        at += text_character((struct slice){s.data + at, s.len - at}, &code);
        ok = write_escaped(r, b, code, ascii);
    }
    return ok && buffer_add_words(r, b, "\"");
}

static bool
write_break(struct render *r, struct buffer *b, const struct json_style *style, size_t level)
{
    return style->indent.data == NULL || (buffer_add_words(r, b, "\n") && buffer_fill(r, b, style->indent, level));
}

static bool
write_number(struct render *r, struct buffer *b, struct value v)
{
    char text[32];
    if (v.kind == VALUE_INT)
        return buffer_print(r, b, "%lld", (long long)v.whole);
    float_repr(v.real, text);
    return buffer_add_words(r, b,
                            isnan(v.real)    ? "NaN"
                            : !isinf(v.real) ? text
                            : v.real < 0     ? "-Infinity"
                                             : "Infinity");
}

/* Writes a key; a number, a bool or None is converted to a text. */
static bool
write_key(struct render *r, struct buffer *b, struct value key, const struct json_style *style)
{
    if (key.kind == VALUE_TEXT)
        return write_string(r, b, key.text, style->ascii);
    if (key.kind != VALUE_INT && key.kind != VALUE_FLOAT && key.kind != VALUE_BOOL && key.kind != VALUE_NONE)
        return render_fail(r, "a dict with a %s as a key can't be JSON", value_type(key));
    return buffer_add_words(r, b, "\"") && value_write_json(r, b, key, style, 0) && buffer_add_words(r, b, "\"");
}

/* Copies the entries of a dict in the order of their keys. */
static bool
sort_keys(struct render *r, const struct dict *d, struct dict *sorted)
{
    *sorted = (struct dict){.n = d->n, .at = render_memory(r, d->n * sizeof *d->at)};
    if (sorted->at == NULL)
        return false;
    for (size_t i = 0; i < d->n; i++) {
        size_t at = i;
        for (; at > 0; at--) {
            int order;
            if (!render_step(r, 1) || !values_order(r, d->at[i].key, sorted->at[at - 1].key, "<", &order))
                return false;
            if (order >= 0)
                break;
            sorted->at[at] = sorted->at[at - 1];
        }
        sorted->at[at] = d->at[i];
    }
    return true;
}

static bool
write_object(struct render *r, struct buffer *b, const struct dict *d, const struct json_style *style, size_t level)
{
    struct dict sorted;
    if (d->n == 0)
        return buffer_add_words(r, b, "{}");
    if (style->sorted) {
        if (!sort_keys(r, d, &sorted))
            return false;
        d = &sorted;
    }
    bool ok = buffer_add_words(r, b, "{");
    for (size_t i = 0; i < d->n && ok; i++)
        ok = (i == 0 || buffer_add(r, b, style->item)) && write_break(r, b, style, level + 1) &&
             write_key(r, b, d->at[i].key, style) && buffer_add(r, b, style->key) &&
             value_write_json(r, b, d->at[i].value, style, level + 1);
    return ok && write_break(r, b, style, level) && buffer_add_words(r, b, "}");
}

static bool
write_array(struct render *r, struct buffer *b, const struct list *l, const struct json_style *style, size_t level)
{
    if (l->n == 0)
        return buffer_add_words(r, b, "[]");
    bool ok = buffer_add_words(r, b, "[");
    for (size_t i = 0; i < l->n && ok; i++)
        ok = (i == 0 || buffer_add(r, b, style->item)) && write_break(r, b, style, level + 1) &&
             value_write_json(r, b, l->at[i], style, level + 1);
    return ok && write_break(r, b, style, level) && buffer_add_words(r, b, "]");
}

static bool
write_kind(struct render *r, struct buffer *b, struct value v, const struct json_style *style, size_t level)
{
    switch (v.kind) {
    case VALUE_NONE: return buffer_add_words(r, b, "null");
    case VALUE_BOOL: return buffer_add_words(r, b, v.truth ? "true" : "false");
    case VALUE_INT:
    case VALUE_FLOAT: return write_number(r, b, v);
    case VALUE_TEXT: return write_string(r, b, v.text, style->ascii);
    case VALUE_DICT: return write_object(r, b, v.dict, style, level);
    case VALUE_LIST:
        if (v.list->kind <= LIST_TUPLE)
            return write_array(r, b, v.list, style, level);
        break;
    case VALUE_UNDEFINED: return render_fail(r, "%.*s, and can't be JSON", (int)v.text.len, v.text.data);
    default: break;
    }
    return render_fail(r, "a %s can't be JSON", value_type(v));
}

bool
value_write_json(struct render *r, struct buffer *b, struct value v, const struct json_style *style, size_t level)
{
    if (!render_enter(r))
        return false;
    const bool ok = write_kind(r, b, v, style, level);
    r->depth--;
    return ok;
}

/* ---- reading ----
 *
 * cJSON stores all numbers as doubles, but Python distinguishes 1 from 1.0 and keeps all digits. So the digits are read
 * from the text, whose numbers are in the order of the tree. */

struct json {
    struct render *r;
    struct slice text;
    size_t at; /* after the last number read */
};

/* Reads the next number outside strings. */
static bool
next_number(struct json *j, struct value *out)
{
    char text[64];
    bool in_string = false;
    for (; j->at < j->text.len &&
           (in_string || (j->text.data[j->at] != '-' && !isdigit((unsigned char)j->text.data[j->at])));
         j->at++) {
        in_string = in_string != (j->text.data[j->at] == '"');
        j->at += j->text.data[j->at] == '\\';
    }
    const size_t begin = j->at;
    while (j->at < j->text.len && memchr("+-.0123456789eE", j->text.data[j->at], 15) != NULL)
        j->at++;
    const size_t n = j->at - begin < sizeof text ? j->at - begin : sizeof text - 1;
    memcpy(text, j->text.data + begin, n);
    text[n] = '\0';
    errno = n < j->at - begin ? ERANGE : 0;
    const bool real = strpbrk(text, ".eE") != NULL && errno == 0;
    *out = real ? value_float(strtod(text, NULL)) : value_int(strtoll(text, NULL, 10));
    return real || errno == 0 || render_fail(j->r, "JSON: the number %s is too large", text);
}

static bool read_tree(struct json *, const cJSON *, struct value *);

static bool
read_members(struct json *j, const cJSON *from, struct value *out)
{
    const cJSON *item;
    struct value key, v;
    *out = cJSON_IsArray(from) ? value_list(render_list(j->r, LIST_LIST, 0)) : value_dict(render_dict(j->r));
    bool ok = j->r->failed == NULL;
    cJSON_ArrayForEach(item, from)
    {
        ok = ok && read_tree(j, item, &v);
        if (ok && cJSON_IsArray(from))
            ok = list_add(j->r, out->list, v);
        else if (ok)
            ok = render_copy(j->r, item->string, strlen(item->string), &key.text) &&
                 dict_put(j->r, out->dict, value_text(key.text), v);
    }
    return ok;
}

static bool
read_tree(struct json *j, const cJSON *from, struct value *out)
{
    if (!render_enter(j->r))
        return false;
    bool ok = true;
    if (cJSON_IsString(from)) {
        *out = value_text((struct slice){0});
        ok = render_copy(j->r, from->valuestring, strlen(from->valuestring), &out->text);
    } else if (cJSON_IsNumber(from))
        ok = next_number(j, out);
    else if (cJSON_IsBool(from) || cJSON_IsNull(from))
        *out = cJSON_IsNull(from) ? value_none() : value_bool(cJSON_IsTrue(from));
    else
        ok = read_members(j, from, out);
    j->r->depth--;
    return ok;
}

bool
value_read_json(struct render *r, struct slice text, struct value *out)
{
    struct json j = {.r = r, .text = text};
    cJSON *root = NULL;
    size_t wrong = 1;
    if (!utf8_valid(text.data, text.len))
        return render_fail(r, "JSON is not UTF-8");
    if (!json_read_typed(&root, text.data, text.len, &wrong))
        return render_fail(r, "out of memory");
    const bool ok = wrong == 0 ? read_tree(&j, root, out) : render_fail(r, "line %zu is not JSON", wrong);
    cJSON_Delete(root);
    return ok;
}
