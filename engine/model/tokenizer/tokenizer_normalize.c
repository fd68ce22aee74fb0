/* Normalises text before tokenization: the characters of byte-level BPE, precompiled maps, regular expressions and
 * Unicode normal forms. */
#include "engine/model/tokenizer/tokenizer_normalize.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/array_grow.h"
#include "base/little_endian.h"
#include "base/utf8.h"
#include "engine/model/tokenizer/pretokenizer.h"
#include "engine/model/tokenizer/tokenizer_internal.h"

/* Returns a byte's index among those that do not represent themselves (0..32, 127..160, 173); -1 if it is not one of
 * them. */
static int
place_among_others(unsigned byte)
{
    if (byte <= 32)
        return (int)byte;
    if (byte >= 127 && byte <= 160)
        return (int)byte - 127 + 33;
    return byte == 173 ? 33 + 34 : -1;
}

size_t
byte_char_put(char out[2], unsigned char byte)
{
    const int place = place_among_others(byte);
    char character[4];
    const size_t n = utf8_put(character, place < 0 ? byte : 0x100u + (unsigned)place);
    out[0] = character[0];
    if (n > 1)
        out[1] = character[1];
    return n;
}

int
byte_of_char(uint32_t code)
{
    if (code < 0x100)
        return place_among_others(code) < 0 ? (int)code : -1;
    const uint32_t place = code - 0x100;
    if (place < 33)
        return (int)place;
    if (place < 33 + 34)
        return (int)place - 33 + 127;
    return place == 33 + 34 ? 173 : -1;
}

size_t
byte_chars_read(char *out, const char *text, size_t len)
{
    size_t n = 0;
    for (size_t at = 0; at < len;) {
        uint32_t code;
        const size_t size = utf8_character(text + at, len - at, &code);
        const int byte = size == 0 ? -1 : byte_of_char(code);
        if (byte < 0)
            return SIZE_MAX;
        out[n++] = (char)byte;
        at += size;
    }
    return n;
}

/* A unit of the double array (darts-clone) contains the offset of its children (exclusive or with their byte), its own
 * byte (LABEL), and whether a key ends here (HAS_LEAF). The key's value is then in the child without a byte. */
#define LABEL(unit)    ((unit) & (1u << 31 | 0xffu))
#define HAS_LEAF(unit) ((unit) >> 8 & 1)
#define OFFSET(unit)   (((unit) >> 10) << ((unit) >> 6 & 8))
#define VALUE(unit)    ((unit)&0x7fffffffu)

static uint32_t
unit_of(const char *bytes)
{
    return (uint32_t)little_endian((const unsigned char *)bytes, 4);
}

bool
charsmap_read(struct charsmap *map, struct slice bytes)
{
    *map = (struct charsmap){.texts = {"", 0}};
    if (bytes.len == 0)
        return true;
    const uint64_t n = bytes.len < 4 ? UINT64_MAX : unit_of(bytes.data);
    if (n % 4 != 0 || n == 0 || n > bytes.len - 4)
        return false;
    *map = (struct charsmap){bytes.data + 4, (size_t)n / 4, {bytes.data + 4 + n, bytes.len - 4 - (size_t)n}};
    return true;
}

/* Reads the unit at an index; returns false if the index is outside the map. */
static bool
unit_at(const struct charsmap *map, size_t place, uint32_t *unit)
{
    if (place >= map->n_units)
        return false;
    *unit = unit_of(map->units + 4 * place);
    return true;
}

/* Finds the longest or the shortest mapped prefix of a text of `len` bytes: its *n bytes are mapped to *to. */
static bool
charsmap_find(const struct charsmap *map, const char *text, size_t len, bool longest, size_t *n, struct slice *to)
{
    uint32_t unit, leaf;
    bool found = false;
    if (!unit_at(map, 0, &unit))
        return false;
    size_t place = OFFSET(unit);
    for (size_t i = 0; i < len && (longest || !found); i++) {
        const unsigned char c = (unsigned char)text[i];
        place ^= c;
        if (c == '\0' || !unit_at(map, place, &unit) || LABEL(unit) != c)
            break;
        place ^= OFFSET(unit);
        if (!HAS_LEAF(unit) || !unit_at(map, place, &leaf) || VALUE(leaf) >= map->texts.len)
            continue;
        const char *begin = map->texts.data + VALUE(leaf);
        const char *end = memchr(begin, '\0', map->texts.len - VALUE(leaf));
        *to = (struct slice){begin, end == NULL ? map->texts.len - VALUE(leaf) : (size_t)(end - begin)};
        *n = i + 1;
        found = true;
    }
    return found;
}

/* Normalisation with a precompiled map, as in Hugging Face's tokenizers and as in SentencePiece. */

#define WHOLE_CLUSTER 6 /* bytes: a shorter cluster is first looked up as a whole */

/* Returns the bytes of a text's first cluster of characters; 0 if the text does not begin with a valid character. */
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

/* Replaces each cluster, or each character, by the value of its shortest mapped prefix, and appends to *out. Returns
 * false if out of memory. */
static bool
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

/* Returns the normalised form of a prefix of the text; *n is the length of the prefix in bytes. */
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
    *n = *n == 0 ? 1 : *n; /* an invalid byte is not changed */
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

static bool
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

/* The normalisation step that replaces the matches of a regular expression. */

struct pattern {
    pcre2_code *code;
    pcre2_match_context *limits;
};

void
pattern_close(struct pattern *p)
{
    if (p == NULL)
        return;
    pcre2_code_free(p->code);
    pcre2_match_context_free(p->limits);
    free(p);
}

struct pattern *
pattern_open(const char *text, size_t len, struct err *err)
{
    struct pattern *p = calloc(1, sizeof *p);
    if (p == NULL) {
        err_set(err, ERR_WORK, "out of memory for a pattern");
        return NULL;
    }
    p->code = pretokenizer_compile(text, len, false, err);
    p->limits = p->code == NULL ? NULL : pcre2_match_context_create(NULL);
    if (p->limits != NULL) {
        pcre2_set_match_limit(p->limits, MATCH_LIMIT);
        pcre2_set_heap_limit(p->limits, MATCH_HEAP_KIB);
        return p;
    }
    if (p->code != NULL)
        err_set(err, ERR_WORK, "out of memory for a pattern");
    pattern_close(p);
    return NULL;
}

static bool
put_matches(const struct normal_step *step, struct slice in, pcre2_match_data *match, struct bytes *out)
{
    const struct pattern *p = step->pattern;
    size_t done = 0;
    for (size_t at = 0; at <= in.len;) {
        PCRE2_SPTR text = (PCRE2_SPTR)in.data;
        int found = pcre2_match(p->code, text, in.len, at, PCRE2_NO_UTF_CHECK, match, p->limits);
        if (found == PCRE2_ERROR_JIT_STACKLIMIT)
            found = pcre2_match(p->code, text, in.len, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match, p->limits);
        if (found == PCRE2_ERROR_NOMATCH)
            break;
        const PCRE2_SIZE *place = pcre2_get_ovector_pointer(match);
        if (found < 0 || place[0] < done || place[1] < place[0] ||
            !bytes_append(out, in.data + done, place[0] - done) || !bytes_append(out, step->to.data, step->to.len))
            return false;
        done = at = place[1];
        if (place[0] == place[1]) { /* an empty match: continue at the next character */
            const size_t n = utf8_character(in.data + at, in.len - at, NULL);
            at += n > 0 ? n : 1;
        }
    }
    return bytes_append(out, in.data + done, in.len - done);
}

/* Replaces matches in segments of valid UTF-8; invalid bytes between them are not changed. Returns false if out of
 * memory or if matching takes too long. */
static bool
normal_put_pattern(const struct normal_step *step, struct slice in, struct bytes *out)
{
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(step->pattern->code, NULL);
    bool ok = match != NULL;
    for (size_t at = 0; ok && at < in.len;) {
        const size_t start = at;
        for (size_t n; at < in.len && (n = utf8_character(in.data + at, in.len - at, NULL)) > 0;)
            at += n;
        ok = at == start || put_matches(step, (struct slice){in.data + start, at - start}, match, out);
        if (ok && at < in.len)
            ok = bytes_append(out, in.data + at++, 1);
    }
    pcre2_match_data_free(match);
    return ok;
}

/* The other normalisation steps: Unicode normalisation, a prefix, marks for spaces. */

bool
bytes_append(struct bytes *b, const char *bytes, size_t n)
{
    if (!array_grow(&b->at, &b->room, b->len + n, 1)) {
        b->starved = true;
        return false;
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

/* Normalises segments of valid UTF-8; invalid bytes between them are not changed. */
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

struct slice
tokenizer_trim(const struct normal_step *step, struct slice in)
{
    const struct slice from = step->from;
    for (uint32_t i = 0; i < step->first && in.len >= from.len && memcmp(in.data, from.data, from.len) == 0; i++)
        in = (struct slice){in.data + from.len, in.len - from.len};
    for (uint32_t i = 0;
         i < step->last && in.len >= from.len && memcmp(in.data + in.len - from.len, from.data, from.len) == 0; i++)
        in.len -= from.len;
    return in;
}

static bool
put_step(const struct tokenizer *t, const struct normal_step *step, struct slice in, struct bytes *out)
{
    switch (step->kind) {
    case NORMAL_PREPEND: return bytes_append(out, step->to.data, step->to.len) && bytes_append(out, in.data, in.len);
    case NORMAL_REPLACE: return put_replaced(step, in, out);
    case NORMAL_PATTERN: return normal_put_pattern(step, in, out);
    case NORMAL_STRIP: return put_stripped(step, in, out);
    case NORMAL_TRIM: {
        const struct slice kept = tokenizer_trim(step, in);
        return bytes_append(out, kept.data, kept.len);
    }
    case NORMAL_CHARSMAP: return normal_put_charsmap(step, in, out);
    case NORMAL_SENTENCEPIECE: return normal_put_sentencepiece(t, step, in, out);
    default: return put_form(step->kind, in, out);
    }
}

bool
tokenizer_apply(const struct tokenizer *t, const struct normal_step *steps, unsigned n, struct slice text,
                struct bytes buffers[2], struct slice *out)
{
    const bool ascii = n > 0 && is_ascii(text);
    for (unsigned i = 0, buffer = 0; i < n; i++) {
        const struct normal_step *step = &steps[i];
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

bool
tokenizer_normalize(const struct tokenizer *t, struct slice text, struct bytes buffers[2], struct slice *out)
{
    return tokenizer_apply(t, t->normal, t->n_normal, text, buffers, out);
}
