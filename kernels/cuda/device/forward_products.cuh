/* The products of steps, and prefetching of their weights. */
#ifndef KERNELS_CUDA_DEVICE_FORWARD_PRODUCTS_CUH
#define KERNELS_CUDA_DEVICE_FORWARD_PRODUCTS_CUH

#include "kernels/cuda/device/forward_state.cuh"
#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/device/matmul.cuh"

/* Products of experts with their rows (layout.h): the strips and activations of a block, with the interface of
 * all_rows (matmul.cuh). A lane takes the activations of whatever row it has, so rows need not be brought together: an instruction's
 * columns do not mix.
 *
 * Of gate and up the blocks take the strips of all listed experts in turn. Of down a block takes the same strip of all experts, one
 * expert after the other: so a row's experts are added by one block, in order. */

template <int NT> struct listed_rows {
    struct of_lane {
        uint32_t row[NT];
        struct packed_place following; /* read together with the rows, so that the ring never waits for the list */
    };
    const struct product &p;
    const uint32_t strips, experts; /* of an expert; of the product, 1 if it is not by expert */
    uint32_t end;

    __device__ __forceinline__ explicit listed_rows(const struct product &p)
        : p(p), strips(p.by_expert ? p.matrices[0]->strips : count_strips(p)),
          experts(p.by_expert && !p.shared ? p.kv_cache->expert_list->n : 1), end(experts * strips)
    {
        if (p.down)
            end = blockIdx.x < strips ? (strips - blockIdx.x + gridDim.x - 1) / gridDim.x * experts : 0;
    }
    /* The shared expert's strips begin with the last blocks, some of which had one strip less of the routed experts. */
    __device__ __forceinline__ uint32_t
    begin() const
    {
        return p.down ? 0 : p.shared ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    }
    __device__ __forceinline__ uint32_t
    step() const
    {
        return p.down ? 1 : gridDim.x;
    }
    __device__ __forceinline__ struct strip_place
    find(uint32_t i) const
    {
        if (!p.by_expert)
            return find_strip(p, i);
        const struct expert_list *const list = p.kv_cache->expert_list;
        const struct listed_expert at = p.shared ? list->alone : list->experts[p.down ? i % experts : i / strips];
        const uint32_t strip = p.down ? blockIdx.x + i / experts * gridDim.x : i % strips;
        return {p.matrices[0], 0, strip, (p.shared ? 0 : at.expert * strips) + strip, at.first, at.n};
    }
    __device__ __forceinline__ struct packed_place
    following(const of_lane &own, uint32_t) const
    {
        return own.following;
    }
    __device__ __forceinline__ uint32_t
    count(const struct strip_place &at) const
    {
        return p.by_expert ? at.n : p.n;
    }
    __device__ __forceinline__ uint32_t
    input_row(const struct strip_place &at, uint32_t row) const
    {
        if (!p.by_expert || (p.down && !p.shared))
            return at.first + row;
        return p.kv_cache->expert_rows[at.first + row].row;
    }
    /* Lanes of missing rows read the activations of the tiles' first row. */
    __device__ __forceinline__ of_lane
    look_up(const struct strip_place &at, uint32_t tile, uint32_t lane, uint32_t next) const
    {
        struct of_lane own;
        own.following = packed_of(find(next));
#pragma unroll
        for (uint32_t j = 0; j < NT; j++) {
            const uint32_t row = (tile + j) * TILE + lane / 4;
            own.row[j] = input_row(at, row < count(at) ? row : tile * TILE);
        }
        return own;
    }
    template <bool SMEM>
    __device__ __forceinline__ const uint4 *
    activations(const of_lane &own, uint32_t, uint32_t j, uint32_t unit, uint32_t units, uint32_t lane) const
    {
        const uint32_t row = own.row[j];
        if (SMEM)
            return (const uint4 *)p.x + row * smem_stride(units) + unit * 4 + lane % 4;
        return opaque((const uint4 *)p.x + (size_t)(row / TILE) * units * WARP + row % TILE * 4 + lane % 4 +
                      (size_t)unit * WARP);
    }
};

/* The strips of a product, and their rows. */
template <class Shared, int NT>
static __device__ __forceinline__ auto
rows_of(const struct product &p)
{
    if constexpr (Shared::RARE)
        return listed_rows<NT>(p);
    else
        return all_rows<NT>(p);
}

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

/* Sets the trained head and the outputs of a probe; by one thread. */
static __device__ __forceinline__ void
take_probe(struct forward_state *s)
{
    s->trained = {NULL, NULL, NULL};
    if (s->now.trained)
        s->trained = s->model.trained[s->l];
    if (s->now.full)
        s->entry.matrices[0] = {s->trained.full,
                                NULL,
                                NULL,
                                WEIGHT_F32,
                                s->model.vocab,
                                s->model.width,
                                (s->model.vocab + STRIP - 1) / STRIP,
                                0};
    s->logits = s->a.kv_cache.until_logits + (size_t)s->n_probes * s->model.vocab;
    s->temperature = s->a.until.temperature[s->l];
}

/* Copies an entry of the list and its product to shared memory; by one warp. */
static __device__ __forceinline__ void
take_step(struct forward_state *s, const struct pass_step &next)
{
    if (next.product != NO_PRODUCT)
        copy_by_warp(&s->entry, &s->model.products[next.product], sizeof s->entry);
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
    if (next.step == QKV)
        s->rotations = rotations_of(s, s->entry.rope);
}

/* Copies the layer's descriptors; by one warp. */
template <class Shared>
static __device__ __forceinline__ void
take_layer(Shared *s, uint32_t l)
{
    copy_by_warp(&s->layer, &s->model.layers[l], sizeof s->layer);
    if constexpr (Shared::RARE)
        if (s->model.moe != NULL)
            copy_by_warp(&s->moe, &s->model.moe[l], sizeof s->moe);
}

/* Copies what is prefetched at the barrier after a step; by one warp. The shared expert's gate and up are prefetched as
 * those of a plain matrix. */
static __device__ __forceinline__ void
take_ahead(struct forward_state *s, const struct pass_step &step, struct ahead *ahead)
{
    if (step.ahead != NO_PRODUCT)
        copy_by_warp(&ahead->entry, &s->model.products[step.ahead], sizeof ahead->entry);
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
        prefetch_strips(rows_of<Shared, 1>(ahead.product), ahead.from, ahead.to, thread_here() - WARP,
                        BLOCK_THREADS - WARP);
}

#endif
