#include "kernels/cpu/draft_rows.h"

#include "kernels/cpu/repack.h"
#include "kernels/synthetic.h"
#include "kernels/tensor.h"

/* The recent tokens of a set. */
struct draft_set {
    uint32_t base, n;
    token_t recent[DRAFT_RECENT];
    struct matrix rows; /* theirs, interleaved; q NULL: the head's are not */
};

static const struct draft_set *
set_at(const struct kv_cache *s, uint32_t set)
{
    return &s->draft.sets[set - 1];
}

struct outputs
draft_outputs(const struct kv_cache *s, uint32_t set)
{
    const size_t all = s->weights->head.rows;
    if (set == 0)
        return (struct outputs){all, all, all};
    const struct draft_set *of = set_at(s, set);
    const size_t recent = ((size_t)of->base + PIECE - 1) / PIECE * PIECE;
    return (struct outputs){of->base, recent, of->n > 0 ? recent + of->n : of->base};
}

token_t
draft_token(const struct kv_cache *s, uint32_t set, size_t output)
{
    const struct draft_set *of = set_at(s, set);
    const struct outputs o = draft_outputs(s, set);
    return output < o.base ? s->desc.rank[output] : of->recent[output - o.recent];
}

/* ---- memory ---- */

/* Takes an interleaved matrix of `rows` rows like the head. */
static bool
take_rows(const struct kv_cache *s, struct blocks *b, size_t rows, struct matrix *m)
{
    const struct matrix *head = &s->weights->head;
    const size_t groups = (rows + Q8_GROUP - 1) / Q8_GROUP;
    *m = (struct matrix){.type = head->type, .rows = (uint32_t)rows, .cols = head->cols};
    m->q = blocks_take(b, groups, group_quant_bytes(head));
    m->scale = blocks_take(b, groups, group_scale_bytes(head));
    return m->q != NULL && m->scale != NULL;
}

bool
draft_open(struct kv_cache *s)
{
    const struct matrix *head = &s->weights->head;
    const uint32_t n = s->desc.sets;
    if (n == 0)
        return true;
    s->draft.packed.huge = true;
    s->draft.sets = blocks_take(&s->blocks, n, sizeof *s->draft.sets);
    s->draft.raw = blocks_take(&s->blocks, Q8_GROUP, tensor_row_bytes(head->type, head->cols));
    bool ok = s->draft.sets != NULL && s->draft.raw != NULL;
    for (uint32_t i = 0; i < n && ok; i++) {
        s->draft.sets[i].base = 1; /* a set is never empty */
        ok = head->q == NULL || take_rows(s, &s->blocks, DRAFT_RECENT, &s->draft.sets[i].rows);
    }
    return ok;
}

void
draft_close(struct kv_cache *s)
{
    blocks_free(&s->draft.packed);
}

/* ---- gathering ---- */

/* Interleaves the rows of n <= 16 tokens as group `group` of m. */
static void
gather(struct kv_cache *s, const token_t *tokens, size_t n, struct matrix *m, size_t group)
{
    const struct matrix *head = &s->weights->head;
    const size_t row = tensor_row_bytes(head->type, head->cols);
    for (size_t i = 0; i < n; i++) {
        unsigned char *to = s->draft.raw + i * row;
        if (head->data != NULL)
            memcpy(to, (const unsigned char *)head->data + (size_t)tokens[i] * row, row);
        else
            synthetic_row(&s->weights->desc.head, (uint32_t)tokens[i], to);
    }
    repack(head->type, s->draft.raw, n, head->cols, s->isa->q8_flip, m->q + group * group_quant_bytes(head),
           m->scale + group * group_scale_bytes(head));
}

/* Gathers the first `base` rows by rank, and the rest of their last group, unless they are there. */
static bool
hold_base(struct kv_cache *s, uint32_t base)
{
    struct draft_rows *d = &s->draft;
    const size_t all = s->weights->head.rows, up = ((size_t)base + Q8_GROUP - 1) / Q8_GROUP * Q8_GROUP;
    const size_t rows = up < all ? up : all;
    if (s->weights->head.q == NULL || rows <= d->base.rows)
        return true;
    blocks_free(&d->packed);
    if (!take_rows(s, &d->packed, rows, &d->base)) {
        d->base.rows = 0;
        return false;
    }
    for (size_t at = 0; at < rows; at += Q8_GROUP)
        gather(s, s->desc.rank + at, rows - at < Q8_GROUP ? rows - at : Q8_GROUP, &d->base, at / Q8_GROUP);
    return true;
}

bool
cpu_draft_set(struct kv_cache *s, uint32_t set, uint32_t base, const token_t *recent, size_t n)
{
    if (!request_draft_set(s->limits, set, base, recent, n))
        return false;
    struct draft_set *to = &s->draft.sets[set - 1];
    if (!hold_base(s, base)) {
        s->failed = true;
        err_set(&s->err, ERR_WORK, "not enough memory for a draft vocabulary of %u tokens; set draft_vocab lower",
                (unsigned)base);
        return true;
    }
    for (size_t at = 0; at < n; at += Q8_GROUP) {
        const size_t some = n - at < Q8_GROUP ? n - at : Q8_GROUP, old = to->n > at ? to->n - at : 0;
        if (old >= some && memcmp(to->recent + at, recent + at, some * sizeof *recent) == 0)
            continue;
        memcpy(to->recent + at, recent + at, some * sizeof *recent);
        if (s->weights->head.q != NULL)
            gather(s, recent + at, some, &to->rows, at / Q8_GROUP);
    }
    to->base = base;
    to->n = (uint32_t)n;
    return true;
}

/* ---- products ---- */

/* Computes a product with rows of a matrix that is not interleaved: consecutive ids together. */
static void
multiply_ids(const struct worker *w, const struct matrix *m, const token_t *ids, size_t n_ids, const struct acts *x,
             size_t n, float *z, size_t ld)
{
    for (size_t i = 0, last; i < n_ids; i = last) {
        for (last = i + 1; last < n_ids && ids[last] == ids[last - 1] + 1;)
            last++;
        const struct matrix some = matrix_part(m, (struct range){(size_t)ids[i], (size_t)ids[i] + (last - i)});
        multiply(w->kv_cache->isa, &some, x, n, 0, last - i, z + i, ld);
    }
}

void
draft_multiply(const struct worker *w, uint32_t set, const struct matrix *full, const struct acts *x, size_t n,
               struct range part, float *z, size_t ld)
{
    const struct kv_cache *s = w->kv_cache;
    const struct draft_set *of = set_at(s, set);
    const struct matrix *head = full != NULL ? full : &s->weights->head;
    const struct outputs o = draft_outputs(s, set);
    const struct { /* two runs of outputs, with the tokens and the packed rows of each */
        size_t first, n;
        const token_t *ids;
        const struct matrix *rows;
    } runs[2] = {{0, o.base, s->desc.rank, &s->draft.base}, {o.recent, of->n, of->recent, &of->rows}};
    for (int i = 0; i < 2; i++) {
        const struct range some = range_overlap(part, runs[i].first, runs[i].n);
        float *to = z + (runs[i].first + some.first - part.first);
        if (some.first == some.last)
            continue;
        if (head->q == NULL) {
            multiply_ids(w, head, runs[i].ids + some.first, some.last - some.first, x, n, to, ld);
        } else {
            const struct matrix rows = matrix_part(runs[i].rows, some);
            multiply(s->isa, &rows, x, n, 0, some.last - some.first, to, ld);
        }
    }
}
