/* The shared memory of a block of a forward pass, the steps of a layer, and the time stamps of phases (profile.h). */
#pragma once

#include "kernels/cuda/device/attention.cuh"
#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/device/matmul.cuh"

#define EPILOGUE_ANY  (1u << EPILOGUE_QKV | 1u << EPILOGUE_STREAM | 1u << EPILOGUE_ACTIVATED | 1u << EPILOGUE_LOGITS)
#define EPILOGUE_SMEM (EPILOGUE_ANY & ~(1u << EPILOGUE_STREAM))    /* for rows in shared memory, which are normed */
#define EPILOGUE_ROWS (EPILOGUE_ANY & ~(1u << EPILOGUE_LOGITS))    /* for more than one row */
#define EPILOGUE_RARE (1u << EPILOGUE_EXPERT | 1u << EPILOGUE_MIX) /* for experts; other epilogues may clip, too */

/* ---- a block's shared memory ---- */

#define SMEM_ROWS       64
#define LARGER_OF(a, b) ((a) > (b) ? (a) : (b))
#define WORK_SHARED     LARGER_OF(LARGER_OF(ATTEND_SHARED, PRODUCT_SHARED), SMEM_AT + SMEM_BYTES)

/* Prefetch: this range of the bytes that the block reads of a product's weights. */
struct ahead {
    struct dev_product entry;
    struct product product;
    uint32_t from, to;
};

struct forward_state {
    /* Experts, sinks of attention, clamped gates, ALiBi, clipped queries, keys and values, a drafter's pairs. */
    static const bool RARE = false;
    unsigned char work[WORK_SHARED]; /* of products and attention; comes first because of loads of 16 bytes */
    struct forward_args a;
    struct dev_model model;
    struct dev_layer layer;     /* layer l */
    struct row rows[SMEM_ROWS]; /* the first of the forward pass */
    struct pass_step now;       /* the current step, and at a barrier the next one */
    uint32_t l, step;           /* its layer and kind */
    bool stopped;
    uint32_t n_probes, n_stamps; /* so far */
    uint64_t probe_start;
    uint32_t last_split;      /* of the longest path */
    const float2 *rotations;  /* of layer l: (rows, rope_dims / 2); NULL: nothing is rotated */
    struct dev_product entry; /* of the latest product */
    struct product product;
    struct dev_head trained;    /* head of layer l, if it is probed with a trained head */
    float *logits, temperature; /* of a probe */
    struct ahead ahead[2];      /* prefetch at this barrier and at the next one, alternating */
    struct block_scratch scratch;
    float norm_parts[TILE][BLOCK_WARPS], norm_sums[TILE][BLOCK_WARPS];
};

/* The state for models with any of these features, which have a separate kernel. */
struct moe_state : forward_state {
    static const bool RARE = true;
    struct dev_moe moe; /* layer l */
};

static __device__ __forceinline__ const struct dev_moe &
moe_here(const struct forward_state *s)
{
    return static_cast<const struct moe_state *>(s)->moe;
}

static __device__ __forceinline__ const struct row &
row_of(const struct forward_state *s, uint32_t i)
{
    return i < SMEM_ROWS ? s->rows[i] : s->a.rows[i];
}

static __device__ __forceinline__ float *
hidden_of(const struct forward_state *s, const struct row &row, uint32_t depth)
{
    return hidden_at(&s->model, &s->a.kv_cache, row.ring, depth);
}

/* Calls with(i, row) for the rows that take part in this layer, a block for each. */
template <class With>
static __device__ __forceinline__ void
for_rows(const struct forward_state *s, With with)
{
    for (uint32_t i = blockIdx.x; i < s->a.n; i += gridDim.x)
        if (row_of(s, i).from < s->l)
            with(i, row_of(s, i));
}

/* Copies memory; called by one warp. */
static __device__ __forceinline__ void
copy_by_warp(void *to, const void *from, size_t bytes)
{
    for (size_t i = thread_here() % WARP; i < bytes / sizeof(uint32_t); i += WARP)
        ((uint32_t *)to)[i] = ((const uint32_t *)from)[i];
}

static __device__ __forceinline__ struct dev_norm
mlp_norm(const struct forward_state *s)
{
    return {s->layer.ffn_norm, s->layer.ffn_norm_b};
}

static __device__ __forceinline__ const float2 *
rotations_of(const struct forward_state *s, enum layer_rope rope)
{
    const float2 *const rotations = (const float2 *)s->a.kv_cache.rotations;
    switch (rope) {
    case LAYER_ROPE_GLOBAL: return rotations;
    case LAYER_ROPE_LOCAL: return rotations + (size_t)s->a.kv_cache.max_rows * (s->model.rope_dims / 2);
    default: return NULL;
    }
}

/* Time stamps of a forward pass's phases (profile.h), by threads of every block. */

#define STAMP_THREAD (4 * WARP) /* one of the threads that do not wait at a barrier (forward.cu) */

static __device__ __forceinline__ void
stamp_begin(const struct forward_args &a)
{
    if (a.stamps != NULL && blockIdx.x == 0 && threadIdx.x == 0)
        a.stamps[STAMPED_BEGIN] = globaltimer();
}

/* Called when all warps of the block are at the barrier. */
static __device__ __forceinline__ void
stamp_coming(const struct forward_state *s)
{
    if (s->a.stamps != NULL && thread_here() == STAMP_THREAD)
        s->a.stamps[stamps_at(s->n_stamps, gridDim.x) + STAMP_CAME + blockIdx.x] = globaltimer();
}

/* Called after the barrier of this step. */
static __device__ __forceinline__ void
stamp_leaving(struct forward_state *s, uint32_t layer, uint32_t step)
{
    if (s->a.stamps == NULL || threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        uint64_t *const phase = s->a.stamps + stamps_at(s->n_stamps, gridDim.x);
        phase[STAMP_PLACE] = grid_place(layer, step);
        phase[STAMP_LEFT] = globaltimer();
        s->a.stamps[STAMPED_PHASES] = s->n_stamps + 1;
    }
    s->n_stamps++;
}
