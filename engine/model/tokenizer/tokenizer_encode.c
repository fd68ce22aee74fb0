/* Encodes text as token ids: Unigram, BPE merging, and the steps around them. Unigram (Kudo 2018) chooses, of all
 * segmentations of a word into pieces, the one with the highest sum of log-probabilities, with the Viterbi algorithm. A
 * character that is not itself a piece may be unknown; its score is that of the least likely piece minus ten. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/array_grow.h"
#include "base/utf8.h"
#include "engine/model/tokenizer/tokenizer_internal.h"

static bool
ids_push(struct ids *ids, token_t id)
{
    if (!array_grow(&ids->at, &ids->room, ids->n + 1, sizeof *ids->at))
        return false;
    ids->at[ids->n++] = id;
    return true;
}

/* Returns the length in bytes of the character at the start of a text, or of the invalid bytes there. */
static size_t
character_size(const char *bytes, size_t len)
{
    const size_t n = utf8_character(bytes, len, NULL);
    return n > 0 ? n : utf8_broken(bytes, len);
}

#define UNKNOWN_PENALTY 10.0
#define BONUS           0.1      /* per byte of a user-defined piece; log-probabilities are below 0 */
#define COARSE          131072.0 /* at larger magnitudes single precision cannot distinguish ways */
#define NOWHERE         UINT32_MAX

/* The best segmentation that ends at a byte offset. */
struct way {
    double score;
    uint32_t from; /* offset of its last piece; NOWHERE: none found yet */
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

/* Updates the best way to `to`. SentencePiece adds in single precision, which decides ties; at magnitudes above COARSE,
 * and for Hugging Face's tokenizers, the addition is in double precision. */
static void
offer(const struct tokenizer *t, struct way *ways, uint32_t from, uint32_t to, double score, token_t id)
{
    const double exact = score + ways[from].score;
    const double sum = t->single_precision && exact > -COARSE ? (double)(float)exact : exact;
    if (ways[to].from == NOWHERE || sum > ways[to].score)
        ways[to] = (struct way){sum, from, id};
}

/* Returns a piece's score: its log-probability, or for a user-defined piece a higher score, so that it is nearly always
 * chosen. */
static double
score_of(const struct tokenizer *t, token_t id, uint32_t len)
{
    return t->bonus[id] ? (double)((float)len * (float)t->best_score) - 0.1 : t->score[id];
}

static void
offer_pieces(const struct tokenizer *t, const char *word, uint32_t len, uint32_t from, struct way *ways)
{
    const uint32_t size = (uint32_t)character_size(word + from, len - from);
    uint32_t node = 0;
    bool single = false;
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

/* Returns whether the vocabulary has a byte token for each of these bytes. */
static bool
has_bytes(const struct tokenizer *t, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (t->byte[(unsigned char)bytes[i]] == TOKEN_NONE)
            return false;
    return true;
}

/* Adds a segment of unknown characters: their byte tokens, or a single <unk>. */
static bool
push_unknown(const struct tokenizer *t, const char *bytes, size_t n, struct ids *ids)
{
    if (!has_bytes(t, bytes, n))
        return t->unknown == TOKEN_NONE || ids_push(ids, t->unknown);
    for (size_t i = 0; i < n; i++)
        if (!ids_push(ids, t->byte[(unsigned char)bytes[i]]))
            return false;
    return true;
}

/* Adds the pieces of the best way in order: first reverses the backward links of the way. */
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

static bool
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
        size = (uint32_t)character_size(word + at, len - at);
    }
    return push_way(t, word, (uint32_t)len, m->ways, ids);
}

/* BPE: converts a word to pieces. Initially every symbol is a character, or a byte in byte-level BPE. While two
 * neighbours form a piece, the best pair (highest score or lowest rank, leftmost if equal) is merged into one symbol. A
 * heap of candidate pairs makes this O(n log n): a merge adds at most two candidates, and outdated candidates are
 * discarded when they are removed from the heap. */

#define NONE UINT32_MAX

struct symbol {
    uint32_t at, len; /* its bytes in the word; len 0: merged into its left neighbour */
    uint32_t previous, next;
    token_t id; /* TOKEN_NONE if it is not a piece */
};

struct pair {
    double order;              /* rank or negative score; the lowest is merged first */
    uint32_t left, right, len; /* len: combined length when the pair was found */
    token_t id;
};

static void
merging_free(struct merging *m)
{
    free(m->symbols);
    free(m->heap);
    free(m->ways);
    *m = (struct merging){0};
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

/* Reserves memory for n symbols and their pairs: n - 1 initial pairs, and one more for each of n - 1 merges, which
 * removes one pair and adds at most two. */
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
        return; /* without <unk> the character is dropped */
    if (t->fuse_unknown && s->n > 0 && s->at[s->n - 1].id == t->unknown)
        s->at[s->n - 1].len += (uint32_t)len;
    else
        add_symbol(s, at, len, t->unknown);
}

/* With ranks, a character that is not a piece becomes byte tokens or <unk> before merging. */
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
            size = character_size(word + at, len - at);
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

/* With scores, a character that is not a piece becomes byte tokens or <unk> after merging, as in SentencePiece. */
static uint32_t
split_for_scores(const struct tokenizer *t, const char *word, size_t len, struct symbol *out)
{
    struct symbols s = {.at = out};
    for (size_t at = 0, size; at < len; at += size) {
        size = utf8_character(word + at, len - at, NULL);
        size = size == 0 ? 1 : size; /* an invalid byte is a symbol of its own */
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
            continue; /* outdated: one of the symbols was merged since */
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

/* Adds the ids of a symbol. *unknown is whether the previous symbol was unknown; it is updated. */
static bool
push_symbol(const struct tokenizer *t, const char *word, const struct symbol *s, bool *unknown, struct ids *ids)
{
    const bool follows = *unknown && t->fuse_unknown;
    *unknown = false;
    if (s->id != TOKEN_NONE)
        return ids_push(ids, s->id);
    *unknown = !has_bytes(t, word + s->at, s->len); /* no byte fallback: one <unk> for the character */
    return (*unknown && follows) || push_unknown(t, word + s->at, s->len, ids);
}

/* Adds the ids of a word. Returns false if out of memory. */
static bool
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

/* Text to ids: special tokens divide the input into sections. Each section is normalised and split into words, and each
 * word is merged into pieces. */

#define LONGEST_TEXT (1u << 28) /* bytes */

struct encoding {
    const struct tokenizer *tokenizer;
    struct tokenize_options options;
    size_t n_passed; /* entries of options.plain that are in earlier sections */
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

/* Returns the code point that ends at `at`; *n is its length in bytes, 0 if there is none. */
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

/* Returns whether a code point is a word character: a letter, mark, digit or connector. */
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
    size_t at, end;                /* including the white space that it matches */
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

/* Returns the next special at or after `done`; white space that it matches on its left begins at `done` or later. */
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

/* After normalisation the positions of plain bytes are unknown. Therefore all control tokens are plain text in a
 * section that contains an entry of options.plain. */
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
    for (size_t at = from; at < text.len && !t->splits_specials; at++)
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
    options.special = options.special && !t->splits_specials;
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
