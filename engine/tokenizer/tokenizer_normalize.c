/* What a model wants done to text before it is cut: Unicode normalisation, a prefix, marks for spaces. */
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer_internal.h"

bool
bytes_append(struct bytes *b, const char *bytes, size_t n)
{
    if (n > b->room - b->len) {
        const size_t room = b->len + n + (b->len + n) / 2 + 64;
        char *grown = room < n ? NULL : realloc(b->at, room);
        b->starved = b->starved || grown == NULL;
        if (grown == NULL)
            return false;
        b->at = grown;
        b->room = room;
    }
    if (n > 0)
        memcpy(b->at + b->len, bytes, n);
    b->len += n;
    return true;
}

static bool
is_ascii(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.data[i] >= 0x80)
            return false;
    return true;
}

static bool
append_form(utf8proc_option_t form, const char *text, size_t len, struct bytes *out)
{
    utf8proc_uint8_t *formed = NULL;
    const utf8proc_ssize_t n =
        utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)len, &formed, UTF8PROC_STABLE | form);
    const bool ok = n >= 0 && bytes_append(out, (const char *)formed, (size_t)n);
    free(formed);
    return ok;
}

/* Segments of whole characters are normalised; broken bytes between them stay. */
static bool
put_form(enum normal_kind kind, struct slice in, struct bytes *out)
{
    static const utf8proc_option_t forms[] = {[NORMAL_NFC] = UTF8PROC_COMPOSE,
                                              [NORMAL_NFD] = UTF8PROC_DECOMPOSE,
                                              [NORMAL_NFKC] = UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
                                              [NORMAL_NFKD] = UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT};
    for (size_t at = 0; at < in.len;) {
        const size_t start = at;
        for (size_t n; at < in.len && (n = utf8_character(in.data + at, in.len - at, NULL)) > 0;)
            at += n;
        if (at > start && !append_form(forms[kind], in.data + start, at - start, out))
            return false;
        if (at < in.len && !bytes_append(out, in.data + at, 1))
            return false;
        at += at < in.len;
    }
    return true;
}

static bool
put_replaced(const struct normal_step *step, struct slice in, struct bytes *out)
{
    while (in.len > 0) {
        const char *found = memmem(in.data, in.len, step->from.data, step->from.len);
        const size_t n = found == NULL ? in.len : (size_t)(found - in.data);
        if (!bytes_append(out, in.data, n))
            return false;
        if (found == NULL)
            break;
        if (!bytes_append(out, step->to.data, step->to.len))
            return false;
        in.data += n + step->from.len;
        in.len -= n + step->from.len;
    }
    return true;
}

static bool
put_stripped(const struct normal_step *step, struct slice in, struct bytes *out)
{
    uint32_t code;
    for (size_t n; step->left && (n = utf8_character(in.data, in.len, &code)) > 0 && utf8_is_space(code);)
        in = (struct slice){in.data + n, in.len - n};
    while (step->right && in.len > 0) {
        size_t n = 1;
        while (n < 4 && n < in.len && ((unsigned char)in.data[in.len - n] & 0xc0) == 0x80)
            n++;
        if (utf8_character(in.data + in.len - n, n, &code) != n || !utf8_is_space(code))
            break;
        in.len -= n;
    }
    return bytes_append(out, in.data, in.len);
}

static bool
put_step(const struct tokenizer *t, const struct normal_step *step, struct slice in, struct bytes *out)
{
    switch (step->kind) {
    case NORMAL_PREPEND: return bytes_append(out, step->to.data, step->to.len) && bytes_append(out, in.data, in.len);
    case NORMAL_REPLACE: return put_replaced(step, in, out);
    case NORMAL_PATTERN: return normal_put_pattern(step, in, out);
    case NORMAL_STRIP: return put_stripped(step, in, out);
    case NORMAL_CHARSMAP: return normal_put_charsmap(step, in, out);
    case NORMAL_SENTENCEPIECE: return normal_put_sentencepiece(t, step, in, out);
    default: return put_form(step->kind, in, out);
    }
}

bool
tokenizer_normalize(const struct tokenizer *t, struct slice text, struct bytes buffers[2], struct slice *out)
{
    const bool ascii = t->n_normal > 0 && is_ascii(text);
    for (unsigned i = 0, buffer = 0; i < t->n_normal; i++) {
        const struct normal_step *step = &t->normal[i];
        struct bytes *to = &buffers[buffer];
        to->len = 0;
        if (text.len == 0 || (ascii && i == 0 && step->kind <= NORMAL_NFKD))
            continue;
        if (!put_step(t, step, text, to))
            return false;
        text = (struct slice){to->at == NULL ? "" : to->at, to->len};
        buffer = 1 - buffer;
    }
    *out = text;
    return true;
}
