/* Text to ids as SentencePiece's BPE does it. Spaces become ▁ and one more is put in front; special tokens cut the
 * text into runs; in a run, every character is a symbol and, as long as two neighbours together are a piece, the pair
 * whose piece has the best score (the leftmost of equals) becomes one symbol. A heap of candidate pairs makes that
 * O(n log n): a merge adds at most two candidates, and those that it outdated are recognised when they come up. What
 * is no piece in the end is spelled in byte tokens. */
#include <stdlib.h>
#include <string.h>

#include "engine/tokenizer_internal.h"
#include "engine/utf8.h"

#define NONE         UINT32_MAX
#define LONGEST_TEXT (1u << 28) /* bytes */

struct symbol {
    uint32_t at, len; /* its bytes in the run; len 0: merged into its left neighbour */
    uint32_t previous, next;
    token_t id; /* TOKEN_NONE if it is no piece */
};

struct pair {
    float score;
    uint32_t left, right, len; /* len: of both when the pair was found */
    token_t id;
};

struct encoding {
    const struct tokenizer *tokenizer;
    struct symbol *symbols; /* (room) */
    struct pair *heap; /* (2 * room): n - 1 pairs to begin with, and each of n - 1 merges adds one more than it takes */
    size_t room, n_heap;
    token_t *ids;
    size_t n_ids, ids_room;
};

/* ---- heap ---- */

static bool
better(const struct pair *a, const struct pair *b)
{
    return a->score > b->score || (a->score == b->score && a->left < b->left);
}

static void
heap_push(struct encoding *e, struct pair pair)
{
    size_t i = e->n_heap++;
    while (i > 0 && better(&pair, &e->heap[(i - 1) / 2])) {
        e->heap[i] = e->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    e->heap[i] = pair;
}

static struct pair
heap_pop(struct encoding *e)
{
    const struct pair best = e->heap[0], last = e->heap[--e->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < e->n_heap; i = child) {
        if (child + 1 < e->n_heap && better(&e->heap[child + 1], &e->heap[child]))
            child++;
        if (!better(&e->heap[child], &last))
            break;
        e->heap[i] = e->heap[child];
    }
    e->heap[i] = last;
    return best;
}

/* ---- ids ---- */

static bool
push_id(struct encoding *e, token_t id)
{
    if (e->n_ids == e->ids_room) {
        size_t room = 2 * e->ids_room + 64;
        token_t *grown = realloc(e->ids, room * sizeof *grown);
        if (grown == NULL)
            return false;
        e->ids = grown;
        e->ids_room = room;
    }
    e->ids[e->n_ids++] = id;
    return true;
}

static bool
push_symbol(struct encoding *e, const char *run, const struct symbol *s)
{
    if (s->id != TOKEN_NONE)
        return push_id(e, s->id);
    for (uint32_t i = 0; i < s->len; i++) {
        token_t byte = e->tokenizer->byte[(unsigned char)run[s->at + i]];
        if (byte == TOKEN_NONE)
            return push_id(e, e->tokenizer->unknown); /* no byte fallback: one <unk> for the character */
        if (!push_id(e, byte))
            return false;
    }
    return true;
}

/* ---- merging ---- */

static void
consider(struct encoding *e, const char *run, uint32_t left, uint32_t right)
{
    if (left == NONE || right == NONE)
        return;
    const uint32_t len = e->symbols[left].len + e->symbols[right].len;
    const token_t id = tokenizer_find(e->tokenizer, run + e->symbols[left].at, len);
    if (id != TOKEN_NONE)
        heap_push(e, (struct pair){e->tokenizer->score[id], left, right, len, id});
}

static bool
make_room(struct encoding *e, size_t n)
{
    if (n <= e->room)
        return true;
    free(e->symbols);
    free(e->heap);
    e->room = n;
    e->symbols = malloc(n * sizeof *e->symbols);
    e->heap = malloc(2 * n * sizeof *e->heap);
    return e->symbols != NULL && e->heap != NULL;
}

static uint32_t
split_characters(struct encoding *e, const char *run, size_t len)
{
    uint32_t n = 0;
    for (size_t at = 0; at < len;) {
        size_t size = utf8_character(run + at, len - at, NULL);
        size = size == 0 ? 1 : size; /* a byte that is no character stands alone */
        e->symbols[n] =
            (struct symbol){(uint32_t)at, (uint32_t)size, n - 1, n + 1, tokenizer_find(e->tokenizer, run + at, size)};
        at += size;
        n++;
    }
    e->symbols[0].previous = NONE;
    e->symbols[n - 1].next = NONE;
    return n;
}

/* A run of text without specials; ▁ for spaces. */
static bool
encode_run(struct encoding *e, const char *run, size_t len)
{
    if (len == 0)
        return true;
    if (!make_room(e, len))
        return false;
    const uint32_t n = split_characters(e, run, len);
    e->n_heap = 0;
    for (uint32_t i = 1; i < n; i++)
        consider(e, run, i - 1, i);
    while (e->n_heap > 0) {
        const struct pair pair = heap_pop(e);
        struct symbol *left = &e->symbols[pair.left], *right = &e->symbols[pair.right];
        if (left->len == 0 || right->len == 0 || left->len + right->len != pair.len)
            continue; /* one of them has grown or gone since */
        left->len = pair.len;
        left->id = pair.id;
        left->next = right->next;
        right->len = 0;
        if (right->next != NONE)
            e->symbols[right->next].previous = pair.left;
        consider(e, run, left->previous, pair.left);
        consider(e, run, pair.left, left->next);
    }
    for (uint32_t i = 0; i != NONE; i = e->symbols[i].next) /* NOLINT(clang-analyzer-unix.Malloc): e keeps them */
        if (!push_symbol(e, run, &e->symbols[i]))
            return false;
    return true;
}

/* ---- text ---- */

/* Spaces as ▁, with SPACE_MARK_LEN bytes kept free in front. */
static char *
mark_spaces(const char *text, size_t len, size_t *n_marked)
{
    size_t spaces = 0;
    for (size_t i = 0; i < len; i++)
        spaces += text[i] == ' ';
    char *marked = malloc(SPACE_MARK_LEN + len + spaces * (SPACE_MARK_LEN - 1));
    if (marked == NULL)
        return NULL;
    char *at = marked + SPACE_MARK_LEN;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == ' ') {
            at = put_space_mark(at);
        } else {
            *at++ = text[i];
        }
    }
    *n_marked = (size_t)(at - marked) - SPACE_MARK_LEN;
    return marked;
}

/* Control tokens at the very beginning come before the dummy prefix: "<s>Once" is <s> ▁Once. Returns their bytes. */
static bool
encode_leading_controls(struct encoding *e, const char *text, size_t len, size_t *done)
{
    const struct special *s;
    *done = 0;
    while ((s = tokenizer_match_special(e->tokenizer, text + *done, len - *done, true)) != NULL && s->control) {
        if (!push_id(e, s->id))
            return false;
        *done += s->text.len;
    }
    return true;
}

static bool
encode_marked(struct encoding *e, const char *text, size_t len, bool control)
{
    size_t start = 0;
    for (size_t at = 0; at < len;) {
        const struct special *s = tokenizer_match_special(e->tokenizer, text + at, len - at, control);
        if (s == NULL) {
            size_t size = utf8_character(text + at, len - at, NULL);
            at += size == 0 ? 1 : size;
            continue;
        }
        if (!encode_run(e, text + start, at - start) || !push_id(e, s->id))
            return false;
        at += s->text.len;
        start = at;
    }
    return encode_run(e, text + start, len - start);
}

static bool
encode(struct encoding *e, char *marked, size_t len, struct tokenize_options options)
{
    const struct tokenizer *t = e->tokenizer;
    if (options.bos && t->add_bos && t->bos != TOKEN_NONE && !push_id(e, t->bos))
        return false;
    size_t done = 0;
    if (options.special && !encode_leading_controls(e, marked + SPACE_MARK_LEN, len, &done))
        return false;
    char *rest = marked + SPACE_MARK_LEN + done;
    len -= done;
    if (len > 0 && t->add_space_prefix) { /* the bytes before `rest` are free, or already encoded */
        rest -= SPACE_MARK_LEN;
        put_space_mark(rest);
        len += SPACE_MARK_LEN;
    }
    return encode_marked(e, rest, len, options.special);
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
    struct encoding e = {.tokenizer = t, .ids_room = len / 3 + 16};
    size_t n_marked = 0;
    char *marked = mark_spaces(text, len, &n_marked);
    e.ids = malloc(e.ids_room * sizeof *e.ids);
    bool ok = marked != NULL && e.ids != NULL && encode(&e, marked, n_marked, options);
    free(marked);
    free(e.symbols);
    free(e.heap);
    if (!ok) {
        free(e.ids);
        return err_set(err, ERR_WORK, "out of memory tokenizing %zu bytes", len);
    }
    *ids = e.ids;
    *n = e.n_ids;
    return true;
}
