/* Unigram (Kudo 2018): of all ways to cut a word into pieces the one whose log-probabilities have the highest sum, found as
 * Viterbi does, from left to right. A character that no piece of its own length covers may be unknown, at the price of the
 * least likely piece and ten more. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer_internal.h"

#define UNKNOWN_PENALTY 10.0
#define BONUS           0.1      /* a byte, of a piece that a user defined; log-probabilities are below 0 */
#define COARSE          131072.0 /* beyond, single precision is too coarse to tell ways apart */
#define NOWHERE         UINT32_MAX

/* The best way to a place between bytes. */
struct way {
    double score;
    uint32_t from; /* NOWHERE: none was found yet */
    token_t id;
};

bool
tokenizer_make_unigram(struct tokenizer *t)
{
    double least = 0, most = BONUS;
    uint32_t n = 0;
    bool any = false;
    struct piece *list = malloc((t->n > 0 ? t->n : 1) * sizeof *list);
    if (list == NULL)
        return false;
    for (uint32_t id = 0; id < t->n; id++) {
        const bool normal = t->kind[id] == TOKEN_NORMAL;
        if ((normal || t->bonus[id]) && t->text[id].len > 0)
            list[n++] = (struct piece){t->text[id], (token_t)id};
        if (!normal)
            continue;
        least = !any || t->score[id] < least ? t->score[id] : least;
        most = t->score[id] > most ? t->score[id] : most;
        any = true;
    }
    t->best_score = most;
    t->unknown_score = t->single_precision ? (double)(float)(least - UNKNOWN_PENALTY) : least - UNKNOWN_PENALTY;
    const bool ok = piece_trie_make(&t->trie, list, n);
    free(list);
    return ok;
}

/* SentencePiece adds in single precision, which decides ties, as far as that can tell ways apart; Hugging Face's tokenizers in
 * double. */
static void
offer(const struct tokenizer *t, struct way *ways, uint32_t from, uint32_t to, double score, token_t id)
{
    const double exact = score + ways[from].score;
    const double sum = t->single_precision && exact > -COARSE ? (double)(float)exact : exact;
    if (ways[to].from == NOWHERE || sum > ways[to].score)
        ways[to] = (struct way){sum, from, id};
}

/* What a piece counts: its log-probability; one that a user defined more, so that it is (nearly) always taken. */
static double
score_of(const struct tokenizer *t, token_t id, uint32_t len)
{
    return t->bonus[id] ? (double)((float)len * (float)t->best_score) - 0.1 : t->score[id];
}

static void
offer_pieces(const struct tokenizer *t, const char *word, uint32_t len, uint32_t from, struct way *ways)
{
    uint32_t size = (uint32_t)utf8_character(word + from, len - from, NULL), node = 0;
    bool single = false;
    size = size == 0 ? (uint32_t)utf8_broken(word + from, len - from) : size;
    for (uint32_t to = from; to < len && piece_trie_step(&t->trie, &node, (unsigned char)word[to]);) {
        const token_t id = t->trie.nodes[node].id;
        to++;
        if (id == TOKEN_NONE)
            continue;
        offer(t, ways, from, to, score_of(t, id, to - from), id);
        single = single || to - from == size;
    }
    if (!single)
        offer(t, ways, from, from + size, t->unknown_score, TOKEN_NONE);
}

/* A segment of unknown characters: their byte tokens, or <unk> once. */
static bool
push_unknown(const struct tokenizer *t, const char *bytes, size_t n, struct ids *ids)
{
    for (size_t i = 0; i < n; i++)
        if (t->byte[(unsigned char)bytes[i]] == TOKEN_NONE)
            return t->unknown == TOKEN_NONE || ids_push(ids, t->unknown);
    for (size_t i = 0; i < n; i++)
        if (!ids_push(ids, t->byte[(unsigned char)bytes[i]]))
            return false;
    return true;
}

/* The best way's pieces, from the first on: its steps are turned round, to lead onwards from each place. */
static bool
push_way(const struct tokenizer *t, const char *word, uint32_t len, struct way *ways, struct ids *ids)
{
    uint32_t to = len, next = NOWHERE;
    token_t id = TOKEN_NONE;
    while (to != 0) {
        const struct way w = ways[to];
        ways[to].from = next;
        ways[to].id = id;
        next = to;
        id = w.id;
        to = w.from;
    }
    for (uint32_t at = 0; at < len;) {
        uint32_t end = next;
        const token_t piece = id;
        next = ways[end].from;
        id = ways[end].id;
        while (piece == TOKEN_NONE && next != NOWHERE && id == TOKEN_NONE) {
            end = next;
            next = ways[end].from;
            id = ways[end].id;
        }
        if (!(piece != TOKEN_NONE ? ids_push(ids, piece) : push_unknown(t, word + at, end - at, ids)))
            return false;
        at = end;
    }
    return true;
}

bool
tokenizer_unigram_word(const struct tokenizer *t, struct merging *m, const char *word, size_t len, struct ids *ids)
{
    if (len == 0)
        return true;
    if (m->n_ways < len + 1) {
        free(m->ways);
        m->n_ways = 0;
        m->ways = malloc((len + 1 + len / 2) * sizeof *m->ways);
        if (m->ways == NULL)
            return false;
        m->n_ways = len + 1 + len / 2;
    }
    for (size_t i = 0; i <= len; i++)
        m->ways[i].from = NOWHERE;
    m->ways[0] = (struct way){.from = 0};
    for (uint32_t at = 0, size; at < len; at += size) {
        offer_pieces(t, word, (uint32_t)len, at, m->ways);
        size = (uint32_t)utf8_character(word + at, len - at, NULL);
        size = size == 0 ? (uint32_t)utf8_broken(word + at, len - at) : size;
    }
    return push_way(t, word, (uint32_t)len, m->ways, ids);
}
