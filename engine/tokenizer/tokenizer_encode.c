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
    struct tokenize_options options;
    size_t n_passed; /* of options.plain: those in sections before */
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

static int
compare_places(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static const struct special *
special_at(const struct special_set *set, struct slice text, size_t at, const struct tokenize_options *o)
{
    const struct special *s = tokenizer_match_special(set, text.data + at, text.len - at, o->special);
    if (s == NULL || !s->control || o->n_plain == 0 ||
        bsearch(&at, o->plain, o->n_plain, sizeof at, compare_places) == NULL)
        return s;
    return tokenizer_match_special(set, text.data + at, text.len - at, false);
}

/* The next special from `done` on, where what it takes on its left begins at the earliest. */
static struct found
find_special(const struct special_set *set, struct slice text, size_t done, const struct tokenize_options *o)
{
    for (size_t at = done; set->n > 0 && at < text.len;) {
        const struct special *s = special_at(set, text, at, o);
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

/* Of normalised text nobody knows which bytes of it were plain: in a section that has such all control tokens stay text. */
static bool
encode_section(struct encoding *e, struct slice section, size_t at, bool first)
{
    const struct tokenizer *t = e->tokenizer;
    struct tokenize_options options = {.special = e->options.special};
    struct slice text;
    for (; e->n_passed < e->options.n_plain && e->options.plain[e->n_passed] < at + section.len; e->n_passed++)
        options.special = options.special && e->options.plain[e->n_passed] < at;
    if (section.len == 0)
        return true;
    if (!tokenizer_normalize(t, section, e->normal, &text))
        return err_set(e->err, ERR_WORK, "out of memory, or a pattern that takes too long, normalising a text");
    for (size_t done = 0; done < text.len;) {
        const struct found f = find_special(&t->normal_specials, text, done, &options);
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
encode(struct encoding *e, struct slice text)
{
    const struct tokenizer *t = e->tokenizer;
    if (!encode_ends(e, &t->before, e->options.bos))
        return false;
    for (size_t done = 0; done < text.len;) {
        const struct found f = find_special(&t->specials, text, done, &e->options);
        if (!encode_section(e, (struct slice){text.data + done, f.at - done}, done, done == 0))
            return false;
        if (f.special != NULL && !ids_push(&e->ids, f.special->id))
            return out_of_memory(e);
        done = f.end;
    }
    return encode_ends(e, &t->after, e->options.eos);
}

size_t
tokenizer_next_control(const void *tokenizer, struct slice text, size_t from)
{
    const struct tokenizer *t = tokenizer;
    const struct special_set *const sets[] = {&t->specials, &t->normal_specials};
    for (size_t at = from; at < text.len; at++)
        for (int i = 0; i < 2; i++) {
            const struct special *s = tokenizer_match_special(sets[i], text.data + at, text.len - at, true);
            if (s != NULL && s->control)
                return at;
        }
    return SIZE_MAX;
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
    struct encoding e = {.tokenizer = t, .options = options, .ids.room = len / 3 + 16, .err = err};
    e.ids.at = malloc(e.ids.room * sizeof *e.ids.at);
    const bool ok = e.ids.at != NULL ? encode(&e, (struct slice){text, len}) : out_of_memory(&e);
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
