/* The products of steps, and prefetching of their weights. */
#pragma once

#include "kernels/cuda/device/forward_state.cuh"
#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/device/matmul.cuh"

/* Returns the product of an entry of the table, which must be in shared memory. */
static __device__ __forceinline__ struct product
product_of(const struct forward_state *s, const struct dev_product &entry, bool in_smem)
{
    const struct dev_kv_cache &kv_cache = s->a.kv_cache;
    struct product p = {
        {&entry.matrices[0], &entry.matrices[1], &entry.matrices[2]}, entry.n_matrices, NULL, s->a.n, in_smem};
    switch (entry.input) {
    case INPUT_NORMED: p.x = kv_cache.normed; break;
    case INPUT_ATTENDED: p.x = kv_cache.attended; break;
    case INPUT_GATED: p.x = kv_cache.gated; break;
    case INPUT_EXPERTS: p.x = kv_cache.expert_hidden; break;
    case INPUT_SHARED_EXPERT: p.x = kv_cache.shared_hidden; break;
    case INPUT_PROBE: p.x = kv_cache.head_normed; p.n = 1;
    }
    if (in_smem)
        p.x = s->work + SMEM_AT;
    p.by_expert = entry.by_expert;
    p.shared = entry.shared;
    p.down = entry.down;
    p.kv_cache = &kv_cache;
    return p;
}

/* Sets the trained head and the outputs of a probe; called by one thread. */
static __device__ __forceinline__ void
take_probe(struct forward_state *s)
{
    s->trained = {NULL, NULL, NULL};
    if (s->now.trained)
        s->trained = s->model.trained[s->l];
    for (uint32_t i = 0; s->now.full && i < s->entry.n_matrices; i++) {
        s->entry.matrices[i].quants = s->trained.full;
        s->entry.matrices[i].type = WEIGHT_F32;
    }
    const uint32_t n = s->a.until.set.number > 0 ? s->a.until.set.n : s->model.vocab;
    s->logits = s->a.kv_cache.until_logits + (size_t)s->n_probes * n;
    s->temperature = s->a.until.temperature[s->l];
}

/* Returns an entry of the table of products. */
static __device__ __forceinline__ const struct dev_product *
table_entry(const struct forward_state *s, uint32_t product)
{
    return product == PROBE_PRODUCT && s->a.until.probe != NULL ? s->a.until.probe : &s->model.products[product];
}

/* Copies an entry of the list and its product to shared memory; called by one warp. */
static __device__ __forceinline__ void
take_step(struct forward_state *s, const struct pass_step &next)
{
    if (next.product != NO_PRODUCT)
        copy_by_warp(&s->entry, table_entry(s, next.product), sizeof s->entry);
    __syncwarp();
    if (thread_here() % WARP != 0)
        return;
    s->now = next;
    s->l = next.layer;
    s->step = next.step;
    if (next.step >= SHIFT_PROBE)
        take_probe(s);
    if (next.product == NO_PRODUCT)
        return;
    s->product = product_of(s, s->entry, next.in_smem);
    if (next.step == QKV || next.step == FEED)
        s->rotations = rotations_of(s, s->entry.rope);
}

/* Copies the layer's descriptors; called by one warp. */
template <class Shared>
static __device__ __forceinline__ void
take_layer(Shared *s, uint32_t l)
{
    copy_by_warp(&s->layer, &s->model.layers[l], sizeof s->layer);
    if constexpr (Shared::RARE)
        if (s->model.moe != NULL)
            copy_by_warp(&s->moe, &s->model.moe[l], sizeof s->moe);
}

/* Copies what the barrier after a step prefetches; called by one warp. The shared expert's gate and up are prefetched
 * like those of a plain matrix. */
static __device__ __forceinline__ void
take_ahead(struct forward_state *s, const struct pass_step &step, struct ahead *ahead)
{
    if (step.ahead != NO_PRODUCT)
        copy_by_warp(&ahead->entry, table_entry(s, step.ahead), sizeof ahead->entry);
    __syncwarp();
    if (thread_here() % WARP != 0)
        return;
    ahead->from = ahead->to = 0;
    if (step.ahead == NO_PRODUCT)
        return;
    ahead->product = product_of(s, ahead->entry, false);
    ahead->product.by_expert = ahead->entry.by_expert && ahead->entry.down;
    ahead->from = step.windows * s->a.window;
    ahead->to = ahead->from + s->a.window;
}

/* Prefetches this block's part, with all warps except the first. */
template <class Shared>
static __device__ __forceinline__ void
fetch_ahead(const struct ahead &ahead)
{
    if (ahead.from < ahead.to)
        prefetch_strips(block_rows<Shared::RARE, 1>(ahead.product), ahead.from, ahead.to, thread_here() - WARP,
                        BLOCK_THREADS - WARP);
}
