/* Normalising by a precompiled map: as Hugging Face's tokenizers do it, and as SentencePiece does. */
#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer_internal.h"

#define WHOLE_CLUSTER 6 /* bytes: a shorter cluster is looked for as a whole first */

/* Bytes of the cluster of characters that a text begins with, 0 if it begins with no character. */
static size_t
cluster(struct slice text)
{
    uint32_t before, code;
    utf8proc_int32_t state = 0;
    size_t at = utf8_character(text.data, text.len, &before), n;
    while (at > 0 && (n = utf8_character(text.data + at, text.len - at, &code)) > 0 &&
           !utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)code, &state)) {
        before = code;
        at += n;
    }
    return at;
}

/* A cluster, or a character, becomes what the shortest of its beginnings that is mapped becomes. */
bool
normal_put_charsmap(const struct normal_step *step, struct slice in, struct bytes *out)
{
    struct slice to;
    size_t used, n;
    for (size_t at = 0; at < in.len; at += n) {
        const char *text = in.data + at;
        n = cluster((struct slice){text, in.len - at});
        if (n == 0) {
            n = 1;
            if (!bytes_append(out, text, 1))
                return false;
            continue;
        }
        if (n < WHOLE_CLUSTER && charsmap_find(&step->map, text, n, false, &used, &to)) {
            if (!bytes_append(out, to.data, to.len))
                return false;
            continue;
        }
        for (size_t i = 0, size; i < n; i += size) {
            size = utf8_character(text + i, n - i, NULL);
            if (!charsmap_find(&step->map, text + i, size, false, &used, &to))
                to = (struct slice){text + i, size};
            if (!bytes_append(out, to.data, to.len))
                return false;
        }
    }
    return true;
}

/* ---- SentencePiece ---- */

/* What stands at the beginning of a text once it is normalised; *n of its bytes are that. */
static struct slice
next_normal(const struct tokenizer *t, const struct normal_step *step, struct slice in, size_t *n)
{
    struct slice to;
    const struct special *symbol = tokenizer_match_special(&t->symbols, in.data, in.len, false);
    if (symbol != NULL) {
        *n = symbol->text.len;
        return (struct slice){in.data, *n};
    }
    if (charsmap_find(&step->map, in.data, in.len, true, n, &to))
        return to;
    *n = utf8_character(in.data, in.len, NULL);
    *n = *n == 0 ? 1 : *n; /* a byte that is no character stays one */
    return (struct slice){in.data, *n};
}

static bool
put_marked(const struct normal_step *step, struct slice s, struct bytes *out)
{
    for (size_t i = 0; i < s.len; i++)
        if (!(step->mark && s.data[i] == ' ' ? bytes_append(out, SPACE_MARK, SPACE_MARK_LEN)
                                             : bytes_append(out, s.data + i, 1)))
            return false;
    return true;
}

bool
normal_put_sentencepiece(const struct tokenizer *t, const struct normal_step *step, struct slice in, struct bytes *out)
{
    const struct slice space = {" ", 1};
    const char *mark = step->mark ? SPACE_MARK : " ";
    const size_t n_mark = step->mark ? SPACE_MARK_LEN : 1, begin = out->len;
    size_t at = 0, n;
    while (step->collapse && at < in.len &&
           slice_is(next_normal(t, step, (struct slice){in.data + at, in.len - at}, &n), " "))
        at += n;
    if (at == in.len)
        return true;
    if (step->prefix && !put_marked(step, space, out))
        return false;
    bool after_space = step->collapse;
    for (; at < in.len; at += n) {
        struct slice s = next_normal(t, step, (struct slice){in.data + at, in.len - at}, &n);
        while (after_space && s.len > 0 && s.data[0] == ' ')
            s = (struct slice){s.data + 1, s.len - 1};
        if (s.len == 0)
            continue;
        if (!put_marked(step, s, out))
            return false;
        after_space = step->collapse && s.data[s.len - 1] == ' ';
    }
    while (step->collapse && out->len - begin >= n_mark && memcmp(out->at + out->len - n_mark, mark, n_mark) == 0)
        out->len -= n_mark;
    return true;
}
