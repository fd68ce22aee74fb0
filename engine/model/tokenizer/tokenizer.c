/* Properties of tokens, decoding of ids to text, incremental UTF-8, and the comparison of vocabularies. */
#include "engine/model/tokenizer/tokenizer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/model/tokenizer/tokenizer_internal.h"

static bool
known(const struct tokenizer *t, token_t id)
{
    return id >= 0 && (uint32_t)id < t->n;
}

uint32_t
tokenizer_size(const struct tokenizer *t)
{
    return t->n;
}

enum token_kind
tokenizer_kind(const struct tokenizer *t, token_t id)
{
    return known(t, id) ? (enum token_kind)t->kind[id] : TOKEN_UNKNOWN;
}

token_t
tokenizer_unknown(const struct tokenizer *t)
{
    for (uint32_t id = 0; id < tokenizer_size(t); id++)
        if (tokenizer_kind(t, (token_t)id) == TOKEN_UNKNOWN)
            return (token_t)id;
    return 0;
}

token_t
tokenizer_bos(const struct tokenizer *t)
{
    return t->bos;
}

token_t
tokenizer_eos(const struct tokenizer *t)
{
    return t->eos;
}

bool
tokenizer_is_end(const struct tokenizer *t, token_t id)
{
    return known(t, id) && t->end[id];
}

void
tokenizer_add_end(struct tokenizer *t, token_t id)
{
    if (known(t, id))
        t->end[id] = true;
}

const char *
tokenizer_description(const struct tokenizer *t)
{
    return t->description;
}

const char *
tokenizer_note(const struct tokenizer *t)
{
    return t->note;
}

struct slice
tokenizer_chat_template(const struct tokenizer *t, const char *name)
{
    for (size_t i = 0; i < t->n_chat_templates; i++)
        if (strcmp(t->chat_templates[i].name, name) == 0)
            return t->chat_templates[i].text;
    return (struct slice){"", 0};
}

const char *
tokenizer_chat_template_name(const struct tokenizer *t, size_t i)
{
    return i < t->n_chat_templates ? t->chat_templates[i].name : NULL;
}

bool
tokenizer_add_chat_template(struct tokenizer *t, struct slice name, struct slice text, struct err *err)
{
    size_t i = 0;
    while (i < t->n_chat_templates && !slice_is(name, t->chat_templates[i].name))
        i++;
    if (i == MOST_CHAT_TEMPLATES)
        return err_set(err, ERR_WORK, "a model with more than %d chat templates is not supported", MOST_CHAT_TEMPLATES);
    char *kept = tokenizer_take(t, name.len + 1);
    if (kept == NULL || !tokenizer_copy(t, text.data, text.len, &t->chat_templates[i].text))
        return err_set(err, ERR_WORK, "out of memory for a chat template of %zu bytes", text.len);
    if (name.len > 0)
        memcpy(kept, name.data, name.len);
    kept[name.len] = '\0';
    t->chat_templates[i].name = kept;
    t->n_chat_templates += i == t->n_chat_templates;
    return true;
}

struct slice
tokenizer_bytes(const struct tokenizer *t, token_t id, bool show_control)
{
    if (!known(t, id) || (t->kind[id] == TOKEN_CONTROL && !show_control))
        return (struct slice){"", 0};
    return t->plain[id];
}

bool
tokenizer_decode(const struct tokenizer *t, const token_t *ids, size_t n, char **text, size_t *len, struct err *err)
{
    *text = NULL;
    *len = 0;
    size_t room = 1;
    for (size_t i = 0; i < n; i++)
        room += tokenizer_bytes(t, ids[i], false).len;
    char *out = malloc(room);
    if (out == NULL)
        return err_set(err, ERR_WORK, "out of memory decoding %zu tokens", n);
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        const struct slice bytes = tokenizer_bytes(t, ids[i], false);
        if (bytes.len > 0)
            memcpy(out + used, bytes.data, bytes.len);
        used += bytes.len;
    }
    const struct slice kept = tokenizer_trim(&t->trim, (struct slice){out, used});
    memmove(out, kept.data, kept.len);
    out[kept.len] = '\0';
    *text = out;
    *len = kept.len;
    return true;
}

/* Assembles complete characters from the bytes of tokens; a byte token may contain a quarter of a character. Invalid
 * sequences are replaced as Unicode recommends: one U+FFFD for each maximal prefix of a valid character. */

static const char replacement[3] = "\xef\xbf\xbd";

/* Adds one byte; returns the number of bytes written to out, at most 6. */
static size_t
take(struct utf8_stream *s, char byte, char *out)
{
    size_t written = 0;
    s->held[s->n_held++] = (unsigned char)byte;
    for (;;) {
        char held[4];
        memcpy(held, s->held, sizeof held);
        size_t n = utf8_character(held, s->n_held, NULL);
        if (n > 0) { /* the character consists of all held bytes */
            memcpy(out + written, held, n);
            s->n_held = 0;
            return written + n;
        }
        if (utf8_is_cut(held, s->n_held))
            return written;
        memcpy(out + written, replacement, sizeof replacement);
        written += sizeof replacement;
        if (s->n_held == 1) { /* the byte cannot begin a character */
            s->n_held = 0;
            return written;
        }
        s->held[0] = (unsigned char)byte; /* the byte ended an incomplete sequence; it may begin a character */
        s->n_held = 1;
    }
}

size_t
utf8_stream_feed(struct utf8_stream *s, const char *bytes, size_t len, char *out)
{
    size_t written = 0;
    for (size_t i = 0; i < len; i++)
        written += take(s, bytes[i], out + written);
    return written;
}

size_t
utf8_stream_end(struct utf8_stream *s, char *out)
{
    if (s->n_held == 0)
        return 0;
    memcpy(out, replacement, sizeof replacement);
    s->n_held = 0;
    return sizeof replacement;
}

static const char *const kinds[] = {[TOKEN_NORMAL] = "a piece of text",  [TOKEN_UNKNOWN] = "the unknown token",
                                    [TOKEN_CONTROL] = "a control token", [TOKEN_USER] = "an added token",
                                    [TOKEN_UNUSED] = "unused",           [TOKEN_BYTE] = "a byte"};

bool
vocabularies_match(const struct tokenizer *target, const char *target_name, const struct tokenizer *other,
                   const char *other_name, struct err *err)
{
    const uint32_t n = tokenizer_size(target), m = tokenizer_size(other);
    for (uint32_t id = 0; id < n && id < m; id++) {
        const struct slice a = tokenizer_bytes(target, (token_t)id, true),
                           b = tokenizer_bytes(other, (token_t)id, true);
        const enum token_kind kind = tokenizer_kind(target, (token_t)id), its = tokenizer_kind(other, (token_t)id);
        char one[40], two[40];
        if (a.len != b.len || (a.len > 0 && memcmp(a.data, b.data, a.len) != 0) || kind != its)
            return err_set(err, ERR_USAGE,
                           "%.48s and %.48s have different vocabularies: token %" PRIu32
                           " is '%s', %s, in one and '%s', %s, in the other; give a model of the same family",
                           target_name, other_name, id, printable_line(one, sizeof one, a.data, a.len), kinds[kind],
                           printable_line(two, sizeof two, b.data, b.len), kinds[its]);
    }
    return true;
}
