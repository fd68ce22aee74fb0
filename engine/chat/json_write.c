/* json.dumps(). */
#include <math.h>
#include <stdlib.h>

#include "engine/chat/compare.h"
#include "engine/chat/text.h"
#include "engine/chat/write.h"

static bool
write_escaped(struct render *r, struct buffer *b, uint32_t code, bool ascii)
{
    switch (code) {
    case '"': return buffer_add_words(r, b, "\\\"");
    case '\\': return buffer_add_words(r, b, "\\\\");
    case '\n': return buffer_add_words(r, b, "\\n");
    case '\r': return buffer_add_words(r, b, "\\r");
    case '\t': return buffer_add_words(r, b, "\\t");
    case '\f': return buffer_add_words(r, b, "\\f");
    case '\b': return buffer_add_words(r, b, "\\b");
    default: break;
    }
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

/* What is no text becomes one. */
static bool
write_key(struct render *r, struct buffer *b, struct value key, const struct json_style *style)
{
    if (key.kind == VALUE_TEXT)
        return write_string(r, b, key.text, style->ascii);
    if (key.kind != VALUE_INT && key.kind != VALUE_FLOAT && key.kind != VALUE_BOOL && key.kind != VALUE_NONE)
        return render_fail(r, "a dict with a %s as a key can't be JSON", value_type(key));
    return buffer_add_words(r, b, "\"") && write_value(r, b, key, style, 0) && buffer_add_words(r, b, "\"");
}

/* The entries in their keys' order. */
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
