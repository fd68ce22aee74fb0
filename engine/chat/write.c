#include "engine/chat/write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "engine/chat/text.h"

void
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
    while (strtod(digits, NULL) != x && ++most <= 17); /* NOLINT: the same bits are meant */
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

/* str.isprintable(): a space is, others of its kind are not. */
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

bool
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
