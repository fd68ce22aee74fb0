/* A word to pieces. Every symbol (a character; in byte-level BPE a byte) begins as a piece of its own, and as long as two
 * neighbours make a piece, the best pair (the highest score or the lowest rank, the leftmost of equals) becomes one symbol.
 * A heap of candidate pairs makes that O(n log n): a merge adds at most two candidates, and those that it outdated are
 * recognised when they come up. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer_internal.h"

#define NONE UINT32_MAX

struct symbol {
    uint32_t at, len; /* its bytes in the word; len 0: merged into its left neighbour */
    uint32_t previous, next;
    token_t id; /* TOKEN_NONE if it is no piece */
};

struct pair {
    double order;              /* the lowest comes first: a rank, or a score's negative */
    uint32_t left, right, len; /* len: of both when the pair was found */
    token_t id;
};

void
merging_free(struct merging *m)
{
    free(m->symbols);
    free(m->heap);
    free(m->ways);
    *m = (struct merging){0};
}

bool
ids_push(struct ids *ids, token_t id)
{
    if (ids->n == ids->room) {
        const size_t room = 2 * ids->room + 64;
        token_t *grown = realloc(ids->at, room * sizeof *grown);
        if (grown == NULL)
            return false;
        ids->at = grown;
        ids->room = room;
    }
    ids->at[ids->n++] = id;
    return true;
}

/* ---- heap ---- */

static bool
better(const struct pair *a, const struct pair *b)
{
    return a->order < b->order || (!(b->order < a->order) && a->left < b->left);
}

static void
heap_push(struct merging *m, struct pair pair)
{
    size_t i = m->n_heap++;
    while (i > 0 && better(&pair, &m->heap[(i - 1) / 2])) {
        m->heap[i] = m->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    m->heap[i] = pair;
}

static struct pair
heap_pop(struct merging *m)
{
    const struct pair best = m->heap[0], last = m->heap[--m->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < m->n_heap; i = child) {
        if (child + 1 < m->n_heap && better(&m->heap[child + 1], &m->heap[child]))
            child++;
        if (!better(&m->heap[child], &last))
            break;
        m->heap[i] = m->heap[child];
    }
    m->heap[i] = last;
    return best;
}

/* ---- symbols ---- */

/* Room for n symbols and the pairs among them: n - 1 to begin with, and each of n - 1 merges adds one more than it takes. */
static bool
make_room(struct merging *m, size_t n)
{
    if (n <= m->room)
        return true;
    merging_free(m);
    const size_t room = n + n / 2 + 64;
    m->symbols = malloc(room * sizeof *m->symbols);
    m->heap = malloc(2 * room * sizeof *m->heap);
    m->room = m->symbols != NULL && m->heap != NULL ? room : 0;
    return m->room > 0;
}

/* Whether a character that is no piece can be spelled in byte tokens. */
static bool
has_bytes(const struct tokenizer *t, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (t->byte[(unsigned char)bytes[i]] == TOKEN_NONE)
            return false;
    return true;
}

struct symbols {
    struct symbol *at;
    uint32_t n;
};

static void
add_symbol(struct symbols *s, size_t at, size_t len, token_t id)
{
    s->at[s->n] = (struct symbol){(uint32_t)at, (uint32_t)len, s->n - 1, s->n + 1, id};
    s->n++;
}

static void
add_unknown(const struct tokenizer *t, struct symbols *s, size_t at, size_t len)
{
    if (t->unknown == TOKEN_NONE)
        return; /* the model has no word for it, not even that */
    if (t->fuse_unknown && s->n > 0 && s->at[s->n - 1].id == t->unknown)
        s->at[s->n - 1].len += (uint32_t)len;
    else
        add_symbol(s, at, len, t->unknown);
}

/* By rank, what is no piece becomes byte tokens or <unk> before anything merges. */
static uint32_t
split_for_ranks(const struct tokenizer *t, const char *word, size_t len, struct symbol *out)
{
    struct symbols s = {.at = out};
    for (size_t at = 0, size; at < len; at += size) {
        size = 1;
        token_t id = TOKEN_NONE;
        if (t->byte_level) {
            id = t->byte[(unsigned char)word[at]];
        } else {
            size = utf8_character(word + at, len - at, NULL);
            size = size == 0 ? utf8_broken(word + at, len - at) : size;
            id = tokenizer_find(t, word + at, size);
        }
        if (id != TOKEN_NONE)
            add_symbol(&s, at, size, id);
        else if (!t->byte_level && has_bytes(t, word + at, size))
            for (size_t i = 0; i < size; i++)
                add_symbol(&s, at + i, 1, t->byte[(unsigned char)word[at + i]]);
        else
            add_unknown(t, &s, at, size);
    }
    return s.n;
}

/* SentencePiece looks in the end at what is no piece. */
static uint32_t
split_for_scores(const struct tokenizer *t, const char *word, size_t len, struct symbol *out)
{
    struct symbols s = {.at = out};
    for (size_t at = 0, size; at < len; at += size) {
        size = utf8_character(word + at, len - at, NULL);
        size = size == 0 ? 1 : size; /* a byte that is no character stands alone */
        add_symbol(&s, at, size, tokenizer_find(t, word + at, size));
    }
    return s.n;
}

/* ---- merging ---- */

static void
consider(const struct tokenizer *t, struct merging *m, const char *word, uint32_t left, uint32_t right)
{
    if (left == NONE || right == NONE)
        return;
    const struct symbol *l = &m->symbols[left], *r = &m->symbols[right];
    const uint32_t len = l->len + r->len;
    if (t->score == NULL) {
        const struct merge *merge = merge_table_find(&t->merges, l->id, r->id);
        if (merge != NULL)
            heap_push(m, (struct pair){merge->rank, left, right, len, merge->id});
        return;
    }
    const token_t id = tokenizer_find(t, word + l->at, len);
    if (id != TOKEN_NONE)
        heap_push(m, (struct pair){-t->score[id], left, right, len, id});
}

static void
merge_all(const struct tokenizer *t, struct merging *m, const char *word, uint32_t n)
{
    m->symbols[0].previous = NONE;
    m->symbols[n - 1].next = NONE;
    m->n_heap = 0;
    for (uint32_t i = 1; i < n; i++)
        consider(t, m, word, i - 1, i);
    while (m->n_heap > 0) {
        const struct pair pair = heap_pop(m);
        struct symbol *left = &m->symbols[pair.left], *right = &m->symbols[pair.right];
        if (left->len == 0 || right->len == 0 || left->len + right->len != pair.len)
            continue; /* one of them has grown or gone since */
        left->len = pair.len;
        left->id = pair.id;
        left->next = right->next;
        right->len = 0;
        if (right->next != NONE)
            m->symbols[right->next].previous = pair.left;
        consider(t, m, word, left->previous, pair.left);
        consider(t, m, word, pair.left, left->next);
    }
}

/* *unknown: the symbol before was. */
static bool
push_symbol(const struct tokenizer *t, const char *word, const struct symbol *s, bool *unknown, struct ids *ids)
{
    const bool follows = *unknown && t->fuse_unknown;
    *unknown = false;
    if (s->id != TOKEN_NONE)
        return ids_push(ids, s->id);
    if (!has_bytes(t, word + s->at, s->len)) { /* no byte fallback: one for the character */
        *unknown = true;
        return follows || t->unknown == TOKEN_NONE || ids_push(ids, t->unknown);
    }
    for (uint32_t i = 0; i < s->len; i++)
        if (!ids_push(ids, t->byte[(unsigned char)word[s->at + i]]))
            return false;
    return true;
}

bool
tokenizer_merge_word(const struct tokenizer *t, struct merging *m, const char *word, size_t len, struct ids *ids)
{
    if (len == 0)
        return true;
    const token_t whole = t->whole_words ? tokenizer_find(t, word, len) : TOKEN_NONE;
    if (whole != TOKEN_NONE)
        return ids_push(ids, whole);
    if (!make_room(m, len))
        return false;
    const uint32_t n =
        t->score != NULL ? split_for_scores(t, word, len, m->symbols) : split_for_ranks(t, word, len, m->symbols);
    if (n == 0)
        return true;
    bool unknown = false;
    merge_all(t, m, word, n);
    for (uint32_t i = 0; i != NONE; i = m->symbols[i].next) /* NOLINT(clang-analyzer-unix.Malloc): m keeps them */
        if (!push_symbol(t, word, &m->symbols[i], &unknown, ids))
            return false;
    return true;
}
