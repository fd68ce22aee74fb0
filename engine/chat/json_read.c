#include "engine/chat/json_read.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/base/utf8.h"
#include "engine/chat/buffer.h"
#include "engine/chat/text.h"
#include "engine/chat/walk.h"

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
    *unit = 0;
    for (int i = 0; i < 4; i++) {
        const char c = j->at < j->text.len ? j->text.data[j->at] : '\0';
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return fail(j, "\\u needs four hexadecimal digits");
        *unit = *unit << 4 | (uint32_t)digit;
        j->at++;
    }
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
    struct growing g;
    struct value v;
    j->at++;
    if (!growing_begin(j->r, &g, LIST_LIST))
        return false;
    *out = value_list(g.list);
    if (skip(j, ']'))
        return true;
    do
        if (!read_value(j, &v) || !growing_add(j->r, &g, v))
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
