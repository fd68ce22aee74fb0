/* Finding pieces by their bytes and merges by their halves in hash tables, and in a sorted list the longest special token
 * at a place. */
#include <stdlib.h>
#include <string.h>

#include "engine/tokenizer/tokenizer_internal.h"

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

bool
tokenizer_index_pieces(struct tokenizer *t, const bool *pieces)
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
        const struct slice piece = t->text[id];
        const bool wanted = pieces != NULL ? pieces[id] : t->kind[id] == TOKEN_NORMAL;
        if (!wanted || piece.len == 0 || piece.len > UINT32_MAX)
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

/* ---- merges ---- */

static uint32_t
hash_pair(token_t left, token_t right)
{
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

bool
merge_table_make(struct merge_table *m, uint32_t n)
{
    uint64_t n_slots = 16;
    while (n_slots < 2 * (uint64_t)n)
        n_slots *= 2;
    m->slots = malloc((size_t)n_slots * sizeof *m->slots);
    if (m->slots == NULL)
        return false;
    m->mask = (uint32_t)(n_slots - 1);
    for (uint64_t i = 0; i < n_slots; i++)
        m->slots[i] = (struct merge){.id = TOKEN_NONE};
    return true;
}

void
merge_table_add(struct merge_table *m, token_t left, token_t right, uint32_t rank, token_t id)
{
    uint32_t i = hash_pair(left, right) & m->mask;
    for (; m->slots[i].id != TOKEN_NONE; i = (i + 1) & m->mask)
        if (m->slots[i].left == left && m->slots[i].right == right)
            return;
    m->slots[i] = (struct merge){left, right, id, rank};
}

const struct merge *
merge_table_find(const struct merge_table *m, token_t left, token_t right)
{
    for (uint32_t i = hash_pair(left, right) & m->mask; m->slots[i].id != TOKEN_NONE; i = (i + 1) & m->mask)
        if (m->slots[i].left == left && m->slots[i].right == right)
            return &m->slots[i];
    return NULL;
}

/* ---- specials ---- */

static int
compare_specials(const void *a, const void *b)
{
    const struct special *s = a, *t = b;
    const int order = slice_compare(s->text, t->text);
    return order != 0 ? order : (s->id > t->id) - (s->id < t->id);
}

void
tokenizer_index_specials(struct special_set *set)
{
    if (set->n > 0)
        qsort(set->list, set->n, sizeof *set->list, compare_specials);
    for (uint32_t i = 0; i < set->n; i++)
        set->starts[(unsigned char)set->list[i].text.data[0]] = true;
}

/* The first special in [low, high) whose byte `depth` is at least c; those that end before it come first. */
static uint32_t
lower_bound(const struct special_set *set, uint32_t low, uint32_t high, size_t depth, unsigned c)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct slice s = set->list[middle].text;
        if (s.len <= depth || (unsigned char)s.data[depth] < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct special *
tokenizer_match_special(const struct special_set *set, const char *bytes, size_t len, bool control)
{
    const struct special *longest = NULL;
    if (len == 0 || !set->starts[(unsigned char)bytes[0]])
        return NULL;
    uint32_t low = 0, high = set->n; /* those that agree with bytes[0..depth) */
    for (size_t depth = 0; depth < len && low < high; depth++) {
        const unsigned c = (unsigned char)bytes[depth];
        high = lower_bound(set, low, high, depth, c + 1);
        low = lower_bound(set, low, high, depth, c);
        for (uint32_t i = low; i < high && set->list[i].text.len == depth + 1; i++)
            if (!set->list[i].control || control) {
                longest = &set->list[i];
                break;
            }
    }
    return longest;
}
