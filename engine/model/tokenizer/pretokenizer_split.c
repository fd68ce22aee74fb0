/* Splits a text into words. The text is copied first, and the steps may rewrite the copy: invalid UTF-8 becomes U+FFFD,
 * which patterns can match, and bytes become characters. Both changes are undone at the end. */
#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"
#include "base/utf8.h"
#include "engine/model/tokenizer/pretokenizer.h"
#include "engine/model/tokenizer/tokenizer_normalize.h"

#define REPLACEMENT 0xfffdu

/* The original bytes of one U+FFFD in the text: invalid bytes, or U+FFFD itself. */
struct replaced {
    char bytes[3];
    unsigned char len;
};

struct words_scratch {
    pcre2_match_data *match;
    char *text; /* the rewritten text under construction */
    size_t room;
    struct word *word;
    size_t word_room, n;
    struct replaced *replaced; /* (n_replaced) every U+FFFD of the text in order; 0: the text had no invalid bytes */
    size_t n_replaced, replaced_room;
};

void
words_free(struct words *w)
{
    if (w->scratch != NULL) {
        pcre2_match_data_free(w->scratch->match);
        free(w->scratch->text);
        free(w->scratch->word);
        free(w->scratch->replaced);
        free(w->scratch);
    }
    free(w->text);
    free(w->word);
    *w = (struct words){0};
}

/* Replaces the text by the rewritten text. */
static void
swap_text(struct words *w, size_t len)
{
    char *text = w->scratch->text;
    const size_t room = w->scratch->room;
    w->scratch->text = w->text;
    w->scratch->room = w->room;
    w->text = text;
    w->room = room;
    w->len = len;
}

static bool
one_word(struct words *w)
{
    if (!array_grow(&w->word, &w->word_room, 1, sizeof *w->word))
        return false;
    w->n = w->len > 0 ? 1 : 0;
    w->word[0] = (struct word){0, w->len};
    return true;
}

/* ---- text in ---- */

static bool
replace_broken(struct words *w, const char *text, size_t len)
{
    struct words_scratch *s = w->scratch;
    if (!array_grow(&w->text, &w->room, 3 * len, 1))
        return false;
    for (size_t at = 0; at < len;) {
        uint32_t code = REPLACEMENT;
        size_t n = utf8_character(text + at, len - at, &code);
        const bool broken = n == 0;
        n = broken ? utf8_broken(text + at, len - at) : n;
        if (code == REPLACEMENT) {
            if (!array_grow(&s->replaced, &s->replaced_room, s->n_replaced + 1, sizeof *s->replaced))
                return false;
            struct replaced *r = &s->replaced[s->n_replaced++];
            r->len = (unsigned char)n;
            memcpy(r->bytes, text + at, n);
            w->len += utf8_put(w->text + w->len, REPLACEMENT);
        } else {
            memcpy(w->text + w->len, text + at, n);
            w->len += n;
        }
        at += n;
    }
    return true;
}

static bool
take_text(struct words *w, const char *text, size_t len)
{
    w->len = 0;
    w->scratch->n_replaced = 0;
    if (utf8_valid(text, len)) {
        if (!array_grow(&w->text, &w->room, len, 1))
            return false;
        if (len > 0)
            memcpy(w->text, text, len);
        w->len = len;
    } else if (!replace_broken(w, text, len)) {
        return false;
    }
    return one_word(w);
}

/* ---- rewriting ---- */

enum rewriting { RESTORE, BYTES_TO_CHARS, CHARS_TO_BYTES };

static size_t
rewrite_character(enum rewriting how, const char *bytes, size_t n, uint32_t code, char *out)
{
    if (how == CHARS_TO_BYTES) {
        *out = (char)byte_of_char(code); /* all characters represent bytes */
        return 1;
    }
    if (how == RESTORE) {
        memcpy(out, bytes, n);
        return n;
    }
    size_t written = 0;
    for (size_t i = 0; i < n; i++)
        written += byte_char_put(out + written, (unsigned char)bytes[i]);
    return written;
}

/* Rewrites every character and adjusts the bounds of the words. U+FFFD becomes its original bytes. */
static bool
rewrite(struct words *w, enum rewriting how)
{
    struct words_scratch *s = w->scratch;
    if (!array_grow(&s->text, &s->room, 2 * w->len, 1))
        return false;
    size_t written = 0, word = 0, end = SIZE_MAX, n_seen = 0;
    for (size_t at = 0, n;; at += n) {
        uint32_t code = 0;
        if (at == end) {
            w->word[word].len = written - w->word[word].at;
            word++;
            end = SIZE_MAX;
        }
        if (word < w->n && end == SIZE_MAX && w->word[word].at == at) {
            end = at + w->word[word].len;
            w->word[word].at = written;
        }
        n = utf8_character(w->text + at, w->len - at, &code);
        if (n == 0) /* the end: the text is well-formed */
            break;
        const char *bytes = w->text + at;
        size_t n_bytes = n;
        if (code == REPLACEMENT && n_seen < s->n_replaced) {
            bytes = s->replaced[n_seen].bytes;
            n_bytes = s->replaced[n_seen++].len;
        }
        written += rewrite_character(how, bytes, n_bytes, code, s->text + written);
    }
    s->n_replaced = 0;
    swap_text(w, written);
    return true;
}

/* ---- steps that add to words ---- */

/* Copies n bytes; for PRE_SPACE_MARK replaces every space by the step's text. */
static size_t
put_marked(const struct pre_step *step, const char *text, size_t n, char *out)
{
    size_t written = 0;
    for (size_t i = 0; i < n; i++) {
        const bool mark = step->kind == PRE_SPACE_MARK && text[i] == ' ';
        memcpy(out + written, mark ? step->text : text + i, mark ? step->n_text : 1);
        written += mark ? step->n_text : 1;
    }
    return written;
}

static bool
wants_prefix(const struct words *w, const struct pre_step *step, const struct word *word, bool first)
{
    if (step->kind != PRE_PREFIX || (step->only_first && !(first && word->at == 0)))
        return false;
    return word->len < step->n_text || memcmp(w->text + word->at, step->text, step->n_text) != 0;
}

/* Marks the spaces in words, or adds the prefix to each word that does not begin with it. The text between words is not
 * changed. */
static bool
add_to_words(struct words *w, const struct pre_step *step, bool first)
{
    size_t more = w->n, written = 0, done = 0;
    for (size_t i = 0; i < w->len; i++)
        more += w->text[i] == ' ';
    if (!array_grow(&w->scratch->text, &w->scratch->room, w->len + more * step->n_text, 1))
        return false;
    char *out = w->scratch->text;
    for (size_t i = 0; i < w->n; i++) {
        struct word *word = &w->word[i];
        memcpy(out + written, w->text + done, word->at - done);
        written += word->at - done;
        done = word->at + word->len;
        const size_t begin = written;
        if (wants_prefix(w, step, word, first)) {
            memcpy(out + written, step->text, step->n_text);
            written += step->n_text;
        }
        written += put_marked(step, w->text + word->at, word->len, out + written);
        *word = (struct word){begin, written - begin};
    }
    if (w->len > done)
        memcpy(out + written, w->text + done, w->len - done);
    swap_text(w, written + w->len - done);
    return true;
}

/* ---- splitting ---- */

struct splitting {
    struct words *words;
    const struct pre_step *step;
    size_t first;      /* index of the first part of the word being split */
    bool last_matched; /* the last part was a match of the pattern */
};

static bool
push_part(struct splitting *s, size_t from, size_t to, bool matched)
{
    struct words_scratch *scratch = s->words->scratch;
    matched = matched != s->step->invert;
    if (from == to)
        return true;
    const bool any = scratch->n > s->first, last = any && s->last_matched;
    bool extend = false;
    switch (s->step->behavior) {
    case SPLIT_ISOLATED: break;
    case SPLIT_REMOVED:
        if (matched)
            return true;
        break;
    case SPLIT_CONTIGUOUS: extend = any && last == matched; break;
    case SPLIT_WITH_PREVIOUS: extend = any && matched && !last; break;
    case SPLIT_WITH_NEXT: extend = last && !matched; break;
    }
    s->last_matched = matched;
    if (extend) {
        scratch->word[scratch->n - 1].len = to - scratch->word[scratch->n - 1].at;
        return true;
    }
    if (!array_grow(&scratch->word, &scratch->word_room, scratch->n + 1, sizeof *scratch->word))
        return false;
    scratch->word[scratch->n++] = (struct word){from, to - from};
    return true;
}

static bool
match_failed(int code, struct err *err)
{
    char message[160];
    pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message);
    return err_set(err, ERR_WORK, "the text cannot be tokenized: %s in the pre-tokenizer's pattern", message);
}

static bool
out_of_memory(struct err *err)
{
    return err_set(err, ERR_WORK, "out of memory tokenizing");
}

static bool
split_word(const struct pretokenizer *p, struct splitting *s, struct word word, struct err *err)
{
    struct words_scratch *scratch = s->words->scratch;
    PCRE2_SPTR subject = (PCRE2_SPTR)s->words->text + word.at;
    size_t done = 0; /* bytes of the word already split */
    s->first = scratch->n;
    for (size_t at = 0; at <= word.len;) {
        int found = pcre2_match(s->step->code, subject, word.len, at, PCRE2_NO_UTF_CHECK, scratch->match, p->limits);
        if (found == PCRE2_ERROR_JIT_STACKLIMIT)
            found = pcre2_match(s->step->code, subject, word.len, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, scratch->match,
                                p->limits);
        if (found == PCRE2_ERROR_NOMATCH)
            break;
        const PCRE2_SIZE *place = pcre2_get_ovector_pointer(scratch->match);
        if (found < 0)
            return match_failed(found, err);
        if (place[0] < done || place[1] < place[0])
            return err_set(err, ERR_WORK,
                           "the text cannot be tokenized: a pattern of the pre-tokenizer goes backwards");
        if (!push_part(s, word.at + done, word.at + place[0], false) ||
            !push_part(s, word.at + place[0], word.at + place[1], true))
            return out_of_memory(err);
        done = at = place[1];
        if (place[0] == place[1]) { /* an empty match: continue at the next character */
            const size_t n = utf8_character((const char *)subject + at, word.len - at, NULL);
            at += n > 0 ? n : 1;
        }
    }
    return push_part(s, word.at + done, word.at + word.len, false) || out_of_memory(err);
}

static bool
split(const struct pretokenizer *p, struct words *w, const struct pre_step *step, struct err *err)
{
    struct words_scratch *s = w->scratch;
    struct splitting splitting = {.words = w, .step = step};
    s->n = 0;
    for (size_t i = 0; i < w->n; i++)
        if (!split_word(p, &splitting, w->word[i], err))
            return false;
    struct word *word = w->word;
    const size_t room = w->word_room;
    w->word = s->word;
    w->word_room = s->word_room;
    w->n = s->n;
    s->word = word;
    s->word_room = room;
    return true;
}

/* ---- all steps ---- */

static bool
make_scratch(struct words *w)
{
    if (w->scratch != NULL)
        return true;
    w->scratch = calloc(1, sizeof *w->scratch);
    if (w->scratch != NULL)
        w->scratch->match = pcre2_match_data_create(1, NULL);
    return w->scratch != NULL && w->scratch->match != NULL;
}

bool
pretokenizer_split(const struct pretokenizer *p, const char *text, size_t len, bool first, struct words *w,
                   struct err *err)
{
    if (!make_scratch(w) || !take_text(w, text, len))
        return out_of_memory(err);
    for (unsigned i = 0; i < p->n_steps; i++) {
        const struct pre_step *step = &p->steps[i];
        bool ok = true;
        switch (step->kind) {
        case PRE_SPLIT:
            if (!split(p, w, step, err))
                return false;
            break;
        case PRE_PREFIX:
        case PRE_SPACE_MARK: ok = add_to_words(w, step, first); break;
        case PRE_BYTES: ok = rewrite(w, BYTES_TO_CHARS); break;
        }
        if (!ok)
            return out_of_memory(err);
    }
    if (p->byte_chars)
        return rewrite(w, CHARS_TO_BYTES) || out_of_memory(err);
    return w->scratch->n_replaced == 0 || rewrite(w, RESTORE) || out_of_memory(err);
}
