#include "kernels/cpu/attention.h"

#include <math.h>

#define HEADS 8 /* that pass over a block together */

void
rope_turns(const struct weights *w, uint32_t position, float *turns)
{
    for (uint32_t i = 0; i < w->desc.rope_dims / 2; i++) {
        double angle = position * w->rope[i];
        turns[2 * i] = (float)cos(angle);
        turns[2 * i + 1] = (float)sin(angle);
    }
}

void
rope(const struct model_desc *d, const float *turns, float *x)
{
    const uint32_t pairs = d->rope_dims / 2;
    const size_t step = d->rope == ROPE_ADJACENT ? 2 : 1, apart = d->rope == ROPE_ADJACENT ? 1 : pairs;
    for (uint32_t i = 0; i < pairs; i++) {
        float *a = x + i * step, *b = a + apart, c = turns[2 * i], s = turns[2 * i + 1], was = *a;
        *a = was * c - *b * s;
        *b = was * s + *b * c;
    }
}

/* Layer l's part of the keys or values, at one head of slot 0; slots are `stride` elements apart. */
static size_t
head_offset(const struct store *s, uint32_t l, uint32_t kv_head)
{
    const struct model_desc *d = &s->weights->desc;
    size_t stride = (size_t)d->kv_heads * d->head_dim;
    return (size_t)(l - 1) * s->desc.slots * stride + (size_t)kv_head * d->head_dim;
}

void
remember(const struct store *s, uint32_t l, uint32_t kv_head, slot_t slot, void *keys_or_values, const float *kv)
{
    const struct model_desc *d = &s->weights->desc;
    size_t at = head_offset(s, l, kv_head) + (size_t)slot * d->kv_heads * d->head_dim;
    if (s->weights->backend->exact)
        memcpy((float *)keys_or_values + at, kv, d->head_dim * sizeof *kv);
    else
        s->isa->to_f16(kv, d->head_dim, (uint16_t *)keys_or_values + at);
}

/* Softmax over blocks of positions, with a running maximum: when a block raises it, what was summed so far is scaled
 * down (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). */
static void
attend_some(const struct store *s, size_t base, const struct path *path, size_t n_heads, const float *q, float *out)
{
    const struct model_desc *d = &s->weights->desc;
    const struct cpu_isa *isa = s->isa;
    const size_t dim = d->head_dim, stride = (size_t)d->kv_heads * dim;
    const bool exact = s->weights->backend->exact;
    float max[HEADS], sum[HEADS], keep[HEADS], scores[HEADS * ATTEND_BLOCK];
    slot_t at[ATTEND_BLOCK];
    memset(out, 0, n_heads * dim * sizeof *out);
    for (size_t h = 0; h < n_heads; h++) {
        max[h] = -INFINITY;
        sum[h] = 0;
    }
    for (size_t first = 0; first < path->n; first += ATTEND_BLOCK) {
        const size_t n = path->n - first < ATTEND_BLOCK ? path->n - first : ATTEND_BLOCK;
        for (size_t i = 0; i < n; i++)
            at[i] = first + i < path->n_trunk ? path->trunk[first + i] : path->tail[first + i - path->n_trunk];
        if (exact)
            isa->dots_f32(q, n_heads, dim, (const float *)s->keys + base, stride, at, n, scores);
        else
            isa->dots_f16(q, n_heads, dim, (const uint16_t *)s->keys + base, stride, at, n, scores);
        for (size_t h = 0; h < n_heads; h++) {
            float *p = scores + h * ATTEND_BLOCK, most = max[h];
            for (size_t i = 0; i < n; i++)
                most = p[i] > most ? p[i] : most;
            keep[h] = max[h] == most ? 1 : expf(max[h] - most); /* 0 in the first block */
            max[h] = most;
            sum[h] = sum[h] * keep[h] + isa->exp_sum(p, n, most);
        }
        if (exact)
            isa->mix_f32(scores, n_heads, dim, (const float *)s->values + base, stride, at, n, keep, out);
        else
            isa->mix_f16(scores, n_heads, dim, (const uint16_t *)s->values + base, stride, at, n, keep, out);
    }
    for (size_t h = 0; h < n_heads; h++)
        for (size_t i = 0; i < dim; i++)
            out[h * dim + i] /= sum[h];
}

void
attend(const struct store *s, uint32_t l, uint32_t kv_head, const struct path *path, size_t n_heads, const float *q,
       float *out)
{
    const size_t base = head_offset(s, l, kv_head), dim = s->weights->desc.head_dim;
    for (size_t h = 0; h < n_heads; h += HEADS)
        attend_some(s, base, path, n_heads - h < HEADS ? n_heads - h : HEADS, q + h * dim, out + h * dim);
}
