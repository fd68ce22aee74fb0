#include "kernels/cpu/kv_cache.h"

#include <inttypes.h>

#include "base/array_grow.h"
#include "kernels/cpu/draft_rows.h"
#include "kernels/cpu/forward.h"

bool
cpu_dists_open(struct backend *b, uint32_t vocab, uint32_t n, struct dists **out, struct err *err)
{
    const struct pool_size size = {.vocab = vocab, .n = n};
    (void)b;
    *out = NULL;
    if (!request_pool(size, err))
        return false;
    struct dists *pool = calloc(1, sizeof *pool);
    if (pool != NULL && (pool->p = blocks_take(&pool->blocks, (size_t)n * vocab, sizeof *pool->p)) != NULL) {
        pool->size = size;
        *out = pool;
        return true;
    }
    free(pool);
    return err_set(err, ERR_WORK, "not enough memory for %" PRIu32 " distributions over %" PRIu32 " tokens", n, vocab);
}

void
cpu_dists_close(struct dists *pool)
{
    blocks_free(&pool->blocks);
    free(pool);
}

static size_t
largest(size_t a, size_t b)
{
    return a > b ? a : b;
}

void
cpu_kv_cache_acts(struct kv_cache *s, struct acts *a, size_t rows, size_t cols)
{
    a->x = blocks_take(&s->blocks, rows * cols, sizeof *a->x);
    a->q = blocks_take(&s->blocks, rows * acts_stride(cols), sizeof *a->q);
}

/* Computes where the keys and values of each layer start. Returns false if there is no memory or the number of
 * elements overflows. */
static bool
place_layers(struct kv_cache *s, size_t *places)
{
    const struct weights *w = s->weights;
    *places = 0;
    s->kv_start = blocks_take(&s->blocks, w->desc.n_layers + 1u, sizeof *s->kv_start);
    for (uint32_t l = 1; s->kv_start != NULL && l <= request_depth(&w->desc, &s->desc); l++) {
        const uint32_t from = w->layer_forms[l].kv_layer;
        size_t own = 0;
        s->kv_start[l] = from > 0 ? s->kv_start[from] : *places;
        if (from == 0 && w->layer_forms[l].kind == LAYER_ATTENTION &&
            (__builtin_mul_overflow(cpu_layer_sizes(s, l).kv, s->desc.slots, &own) ||
             __builtin_add_overflow(own, *places, places)))
            return false;
    }
    return s->kv_start != NULL;
}

/* Allocates the buffers of each thread, for inputs of at most `widest` numbers. */
static void
take_buffers(struct kv_cache *s, size_t widest)
{
    const struct model_desc *d = &s->weights->desc;
    size_t group_quants, group_scales;
    repack_group_bytes(s->weights, &group_quants, &group_scales);
    for (uint32_t t = 0; t < s->weights->backend->threads; t++) {
        struct worker_buffers *b = &s->workers[t];
        b->order = blocks_take(&s->blocks, largest(d->vocab, head_stride(s)), sizeof *b->order);
        b->p = blocks_take(&s->blocks, largest(d->vocab, head_stride(s)), sizeof *b->p);
        b->keys = blocks_take(&s->blocks, (size_t)ATTEND_BLOCK * d->head_dim, sizeof *b->keys);
        b->values = blocks_take(&s->blocks, (size_t)ATTEND_BLOCK * d->head_dim, sizeof *b->values);
        b->input = blocks_take(&s->blocks, d->form.per_layer + 1u, sizeof *b->input);
        b->group.q = blocks_take(&s->blocks, group_quants, 1);
        b->group.scale = blocks_take(&s->blocks, group_scales, 1);
        cpu_kv_cache_acts(s, &b->acts, FEW_ROWS, widest);
    }
}

/* Allocates all memory of a KV cache. The model's loader has checked the sizes; blocks_take() fails on products that
 * overflow. */
static bool
take_all(struct kv_cache *s)
{
    const struct model_desc *d = &s->weights->desc;
    const size_t heads = (size_t)d->heads * d->head_dim, kv = (size_t)d->kv_heads * d->head_dim;
    const bool blocks = d->drafter != NULL && d->drafter->block > 0;
    const size_t pair = d->drafter == NULL
                            ? 0
                            : largest(largest(2 * (size_t)d->width, d->drafter->features), d->drafter->markov_w2.cols);
    const size_t rows = s->desc.max_rows, gates = d->form.output_gate ? 2 * heads : 0;
    const size_t inner = largest(largest(d->ffn, d->form.per_layer), LAYER_RV(d));
    const size_t widest = largest(largest(largest(d->width, heads), inner), pair);
    const size_t element = s->weights->backend->exact ? sizeof(float) : sizeof(uint16_t);
    size_t places;
    s->head.n_pieces = (s->weights->head.rows + PIECE - 1) / PIECE + (s->desc.sets > 0 ? DRAFT_RECENT / PIECE : 0);
    if (!place_layers(s, &places))
        return false;
    s->hidden = blocks_take(&s->blocks, (size_t)s->desc.ring * (d->n_layers + 1), d->width * sizeof *s->hidden);
    s->keys = blocks_take(&s->blocks, places, element);
    s->values = blocks_take(&s->blocks, places, element);
    s->trunk = blocks_take(&s->blocks, (size_t)s->desc.seqs * s->desc.trunk, sizeof *s->trunk);
    s->q = blocks_take(&s->blocks, rows * heads, sizeof *s->q);
    s->attended = blocks_take(&s->blocks, rows * heads, sizeof *s->attended);
    s->k = blocks_take(&s->blocks, rows * kv, sizeof *s->k);
    s->v = blocks_take(&s->blocks, rows * kv, sizeof *s->v);
    s->gated = blocks_take(&s->blocks, rows * gates, sizeof *s->gated);
    s->gate = blocks_take(&s->blocks, rows * largest(d->ffn, d->form.per_layer), sizeof *s->gate);
    s->up = blocks_take(&s->blocks, rows * d->ffn, sizeof *s->up);
    s->y = blocks_take(&s->blocks, rows * d->width, sizeof *s->y);
    s->pairs = blocks_take(&s->blocks, largest(rows, HEAD_TILE) * pair, sizeof *s->pairs);
    s->beside = blocks_take(&s->blocks, s->weights->has_beside ? rows * d->width : 1, sizeof *s->beside);
    s->inputs = blocks_take(&s->blocks, rows * d->form.per_layer + 1, sizeof *s->inputs);
    s->rotations = blocks_take(&s->blocks, rows * (d->rope_dims + s->weights->local_dims) + 2, sizeof *s->rotations);
    s->head.logits = blocks_take(&s->blocks, HEAD_TILE * head_stride(s), sizeof *s->head.logits);
    s->head.pieces = blocks_take(&s->blocks, HEAD_ROWS * s->head.n_pieces, sizeof *s->head.pieces);
    s->head.shifted = blocks_take(&s->blocks, (size_t)HEAD_ROWS * d->width, sizeof *s->head.shifted);
    s->head.kept_logits = blocks_take(&s->blocks, blocks ? rows * head_stride(s) : 0, sizeof *s->head.kept_logits);
    s->head.kept = blocks_take(&s->blocks, blocks ? rows : 0, sizeof *s->head.kept);
    s->active = blocks_take(&s->blocks, rows, sizeof *s->active);
    s->workers = blocks_take(&s->blocks, s->weights->backend->threads, sizeof *s->workers);
    if (s->blocks.starved || !moe_open(s, rows) || !recurrent_open(s) || !draft_open(s))
        return false;
    cpu_kv_cache_acts(s, &s->acts, largest(rows, HEAD_ROWS), widest);
    take_buffers(s, widest);
    /* enough for a typical round; grows if a round needs more */
    const size_t results = s->desc.max_probes * sizeof(struct prediction) + 2 * sizeof(struct verdict) +
                           sizeof(struct exit_result) + (d->n_layers + 1) * sizeof(struct prediction) + 4096;
    return array_grow(&s->staged, &s->staged_room, results, 1) &&
           array_grow(&s->deliveries, &s->deliveries_room, 256, sizeof *s->deliveries) && !s->blocks.starved;
}

bool
cpu_kv_cache_open(struct weights *w, const struct kv_cache_desc *desc, struct kv_cache **out, struct err *err)
{
    *out = NULL;
    const struct pool_size dists = cpu_dists_size(desc->dists);
    if (!request_kv_cache((struct request_limits){&w->desc, desc, dists}, err))
        return false;
    struct kv_cache *s = aligned_alloc(_Alignof(struct kv_cache), sizeof *s);
    if (s == NULL)
        return err_set(err, ERR_WORK, "not enough memory for a context");
    *s = (struct kv_cache){.weights = w, .isa = w->backend->isa, .desc = *desc, .dists = desc->dists};
    s->limits = (struct request_limits){&w->desc, &s->desc, dists};
    if (!take_all(s)) {
        cpu_kv_cache_close(s);
        return err_set(err, ERR_WORK,
                       "not enough memory for keys and values of %" PRIu32
                       " positions; make the context smaller with --ctx",
                       desc->slots);
    }
    *out = s;
    return true;
}

void
cpu_kv_cache_close(struct kv_cache *s)
{
    draft_close(s);
    blocks_free(&s->blocks);
    free(s->staged);
    free(s->deliveries);
    free(s);
}

void *
cpu_kv_cache_stage(struct kv_cache *s, void *out, size_t bytes)
{
    size_t at = (s->staged_bytes + 15) / 16 * 16;
    if (!array_grow(&s->staged, &s->staged_room, at + bytes, 1) ||
        !array_grow(&s->deliveries, &s->deliveries_room, s->n_deliveries + 1, sizeof *s->deliveries)) {
        s->failed = true;
        err_set(&s->err, ERR_WORK, "not enough memory for results");
        return NULL;
    }
    s->deliveries[s->n_deliveries++] = (struct delivery){.out = out, .at = at, .bytes = bytes};
    s->staged_bytes = at + bytes;
    memset(s->staged + at, 0, bytes);
    return s->staged + at;
}

bool
cpu_kv_cache_deliver(struct kv_cache *s, struct err *err)
{
    bool ok = !s->cancelled && !s->failed;
    if (ok)
        for (size_t i = 0; i < s->n_deliveries; i++)
            memcpy(s->deliveries[i].out, s->staged + s->deliveries[i].at, s->deliveries[i].bytes);
    else if (s->failed && err != NULL)
        *err = s->err;
    else
        err_set(err, ERR_CANCELLED, "cancelled");
    s->cancelled = s->failed = false;
    s->n_deliveries = s->staged_bytes = 0;
    return ok;
}

bool
cpu_kv_cache_stopped(struct kv_cache *s)
{
    if (s->desc.cancel != NULL && atomic_load_explicit(s->desc.cancel, memory_order_relaxed))
        s->cancelled = true;
    return s->cancelled || s->failed;
}
