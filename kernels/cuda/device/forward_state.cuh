/* The shared memory of a block of a forward pass, the steps of a layer, and the time stamps of phases (trace.h). */
#ifndef KERNELS_CUDA_DEVICE_FORWARD_STATE_CUH
#define KERNELS_CUDA_DEVICE_FORWARD_STATE_CUH

#include "kernels/cuda/device/attention.cuh"
#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/device/matmul.cuh"

enum epilogue_kind {
    EPILOGUE_QKV,       /* biased, rotated; queries scaled, keys and values stored */
    EPILOGUE_STREAM,    /* hidden (l) = hidden (from) + y * scale + bias * bias_scale; or to be normed first */
    EPILOGUE_GATED,     /* silu(gate) * up */
    EPILOGUE_ACTIVATED, /* other activations */
    EPILOGUE_LOGITS,    /* of one row */
    EPILOGUE_EXPERT,    /* of an expert row: like EPILOGUE_GATED and EPILOGUE_ACTIVATED */
    EPILOGUE_MIX, /* of an expert row: weighted and added to the sum of the row's earlier experts; the last one is */
                  /* added to the stream */
    EPILOGUE_KINDS
};

#define EPILOGUE_ANY                                                                                                   \
    (1u << EPILOGUE_QKV | 1u << EPILOGUE_STREAM | 1u << EPILOGUE_GATED | 1u << EPILOGUE_ACTIVATED |                    \
     1u << EPILOGUE_LOGITS)
#define EPILOGUE_SMEM    (EPILOGUE_ANY & ~(1u << EPILOGUE_STREAM)) /* of rows in shared memory: what is normed before */
#define EPILOGUE_ROWS    (EPILOGUE_ANY & ~(1u << EPILOGUE_LOGITS)) /* of more rows than one */
#define EPILOGUE_EXPERTS (1u << EPILOGUE_EXPERT | 1u << EPILOGUE_MIX) /* additional kinds in models with experts */
#define EPILOGUE_CLIPS   (1u << EPILOGUE_KINDS)                       /* a flag: epilogues may clip */

/* The epilogue of the next product, in shared memory. */
struct epilogue_args {
    enum epilogue_kind kind;
    uint32_t matrix; /* number of the product's first one: wq 0, wk 1, wv 2 */
    uint32_t from;
    float scale, bias_scale;
    const float *bias; /* NULL: none */
    bool raw;          /* y * scale + bias * bias_scale is stored, to be normed and added in a separate step */
    float *logits, temperature;
    bool in_smem, smem_first; /* every block stores its rows for itself: while the first weights load; before, */
                              /* where the norm is centred or there is none */
    struct dev_norm norm;
    uint32_t norm_depth;
};

/* ---- a block's shared memory ---- */

#define SMEM_ROWS       64
#define LARGER_OF(a, b) ((a) > (b) ? (a) : (b))
#define WORK_SHARED     LARGER_OF(LARGER_OF(ATTEND_SHARED, PRODUCT_SHARED), SMEM_AT + SMEM_BYTES)

/* What a layer does. */
struct layer_does {
    bool attends, has_mlp, norms_heads, posts_attention, posts_mlp; /* posts: norms the sublayer's output */
    bool has_experts;                                               /* its MLP is experts */
    bool probes, shifts, probe_in_smem; /* shifts: by an affine head; probe_in_smem: every block norms the probed row */
                                        /* itself */
};

struct layer_step {
    uint32_t l, step;
};

/* Prefetch: this range of the bytes that the block reads of a product's weights. */
struct ahead {
    struct product product;
    uint32_t from, to;
};

struct forward_state {
    static const bool HAS_EXPERTS = false; /* experts, sinks of attention, clamped gates */
    static const bool HAS_ALIBI = false;   /* ALiBi; clipped queries, keys and values */
    unsigned char work[WORK_SHARED];       /* of products and attention; comes first because of loads of 16 bytes */
    struct forward_args a;
    struct dev_model model;
    struct dev_layer layers[2]; /* layer l at l % 2, so that the next one can be loaded early */
    struct row rows[SMEM_ROWS]; /* the first of the forward pass */
    uint32_t l, step;           /* current or next step; STEPS: none */
    struct layer_step before;
    struct layer_does does; /* layer l */
    bool in_smem;           /* every block norms the rows itself */
    bool stopped;
    uint32_t n_probes, n_stamps; /* so far */
    uint64_t probe_start;
    uint32_t last_split;     /* of the longest path */
    const float2 *rotations; /* of layer l: (rows, rope_dims / 2); NULL: nothing is rotated */
    struct product product;
    struct dev_head trained;    /* head of layer l, if it is probed with a trained head */
    struct dev_matrix own_head; /* its full head as a matrix */
    struct epilogue_args how;
    struct ahead ahead[2]; /* prefetch at this barrier and at the next one, alternating */
    uint32_t idle_steps;   /* steps since the last one with a product */
    float parts[WARP];
    float norm_parts[TILE][BLOCK_WARPS], norm_sums[TILE][BLOCK_WARPS];
};

/* The state for models with any of these features, which have a separate kernel. */
struct moe_state : forward_state {
    static const bool HAS_EXPERTS = true;
    static const bool HAS_ALIBI = true;
    struct dev_moe moe[2]; /* layer l at l % 2 */
};

static __device__ __forceinline__ const struct dev_moe &
moe_here(const struct forward_state *s)
{
    return static_cast<const struct moe_state *>(s)->moe[s->l % 2];
}

static __device__ __forceinline__ const struct row &
row_of(const struct forward_state *s, uint32_t i)
{
    return i < SMEM_ROWS ? s->rows[i] : s->a.rows[i];
}

static __device__ __forceinline__ const struct dev_layer &
layer_here(const struct forward_state *s)
{
    return s->layers[s->l % 2];
}

static __device__ __forceinline__ bool
layer_is_gated(const struct dev_model &m, const struct dev_layer &layer)
{
    return layer.gate_up.rows > m.ffn;
}

/* ---- the steps of a layer ---- */

static __device__ __forceinline__ bool
skips(const uint8_t *mask, uint32_t l)
{
    return mask != NULL && mask[l] != 0;
}

static __device__ __forceinline__ float *
hidden_of(struct forward_state *s, const struct row &row, uint32_t depth)
{
    return s->a.kv_cache.hidden + ((size_t)row.ring * (s->model.n_layers + 1) + depth) * s->model.width;
}

static __device__ __forceinline__ void
copy_words(void *to, const void *from, size_t bytes)
{
    for (size_t i = thread_here(); i < bytes / sizeof(uint32_t); i += BLOCK_THREADS)
        ((uint32_t *)to)[i] = ((const uint32_t *)from)[i];
}

template <class Shared>
static __device__ __forceinline__ void
copy_layer(Shared *s, uint32_t l)
{
    if (l > s->a.to)
        return;
    copy_words(&s->layers[l % 2], &s->model.layers[l], sizeof(struct dev_layer));
    if constexpr (Shared::HAS_EXPERTS)
        if (s->model.moe != NULL)
            copy_words(&s->moe[l % 2], &s->model.moe[l], sizeof(struct dev_moe));
}

/* ---- what the MLP of layer s->l reads ---- */

/* Returns the norm before the MLP; in a parallel form without an MLP norm, attention's norm. */
static __device__ __forceinline__ struct dev_norm
mlp_norm(const struct forward_state *s, const struct dev_layer &d)
{
    if (d.ffn_norm == NULL && s->model.form.parallel)
        return {d.attn_norm, d.attn_norm_b};
    return {d.ffn_norm, d.ffn_norm_b};
}

static __device__ __forceinline__ uint32_t
mlp_depth(const struct forward_state *s)
{
    return s->does.attends && !s->model.form.parallel ? s->l : s->l - 1;
}

/* ---- steps ---- */

/* Returns the properties of layer l >= 1, whose descriptors must be loaded. */
static __device__ __forceinline__ struct layer_does
layer_does_what(const struct forward_state *s, uint32_t l)
{
    const struct dev_layer &d = s->layers[l % 2];
    const bool probes = s->a.until.temperature != NULL && s->a.until.threshold[l] <= 1;
    struct dev_head head = {NULL, NULL, NULL};
    if (probes && s->a.until.trained)
        head = s->model.trained[l];
    return {!skips(s->a.skip_attention, l),
            !skips(s->a.skip_mlp, l),
            d.q_norm != NULL || d.k_norm != NULL,
            d.attn_post != NULL,
            d.ffn_post != NULL,
            d.has_experts,
            probes,
            head.a != NULL,
            head.full == NULL && rows_fit_smem(s->model, 1)};
}

static __device__ __forceinline__ bool
does(const struct forward_state *s, const struct layer_does &layer, uint32_t step)
{
    switch (step) {
    case START: return false;
    case NORM_ATTENTION: return layer.attends && !s->in_smem;
    case NORM_HEADS: return layer.attends && layer.norms_heads;
    case POST_ATTENTION: return layer.attends && layer.posts_attention;
    case NORM_MLP: return layer.has_mlp && !s->in_smem;
    case ROUTE: return layer.has_mlp && layer.has_experts;
    case POST_MLP: return layer.has_mlp && layer.posts_mlp;
    case CARRY: return !layer.attends && !layer.has_mlp;
    case SHIFT_PROBE: return layer.probes && layer.shifts;
    case NORM_PROBE: return layer.probes && !layer.probe_in_smem;
    case PROBE: return layer.probes;
    default: return step <= OUT ? layer.attends : layer.has_mlp;
    }
}

/* Returns the step after a step of layer s->l, or of the next layer if its descriptors are there (layer `copied`). A
 * step of STEPS: none, or not known yet. */
static __device__ __forceinline__ struct layer_step
step_after(const struct forward_state *s, struct layer_step at, uint32_t copied)
{
    struct layer_does layer = s->does;
    if (at.l != s->l)
        layer = layer_does_what(s, at.l);
    for (;;) {
        while (++at.step < STEPS)
            if (does(s, layer, at.step))
                return at;
        if (at.l == s->a.to || at.l == copied)
            return at;
        layer = layer_does_what(s, ++at.l);
        at.step = UINT32_MAX;
    }
}

static __device__ __forceinline__ const float2 *
rotations_of(const struct forward_state *s, uint32_t l)
{
    const float2 *const rotations = (const float2 *)s->a.kv_cache.rotations;
    switch (s->layers[l % 2].rope) {
    case LAYER_ROPE_GLOBAL: return rotations;
    case LAYER_ROPE_LOCAL: return rotations + (size_t)s->a.kv_cache.max_rows * (s->model.rope_dims / 2);
    default: return NULL;
    }
}

/* By one thread. */
static __device__ __forceinline__ void
enter_layer(struct forward_state *s, uint32_t l)
{
    s->l = l;
    s->does = layer_does_what(s, l);
    s->rotations = rotations_of(s, l);
    s->trained = {NULL, NULL, NULL};
    if (s->does.probes && s->a.until.trained)
        s->trained = s->model.trained[l];
    s->own_head = {s->trained.full, NULL, NULL, WEIGHT_F32, s->model.vocab, s->model.width, 0, 0};
}

/* Stamps of a forward pass's phases (trace.h), by threads of every block. */

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

#endif
