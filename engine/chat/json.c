/* Values as text: Python's str() and repr(), json.dumps(), and a JSON parser like json.loads(). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "engine/chat/template.h"

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

/* str.isprintable(): of the separators, only the ASCII space is printable. */
static bool
is_shown(uint32_t code)
{
    switch (utf8proc_category((utf8proc_int32_t)code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    case UTF8PROC_CATEGORY_ZS: return code == ' ';
    default: return true;
    }
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
    static const char *const open[] = {"[", "(", "", "dict_keys([", "dict_values([", "dict_items(["};
    if (l->kind == LIST_GENERATOR)
        return render_fail(r, "writing a generator is not supported; `| list` makes a list of it");
    if (l->kind == LIST_RANGE)
        return render_fail(r, "writing a range is not supported; `| list` makes a list of it");
    bool ok = buffer_add_words(r, b, open[l->kind]);
    for (size_t i = 0; i < l->n && ok; i++)
        ok = buffer_add_words(r, b, i > 0 ? ", " : "") && value_write_repr(r, b, l->at[i]);
    return ok && buffer_add_words(r, b,
                                  l->kind == LIST_LIST                   ? "]"
                                  : l->kind > LIST_TUPLE                 ? "])"
                                  : l->n == 1 /* a tuple of one: (1,) */ ? ",)"
                                                                         : ")");
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
    case VALUE_TEXT:
        return (!v.markup || buffer_add_words(r, b, "Markup(")) && write_quoted(r, b, v.text) &&
               (!v.markup || buffer_add_words(r, b, ")"));
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

bool
value_escape(struct render *r, struct value v, struct value *out)
{
    struct buffer b = {0};
    if (!value_to_text(r, v, &v))
        return false;
    *out = v;
    out->markup = true;
    if (v.markup)
        return true;
    if (!render_read(r, v.text))
        return false;
    for (size_t i = 0; i < v.text.len; i++) {
        const char c = v.text.data[i];
        const char *as = c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&#34;" : "&#39;";
        const bool ok = memchr("&<>\"'", c, 5) != NULL ? buffer_add_words(r, &b, as)
                                                       : buffer_add(r, &b, (struct slice){&v.text.data[i], 1});
        if (!ok)
            return false;
    }
    out->text = buffer_text(&b);
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

static bool write_value(struct render *, struct buffer *, struct value, const struct json_style *, size_t level);

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
    return buffer_add_words(r, b, "\"") && write_value(r, b, key, style, 0) && buffer_add_words(r, b, "\"");
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
             write_value(r, b, d->at[i].value, style, level + 1);
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
             write_value(r, b, l->at[i], style, level + 1);
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

static bool
write_value(struct render *r, struct buffer *b, struct value v, const struct json_style *style, size_t level)
{
    if (!render_enter(r))
        return false;
    const bool ok = write_kind(r, b, v, style, level);
    r->depth--;
    return ok;
}

bool
value_write_json(struct render *r, struct buffer *b, struct value v, const struct json_style *style)
{
    return write_value(r, b, v, style, 0);
}

/* ---- reading ---- */

struct json {
    struct render *r;
    struct slice text;
    size_t at;
};

static bool read_value(struct json *, struct value *);

static bool
fail(struct json *j, const char *what)
{
    return render_fail(j->r, "JSON, byte %zu: %s", j->at, what);
}

static char
peek(struct json *j)
{
    while (j->at < j->text.len && strchr(" \t\r\n", j->text.data[j->at]) != NULL && j->text.data[j->at] != '\0')
        j->at++;
    return j->at < j->text.len ? j->text.data[j->at] : '\0';
}

static bool
skip(struct json *j, char c)
{
    const bool is = peek(j) == c && j->at < j->text.len;
    j->at += is;
    return is;
}

static bool
read_unit(struct json *j, uint32_t *unit)
{
    if (!text_hex((struct slice){j->text.data + j->at, j->text.len - j->at}, 4, unit))
        return fail(j, "\\u needs four hexadecimal digits");
    j->at += 4;
    return true;
}

static bool
read_escape(struct json *j, struct buffer *b)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char c = j->at < j->text.len ? j->text.data[j->at++] : '\0';
    const char *simple = c == '\0' ? NULL : strchr(from, c);
    uint32_t code, low;
    if (simple != NULL)
        return buffer_add(j->r, b, (struct slice){&to[simple - from], 1});
    if (c != 'u')
        return fail(j, "an escape that JSON does not have");
    if (!read_unit(j, &code))
        return false;
    if (code >= 0xd800 && code < 0xdc00 &&
        text_begins((struct slice){j->text.data + j->at, j->text.len - j->at}, slice_of("\\u"))) {
        j->at += 2;
        if (!read_unit(j, &low))
            return false;
        if (low < 0xdc00 || low > 0xdfff)
            return fail(j, "half a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code >= 0xd800 && code < 0xe000)
        return fail(j, "half a surrogate pair");
    return buffer_add_code(j->r, b, code);
}

static bool
read_string(struct json *j, struct value *out)
{
    struct buffer b = {0};
    j->at++;
    while (j->at < j->text.len && j->text.data[j->at] != '"') {
        const size_t begin = j->at;
        while (j->at < j->text.len && (unsigned char)j->text.data[j->at] >= 0x20 && j->text.data[j->at] != '"' &&
               j->text.data[j->at] != '\\')
            j->at++;
        if (!buffer_add(j->r, &b, (struct slice){j->text.data + begin, j->at - begin}))
            return false;
        if (j->at < j->text.len && j->text.data[j->at] == '\\') {
            j->at++;
            if (!read_escape(j, &b))
                return false;
        } else if (j->at < j->text.len && j->text.data[j->at] != '"')
            return fail(j, "a control character in a string");
    }
    if (j->at >= j->text.len)
        return fail(j, "a string has no end");
    j->at++;
    *out = value_text(buffer_text(&b));
    return utf8_valid(out->text.data, out->text.len) || fail(j, "a string is not UTF-8");
}

static bool
read_number(struct json *j, struct value *out)
{
    char text[64];
    size_t n = 0;
    bool real = false;
    while (j->at + n < j->text.len && n + 1 < sizeof text && j->text.data[j->at + n] != '\0' &&
           strchr("+-.0123456789eE", j->text.data[j->at + n]) != NULL) {
        text[n] = j->text.data[j->at + n];
        real = real || strchr(".eE", text[n]) != NULL;
        n++;
    }
    text[n] = '\0';
    const size_t sign = text[0] == '-';
    const bool begins = text[sign] >= '0' && text[sign] <= '9' && !(text[sign] == '0' && text[sign + 1] >= '0');
    char *end = text;
    errno = 0;
    if (begins)
        *out = real ? value_float(strtod(text, &end)) : value_int(strtoll(text, &end, 10));
    if (!begins || *end != '\0' || text[n - 1] == '.' || strstr(text, ".e") != NULL || strstr(text, ".E") != NULL)
        return fail(j, "this is no number");
    if (!real && errno != 0)
        return fail(j, "this number is too large");
    j->at += n;
    return true;
}

static bool
read_array(struct json *j, struct value *out)
{
    struct list *l = render_list(j->r, LIST_LIST, 0);
    struct value v;
    j->at++;
    *out = value_list(l);
    if (l == NULL || skip(j, ']'))
        return l != NULL;
    do
        if (!read_value(j, &v) || !list_add(j->r, l, v))
            return false;
    while (skip(j, ','));
    return skip(j, ']') || fail(j, "a ] or a comma is expected");
}

static bool
read_object(struct json *j, struct value *out)
{
    struct dict *d = render_dict(j->r);
    struct value key, v;
    j->at++;
    *out = value_dict(d);
    if (d == NULL || skip(j, '}'))
        return d != NULL;
    do {
        if (peek(j) != '"')
            return fail(j, "a name in quotes is expected");
        if (!read_string(j, &key))
            return false;
        if (!skip(j, ':'))
            return fail(j, "a colon is expected");
        if (!read_value(j, &v) || !dict_put(j->r, d, key, v))
            return false;
    } while (skip(j, ','));
    return skip(j, '}') || fail(j, "a } or a comma is expected");
}

static bool
read_word(struct json *j, struct value *out)
{
    static const char *const words[] = {"null", "true", "false"};
    for (size_t i = 0; i < 3; i++)
        if (text_begins((struct slice){j->text.data + j->at, j->text.len - j->at}, slice_of(words[i]))) {
            *out = i == 0 ? value_none() : value_bool(i == 1);
            j->at += strlen(words[i]);
            return true;
        }
    return fail(j, "a value is expected");
}

static bool
read_value(struct json *j, struct value *out)
{
    if (!render_enter(j->r))
        return false;
    const char c = peek(j);
    const bool ok = c == '"'                             ? read_string(j, out)
                    : c == '['                           ? read_array(j, out)
                    : c == '{'                           ? read_object(j, out)
                    : c == '-' || (c >= '0' && c <= '9') ? read_number(j, out)
                                                         : read_word(j, out);
    j->r->depth--;
    return ok;
}

bool
value_read_json(struct render *r, struct slice text, struct value *out)
{
    struct json j = {.r = r, .text = text};
    if (!read_value(&j, out))
        return false;
    peek(&j);
    return j.at == text.len || fail(&j, "there is more behind the value");
}
