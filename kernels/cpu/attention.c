#include "kernels/cpu/forward.h"

#include <math.h>

#include "kernels/cpu/weights.h"

#define HEADS          8 /* heads that are computed together on a block */
#define WORTH_WIDENING 3 /* number of rows from which converting keys and values to F32 pays */

void
rope_rotations(const double *rope, uint32_t dims, float gain, uint32_t position, float *rotations)
{
    for (uint32_t i = 0; i < dims / 2; i++) {
        double angle = position * rope[i];
        rotations[2 * i] = (float)cos(angle) * gain;
        rotations[2 * i + 1] = (float)sin(angle) * gain;
    }
}

void
rope(enum rope_layout layout, uint32_t dims, const float *rotations, float *x)
{
    const uint32_t pairs = dims / 2;
    const size_t step = layout == ROPE_ADJACENT ? 2 : 1, apart = layout == ROPE_ADJACENT ? 1 : pairs;
    for (uint32_t i = 0; i < pairs; i++) {
        float *a = x + i * step, *b = a + apart, c = rotations[2 * i], s = rotations[2 * i + 1], was = *a;
        *a = was * c - *b * s;
        *b = was * s + *b * c;
    }
}

/* Returns the offset of layer l's keys or values of one head, (slots, head_dim). */
static size_t
head_offset(const struct kv_cache *s, uint32_t l, uint32_t kv_head)
{
    return s->kv_start[l] + (size_t)kv_head * s->desc.slots * cpu_layer_sizes(s, l).head_dim;
}

void
remember(const struct kv_cache *s, uint32_t l, uint32_t kv_head, slot_t slot, void *keys_or_values, const float *kv)
{
    const struct layer_sizes n = cpu_layer_sizes(s, l);
    size_t at = head_offset(s, l, kv_head) + (size_t)slot * n.head_dim;
    if (s->weights->backend->exact)
        memcpy((float *)keys_or_values + at, kv, n.head_dim * sizeof *kv);
    else
        s->isa->to_f16(kv, n.head_dim, (uint16_t *)keys_or_values + at);
}

/* The state of one row's softmax. A block that raises the maximum scales down the previous sums (Milakov and
 * Gimelshein, "Online normalizer calculation for softmax", 2018). */
struct flow {
    float max[HEADS], sum[HEADS];
};

/* Keys and values of a block, of one head: slot i is at[i] * stride elements after the start. */
struct kv_block {
    const void *keys, *values;
    bool f32;
    size_t stride, dim, n;
    const slot_t *at;
    size_t first; /* position of the first slot */
};

/* Adds ALiBi's biases to the scores of a row at position `own`. */
static void
add_alibi(const struct alibi *a, float slope, size_t own, const struct kv_block *b, float *scores)
{
    for (size_t i = 0; i < b->n; i++)
        scores[i] += form_alibi_bias(a, slope, (uint32_t)own, (uint32_t)(b->first + i));
}

/* A row's query heads on one key-value head, and its position. */
struct asking {
    const float *q, *slopes; /* slopes may be NULL */
    size_t n_heads, position;
};

static void
absorb(const struct kv_cache *s, const struct kv_block *b, struct flow *f, const struct asking *a, float *out)
{
    const float *q = a->q;
    const size_t n_heads = a->n_heads;
    const struct cpu_isa *isa = s->isa;
    const size_t dim = b->dim;
    float scores[HEADS * ATTEND_BLOCK], keep[HEADS];
    if (b->f32)
        isa->dots_f32(q, n_heads, dim, b->keys, b->stride, b->at, b->n, scores);
    else
        isa->dots_f16(q, n_heads, dim, b->keys, b->stride, b->at, b->n, scores);
    for (size_t h = 0; h < n_heads; h++) {
        float *p = scores + h * ATTEND_BLOCK;
        form_cap(s->weights->desc.form.attention_cap, p, b->n);
        if (a->slopes != NULL)
            add_alibi(&s->weights->desc.form.alibi, a->slopes[h], a->position, b, p);
        float most = isa->most(p, b->n);
        most = most > f->max[h] ? most : f->max[h];
        keep[h] = f->max[h] == most ? 1 : expf(f->max[h] - most); /* 0 in the first block */
        f->max[h] = most;
        f->sum[h] = f->sum[h] * keep[h] + isa->exp_sum(p, b->n, most);
    }
    if (b->f32)
        isa->mix_f32(scores, n_heads, dim, b->values, b->stride, b->at, b->n, keep, out);
    else
        isa->mix_f16(scores, n_heads, dim, b->values, b->stride, b->at, b->n, keep, out);
}

/* Keys and values of one head: the offset at slot 0, and the layer's numbers. */
struct kv_head {
    size_t base;
    struct layer_sizes n;
};

/* Returns the block of a path that starts at position `first`, in the KV cache's format. Fills `at` (ATTEND_BLOCK). */
static struct kv_block
block_of(const struct kv_cache *s, const struct kv_head *of, const struct path *path, size_t first, slot_t *at)
{
    const size_t n = path->n - first < ATTEND_BLOCK ? path->n - first : ATTEND_BLOCK;
    for (size_t i = 0; i < n; i++)
        at[i] = first + i < path->n_trunk ? path->trunk[first + i] : path->tail[first + i - path->n_trunk];
    const bool f32 = s->weights->backend->exact;
    const size_t bytes = of->base * (f32 ? sizeof(float) : sizeof(uint16_t));
    return (struct kv_block){.keys = (const char *)s->keys + bytes,
                             .values = (const char *)s->values + bytes,
                             .f32 = f32,
                             .stride = of->n.head_dim,
                             .dim = of->n.head_dim,
                             .n = n,
                             .at = at,
                             .first = first};
}

/* Converts a block to F32 with consecutive slots: for several rows it is cheaper to convert keys and values once. */
static struct kv_block
widen(const struct kv_cache *s, const struct kv_block *b, struct widened to)
{
    static const slot_t in_order[ATTEND_BLOCK] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                                  16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                                                  32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
                                                  48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    const size_t dim = b->dim;
    for (size_t i = 0; i < b->n; i++) {
        s->isa->from_f16((const uint16_t *)b->keys + b->at[i] * b->stride, dim, to.keys + i * dim);
        s->isa->from_f16((const uint16_t *)b->values + b->at[i] * b->stride, dim, to.values + i * dim);
    }
    return (struct kv_block){.keys = to.keys,
                             .values = to.values,
                             .f32 = true,
                             .stride = dim,
                             .dim = dim,
                             .n = b->n,
                             .at = in_order,
                             .first = b->first};
}

/* Returns the block that starts at position `start`, without the slots that the path does not see. */
static struct kv_block
seen_of(struct kv_block b, const struct path *path, size_t start)
{
    const size_t unseen = path->first > start ? path->first - start : 0;
    b.at += unseen;
    b.n -= unseen;
    b.first += unseen;
    return b;
}

/* Returns the block that contains the first position visible to any of the paths. */
static size_t
first_block(const struct path *paths, size_t n)
{
    size_t first = paths[0].first;
    for (size_t i = 1; i < n; i++)
        first = paths[i].first < first ? paths[i].first : first;
    return first / ATTEND_BLOCK;
}

/* Returns the number of whole blocks at the start that all rows share: those of one trunk. */
static size_t
common_blocks(const struct path *paths, size_t n)
{
    size_t positions = paths[0].n_trunk;
    for (size_t i = 1; i < n; i++) {
        if (paths[i].trunk != paths[0].trunk)
            return 0;
        positions = paths[i].n_trunk < positions ? paths[i].n_trunk : positions;
    }
    return positions / ATTEND_BLOCK;
}

static void
attend_some(const struct kv_cache *s, struct widened widened, const struct kv_head *of, const struct path *paths,
            size_t n, size_t n_heads, const float *q, struct of_heads own, float *out, size_t ld)
{
    const size_t dim = of->n.head_dim;
    const size_t common = n >= WORTH_WIDENING && !s->weights->backend->exact ? common_blocks(paths, n) : 0;
    struct flow flows[ATTEND_ROWS];
    struct asking asking[ATTEND_ROWS];
    slot_t at[ATTEND_BLOCK];
    for (size_t r = 0; r < n; r++) {
        memset(out + r * ld, 0, n_heads * dim * sizeof *out);
        asking[r] = (struct asking){q + r * ld, own.slopes, n_heads, paths[r].own};
        for (size_t h = 0; h < n_heads; h++) {
            flows[r].max[h] = own.sinks != NULL ? own.sinks[h] : -INFINITY;
            flows[r].sum[h] = own.sinks != NULL ? 1 : 0;
        }
    }
    for (size_t first = first_block(paths, n) * ATTEND_BLOCK; first < common * ATTEND_BLOCK; first += ATTEND_BLOCK) {
        const struct kv_block stored = block_of(s, of, &paths[0], first, at), wide = widen(s, &stored, widened);
        for (size_t r = 0; r < n; r++)
            if (paths[r].first < first + ATTEND_BLOCK) {
                const struct kv_block seen = seen_of(wide, &paths[r], first);
                absorb(s, &seen, &flows[r], &asking[r], out + r * ld);
            }
    }
    for (size_t r = 0; r < n; r++) {
        const size_t seen = first_block(&paths[r], 1), begin = seen > common ? seen : common;
        for (size_t first = begin * ATTEND_BLOCK; first < paths[r].n; first += ATTEND_BLOCK) {
            const struct kv_block stored = seen_of(block_of(s, of, &paths[r], first, at), &paths[r], first);
            absorb(s, &stored, &flows[r], &asking[r], out + r * ld);
        }
        for (size_t h = 0; h < n_heads; h++)
            for (size_t i = 0; i < dim; i++)
                out[r * ld + h * dim + i] /= flows[r].sum[h];
    }
}

void
attend(const struct kv_cache *s, struct widened widened, uint32_t l, uint32_t kv_head, const struct path *paths,
       size_t n, size_t n_heads, const float *q, struct of_heads own, float *out, size_t ld)
{
    const struct kv_head of = {head_offset(s, l, kv_head), cpu_layer_sizes(s, l)};
    const size_t dim = of.n.head_dim;
    for (size_t h = 0; h < n_heads; h += HEADS) {
        const struct of_heads here = {own.sinks != NULL ? own.sinks + h : NULL,
                                      own.slopes != NULL ? own.slopes + h : NULL};
        attend_some(s, widened, &of, paths, n, n_heads - h < HEADS ? n_heads - h : HEADS, q + h * dim, here,
                    out + h * dim, ld);
    }
}
