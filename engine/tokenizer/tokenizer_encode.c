/* Text to ids: special tokens cut the input into sections; a section is normalised, cut into words, and each word merged
 * into pieces. */
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer_internal.h"

#define LONGEST_TEXT (1u << 28) /* bytes */

struct encoding {
    const struct tokenizer *tokenizer;
    bool control; /* control tokens are recognised */
    struct bytes normal[2];
    struct words words;
    struct merging merging;
    struct ids ids;
    struct err *err;
};

static bool
out_of_memory(struct encoding *e)
{
    return err_set(e->err, ERR_WORK, "out of memory tokenizing");
}

/* ---- special tokens in a text ---- */

/* The code point that ends at `at`; *n its bytes, 0 if there is none. */
static uint32_t
character_before(const char *text, size_t at, size_t *n)
{
    uint32_t code = 0;
    for (*n = 1; *n <= 4 && *n <= at; ++*n)
        if (utf8_character(text + at - *n, *n, &code) == *n)
            return code;
    *n = 0;
    return 0;
}

/* A letter, mark, digit or connector, of which words are made. */
static bool
in_word(uint32_t code)
{
    const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) || c == UTF8PROC_CATEGORY_PC;
}

static bool
stands_alone(struct slice text, size_t at, size_t end)
{
    size_t n;
    uint32_t code = character_before(text.data, at, &n);
    if (n > 0 && in_word(code))
        return false;
    return utf8_character(text.data + end, text.len - end, &code) == 0 || !in_word(code);
}

struct found {
    const struct special *special; /* NULL: there is none */
    size_t at, end;                /* with the white space that it takes */
};

/* The next special from `from` on; what it takes on its left begins at `done` at the earliest. */
static struct found
find_special(const struct special_set *set, struct slice text, size_t from, size_t done, bool control)
{
    for (size_t at = from; set->n > 0 && at < text.len;) {
        const struct special *s = tokenizer_match_special(set, text.data + at, text.len - at, control);
        if (s == NULL) {
            const size_t size = utf8_character(text.data + at, text.len - at, NULL);
            at += size == 0 ? 1 : size;
            continue;
        }
        struct found f = {s, at, at + s->text.len};
        at = f.end;
        if (s->single_word && !stands_alone(text, f.at, f.end))
            continue;
        uint32_t code;
        for (size_t n; s->lstrip && f.at > done && (code = character_before(text.data, f.at, &n), n > 0) &&
                       n <= f.at - done && utf8_is_space(code);)
            f.at -= n;
        for (size_t n;
             s->rstrip && (n = utf8_character(text.data + f.end, text.len - f.end, &code)) > 0 && utf8_is_space(code);)
            f.end += n;
        return f;
    }
    return (struct found){NULL, text.len, text.len};
}

/* ---- sections ---- */

static bool
encode_plain(struct encoding *e, struct slice text, bool first)
{
    const struct tokenizer *t = e->tokenizer;
    bool (*const cut)(const struct tokenizer *, struct merging *, const char *, size_t, struct ids *) =
        t->unigram ? tokenizer_unigram_word : tokenizer_merge_word;
    if (t->pre == NULL)
        return cut(t, &e->merging, text.data, text.len, &e->ids) || out_of_memory(e);
    if (!pretokenizer_split(t->pre, text.data, text.len, first, &e->words, e->err))
        return false;
    for (size_t i = 0; i < e->words.n; i++) {
        const struct word *w = &e->words.word[i];
        if (!cut(t, &e->merging, e->words.text + w->at, w->len, &e->ids))
            return out_of_memory(e);
    }
    return true;
}

static bool
encode_section(struct encoding *e, struct slice section, bool first)
{
    const struct tokenizer *t = e->tokenizer;
    struct slice text;
    if (section.len == 0)
        return true;
    if (!tokenizer_normalize(t, section, e->normal, &text))
        return err_set(e->err, ERR_WORK, "out of memory, or a pattern that takes too long, normalising a text");
    for (size_t done = 0; done < text.len;) {
        const struct found f = find_special(&t->normal_specials, text, done, done, e->control);
        if (!encode_plain(e, (struct slice){text.data + done, f.at - done}, first && done == 0))
            return false;
        if (f.special != NULL && !ids_push(&e->ids, f.special->id))
            return out_of_memory(e);
        done = f.end;
    }
    return true;
}

static bool
encode_ends(struct encoding *e, const struct end_tokens *ends, bool wanted)
{
    for (unsigned i = 0; wanted && i < ends->n; i++)
        if (!ids_push(&e->ids, ends->ids[i]))
            return out_of_memory(e);
    return true;
}

static bool
encode(struct encoding *e, struct slice text, struct tokenize_options options)
{
    const struct tokenizer *t = e->tokenizer;
    if (!encode_ends(e, &t->before, options.bos))
        return false;
    for (size_t done = 0; done < text.len;) {
        const struct found f = find_special(&t->specials, text, done, done, e->control);
        if (!encode_section(e, (struct slice){text.data + done, f.at - done}, done == 0))
            return false;
        if (f.special != NULL && !ids_push(&e->ids, f.special->id))
            return out_of_memory(e);
        done = f.end;
    }
    return encode_ends(e, &t->after, options.eos);
}

bool
tokenizer_encode(const struct tokenizer *t, const char *text, size_t len, struct tokenize_options options,
                 token_t **ids, size_t *n, struct err *err)
{
    *ids = NULL;
    *n = 0;
    if (len > LONGEST_TEXT)
        return err_set(err, ERR_USAGE, "a text of %zu bytes is too long to tokenize at once (at most %u)", len,
                       LONGEST_TEXT);
    struct encoding e = {.tokenizer = t, .control = options.special, .ids.room = len / 3 + 16, .err = err};
    e.ids.at = malloc(e.ids.room * sizeof *e.ids.at);
    const bool ok = e.ids.at != NULL ? encode(&e, (struct slice){text, len}, options) : out_of_memory(&e);
    free(e.normal[0].at);
    free(e.normal[1].at);
    words_free(&e.words);
    merging_free(&e.merging);
    if (!ok) {
        free(e.ids.at);
        return false;
    }
    *ids = e.ids.at;
    *n = e.ids.n;
    return true;
}
