/* Finding pieces by their bytes: a hash table for merging, a sorted list for the longest special token at a place. */
#include <stdlib.h>
#include <string.h>

#include "engine/tokenizer_internal.h"

static uint64_t
hash_bytes(const char *bytes, size_t len)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, its high bits folded in since the table uses the low ones */
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return h ^ h >> 32;
}

token_t
tokenizer_find(const struct tokenizer *t, const char *bytes, size_t len)
{
    if (len == 0 || len > t->longest_piece)
        return TOKEN_NONE;
    for (uint32_t i = (uint32_t)hash_bytes(bytes, len) & t->mask;; i = (i + 1) & t->mask) {
        token_t id = t->slots[i];
        if (id == TOKEN_NONE)
            return TOKEN_NONE;
        if (t->text[id].len == len && memcmp(t->text[id].data, bytes, len) == 0)
            return id;
    }
}

static bool
index_pieces(struct tokenizer *t)
{
    uint64_t n_slots = 16;
    while (n_slots < 2 * (uint64_t)t->n)
        n_slots *= 2;
    t->slots = malloc((size_t)n_slots * sizeof *t->slots);
    if (t->slots == NULL)
        return false;
    t->mask = (uint32_t)(n_slots - 1);
    for (uint64_t i = 0; i < n_slots; i++)
        t->slots[i] = TOKEN_NONE;
    for (uint32_t id = 0; id < t->n; id++) {
        const struct gguf_string piece = t->text[id];
        if (t->kind[id] != TOKEN_NORMAL || piece.len == 0 || piece.len > UINT32_MAX)
            continue;
        if (piece.len > t->longest_piece)
            t->longest_piece = (uint32_t)piece.len;
        if (tokenizer_find(t, piece.data, piece.len) != TOKEN_NONE)
            continue;
        uint32_t i = (uint32_t)hash_bytes(piece.data, piece.len) & t->mask;
        while (t->slots[i] != TOKEN_NONE)
            i = (i + 1) & t->mask;
        t->slots[i] = (token_t)id;
    }
    return true;
}

static int
compare_specials(const void *a, const void *b)
{
    const struct special *s = a, *t = b;
    size_t shorter = s->text.len < t->text.len ? s->text.len : t->text.len;
    int order = memcmp(s->text.data, t->text.data, shorter);
    if (order == 0)
        order = (s->text.len > t->text.len) - (s->text.len < t->text.len);
    return order != 0 ? order : (s->id > t->id) - (s->id < t->id);
}

static bool
is_special(const struct tokenizer *t, uint32_t id)
{
    return (t->kind[id] == TOKEN_USER || t->kind[id] == TOKEN_CONTROL) && t->text[id].len > 0;
}

static bool
index_specials(struct tokenizer *t)
{
    size_t n = 0, bytes = 0;
    for (uint32_t id = 0; id < t->n; id++) {
        if (!is_special(t, id))
            continue;
        n++;
        bytes += SPACE_MARK_LEN * t->text[id].len;
    }
    t->specials = malloc((n + 1) * sizeof *t->specials);
    t->special_bytes = malloc(bytes + 1);
    if (t->specials == NULL || t->special_bytes == NULL)
        return false;
    char *at = t->special_bytes;
    for (uint32_t id = 0; id < t->n; id++) {
        if (!is_special(t, id))
            continue;
        char *start = at;
        for (size_t i = 0; i < t->text[id].len; i++) {
            if (t->text[id].data[i] == ' ') {
                at = put_space_mark(at);
            } else {
                *at++ = t->text[id].data[i];
            }
        }
        t->specials[t->n_specials++] =
            (struct special){{start, (size_t)(at - start)}, (token_t)id, t->kind[id] == TOKEN_CONTROL};
    }
    qsort(t->specials, t->n_specials, sizeof *t->specials, compare_specials);
    return true;
}

/* The first special in [low, high) whose byte `depth` is at least c; those that end before it come first. */
static uint32_t
lower_bound(const struct tokenizer *t, uint32_t low, uint32_t high, size_t depth, unsigned c)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct gguf_string s = t->specials[middle].text;
        if (s.len <= depth || (unsigned char)s.data[depth] < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct special *
tokenizer_match_special(const struct tokenizer *t, const char *bytes, size_t len, bool control)
{
    const struct special *longest = NULL;
    uint32_t low = 0, high = t->n_specials; /* those that agree with bytes[0..depth) */
    for (size_t depth = 0; depth < len && low < high; depth++) {
        const unsigned c = (unsigned char)bytes[depth];
        high = lower_bound(t, low, high, depth, c + 1);
        low = lower_bound(t, low, high, depth, c);
        for (uint32_t i = low; i < high && t->specials[i].text.len == depth + 1; i++)
            if (!t->specials[i].control || control) {
                longest = &t->specials[i];
                break;
            }
    }
    return longest;
}

bool
tokenizer_index(struct tokenizer *t, struct err *err)
{
    if (index_pieces(t) && index_specials(t))
        return true;
    return err_set(err, ERR_WORK, "out of memory for a vocabulary of %u tokens", t->n);
}
