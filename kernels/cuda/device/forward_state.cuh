/* What a block of a forward pass has in shared memory, which steps a layer has, and how phases are stamped (trace.h). */
#ifndef KERNELS_CUDA_DEVICE_FORWARD_STATE_CUH
#define KERNELS_CUDA_DEVICE_FORWARD_STATE_CUH

#include "kernels/cuda/device/attention.cuh"
#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/device/matmul.cuh"

enum finish_kind {
    FINISH_QKV,       /* biased, rotated; queries scaled, keys and values stored */
    FINISH_STREAM,    /* hidden (l) = hidden (from) + y * scale + bias * bias_scale; or to be normed first */
    FINISH_GATED,     /* silu(gate) * up */
    FINISH_ACTIVATED, /* what other forms have there */
    FINISH_LOGITS,    /* of one row */
    FINISH_EXPERT,    /* of a visit: what FINISH_GATED and FINISH_ACTIVATED do */
    FINISH_MIX, /* of a visit: weighed, added to what the row's experts before it said; the last one goes on to the stream */
    FINISH_KINDS
};

#define FINISH_ANY                                                                                                     \
    (1u << FINISH_QKV | 1u << FINISH_STREAM | 1u << FINISH_GATED | 1u << FINISH_ACTIVATED | 1u << FINISH_LOGITS)
#define FINISH_NEAR   (FINISH_ANY & ~(1u << FINISH_STREAM))    /* of rows in shared memory: what is normed before */
#define FINISH_ROWS   (FINISH_ANY & ~(1u << FINISH_LOGITS))    /* of more rows than one */
#define FINISH_VISITS (1u << FINISH_EXPERT | 1u << FINISH_MIX) /* besides, in models that mix experts */
#define FINISH_CLIPS  (1u << FINISH_KINDS)                     /* no kind: those that there are may clip */

/* What a block says about the product that comes, in shared memory. */
struct finish_how {
    enum finish_kind kind;
    uint32_t matrix; /* number of the product's first one: wq 0, wk 1, wv 2 */
    uint32_t from;
    float scale, bias_scale;
    const float *bias; /* NULL: none */
    bool raw;          /* y * scale + bias * bias_scale, to be normed and added in a step of its own */
    float *logits, temperature;
    bool near,
        near_first; /* its rows are put down by every block for itself: with the first weights under way; before, */
                    /* where the norm is centred or there is none */
    struct dev_norm norm;
    uint32_t norm_depth;
};

/* ---- a block's shared memory ---- */

#define NEAR_ROWS       64
#define LARGER_OF(a, b) ((a) > (b) ? (a) : (b))
#define WORK_SHARED     LARGER_OF(LARGER_OF(ATTEND_SHARED, PRODUCT_SHARED), NEAR_AT + NEAR_SHARED)

/* What a layer does. */
struct layer_does {
    bool attends, has_mlp, norms_heads, posts_attention, posts_mlp; /* posts: norms what the sublayer adds */
    bool mixes;                                                     /* its MLP is experts */
    bool probes, shifts, probes_near; /* by an affine head; the probe's row is normed by every block for itself */
};

struct sweep_at {
    uint32_t l, step;
};

/* What is fetched ahead: these bytes of what this block reads of a product's weights. */
struct ahead {
    struct product product;
    uint32_t from, to;
};

struct sweep_shared {
    static const bool MIXES = false; /* experts, sinks of attention, clamped gates */
    static const bool BENDS = false; /* scores by positions (ALiBi); queries, keys and values, which are clipped */
    unsigned char work[WORK_SHARED]; /* products', attention's: first, for it has loads of 16 bytes */
    struct sweep_args a;
    struct dev_model model;
    struct dev_layer layers[2]; /* layer l at l % 2, so that the next one is there before its turn */
    struct row rows[NEAR_ROWS]; /* the first of the sweep */
    uint32_t l, step;           /* that is being done, or comes; step STEPS: none */
    struct sweep_at before;
    struct layer_does does; /* layer l */
    bool near;              /* rows are normed by every block for itself */
    bool stopped;
    uint32_t n_probes, n_stamps; /* so far */
    uint64_t probe_start;
    uint32_t last_split; /* of the longest path */
    const float2 *turns; /* of layer l: (rows, rope_dims / 2); NULL: nothing is rotated */
    struct product product;
    struct dev_head trained;    /* of layer l, if it is probed by one */
    struct dev_matrix own_head; /* its full head as a matrix */
    struct finish_how how;
    struct ahead ahead[2]; /* at this barrier, at the next one: they take turns */
    uint32_t between;      /* steps without a product since the last one that had one */
    float parts[WARP];
    float near_parts[TILE][SWEEP_WARPS], near_sums[TILE][SWEEP_WARPS];
};

/* Of models that do any of that. They have kernels of their own, so that others' know nothing of it. */
struct mixture_shared : sweep_shared {
    static const bool MIXES = true;
    static const bool BENDS = true;
    struct dev_mixture mixtures[2]; /* layer l at l % 2 */
};

static __device__ __forceinline__ const struct dev_mixture &
mixture_here(const struct sweep_shared *s)
{
    return static_cast<const struct mixture_shared *>(s)->mixtures[s->l % 2];
}

static __device__ __forceinline__ const struct row &
row_of(const struct sweep_shared *s, uint32_t i)
{
    return i < NEAR_ROWS ? s->rows[i] : s->a.rows[i];
}

static __device__ __forceinline__ const struct dev_layer &
layer_here(const struct sweep_shared *s)
{
    return s->layers[s->l % 2];
}

static __device__ __forceinline__ bool
layer_is_gated(const struct dev_model &m, const struct dev_layer &layer)
{
    return layer.gate_up.rows > m.ffn;
}

/* Which steps a layer has, and how a block comes to the next layer. */

static __device__ __forceinline__ bool
skips(const uint8_t *mask, uint32_t l)
{
    return mask != NULL && mask[l] != 0;
}

static __device__ __forceinline__ float *
hidden_of(struct sweep_shared *s, const struct row &row, uint32_t depth)
{
    return s->a.store.hidden + ((size_t)row.ring * (s->model.n_layers + 1) + depth) * s->model.width;
}

static __device__ __forceinline__ void
copy_words(void *to, const void *from, size_t bytes)
{
    for (size_t i = thread_here(); i < bytes / sizeof(uint32_t); i += SWEEP_THREADS)
        ((uint32_t *)to)[i] = ((const uint32_t *)from)[i];
}

template <class Shared>
static __device__ __forceinline__ void
bring_layer(Shared *s, uint32_t l)
{
    if (l > s->a.to)
        return;
    copy_words(&s->layers[l % 2], &s->model.layers[l], sizeof(struct dev_layer));
    if constexpr (Shared::MIXES)
        if (s->model.mixtures != NULL)
            copy_words(&s->mixtures[l % 2], &s->model.mixtures[l], sizeof(struct dev_mixture));
}

/* ---- what the MLP of layer s->l reads ---- */

/* In a parallel form without a norm of its own: what attention reads. */
static __device__ __forceinline__ struct dev_norm
mlp_norm(const struct sweep_shared *s, const struct dev_layer &d)
{
    if (d.ffn_norm == NULL && s->model.form.parallel)
        return {d.attn_norm, d.attn_norm_b};
    return {d.ffn_norm, d.ffn_norm_b};
}

static __device__ __forceinline__ uint32_t
mlp_depth(const struct sweep_shared *s)
{
    return s->does.attends && !s->model.form.parallel ? s->l : s->l - 1;
}

/* ---- steps ---- */

/* What layer l does, of 1 and up; its descriptors must be there. */
static __device__ __forceinline__ struct layer_does
layer_does_what(const struct sweep_shared *s, uint32_t l)
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
            d.mixes,
            probes,
            head.a != NULL,
            head.full == NULL && rows_are_near(s->model, 1)};
}

static __device__ __forceinline__ bool
does(const struct sweep_shared *s, const struct layer_does &layer, uint32_t step)
{
    switch (step) {
    case START: return false;
    case NORM_ATTENTION: return layer.attends && !s->near;
    case NORM_HEADS: return layer.attends && layer.norms_heads;
    case POST_ATTENTION: return layer.attends && layer.posts_attention;
    case NORM_MLP: return layer.has_mlp && !s->near;
    case ROUTE: return layer.has_mlp && layer.mixes;
    case POST_MLP: return layer.has_mlp && layer.posts_mlp;
    case CARRY: return !layer.attends && !layer.has_mlp;
    case SHIFT_PROBE: return layer.probes && layer.shifts;
    case NORM_PROBE: return layer.probes && !layer.probes_near;
    case PROBE: return layer.probes;
    default: return step <= OUT ? layer.attends : layer.has_mlp;
    }
}

/* What comes after a step of layer s->l, or of the one behind it if its descriptors are there, which layer `brought` says. A
 * step of STEPS: nothing, or nobody knows yet. */
static __device__ __forceinline__ struct sweep_at
step_after(const struct sweep_shared *s, struct sweep_at at, uint32_t brought)
{
    struct layer_does layer = s->does;
    if (at.l != s->l)
        layer = layer_does_what(s, at.l);
    for (;;) {
        while (++at.step < STEPS)
            if (does(s, layer, at.step))
                return at;
        if (at.l == s->a.to || at.l == brought)
            return at;
        layer = layer_does_what(s, ++at.l);
        at.step = UINT32_MAX;
    }
}

static __device__ __forceinline__ const float2 *
turns_of(const struct sweep_shared *s, uint32_t l)
{
    const float2 *const turns = (const float2 *)s->a.store.turns;
    switch (s->layers[l % 2].rope) {
    case LAYER_ROPE_GLOBAL: return turns;
    case LAYER_ROPE_LOCAL: return turns + (size_t)s->a.store.max_rows * (s->model.rope_dims / 2);
    default: return NULL;
    }
}

/* By one thread. */
static __device__ __forceinline__ void
enter_layer(struct sweep_shared *s, uint32_t l)
{
    s->l = l;
    s->does = layer_does_what(s, l);
    s->turns = turns_of(s, l);
    s->trained = {NULL, NULL, NULL};
    if (s->does.probes && s->a.until.trained)
        s->trained = s->model.trained[l];
    s->own_head = {s->trained.full, NULL, NULL, WEIGHT_F32, s->model.vocab, s->model.width, 0, 0};
}

/* Stamps of a sweep's phases (trace.h), by threads of every block. */

#define STAMP_THREAD (4 * WARP) /* of those that do not wait at a barrier (forward.cu) */

static __device__ __forceinline__ void
stamp_begin(const struct sweep_args &a)
{
    if (a.stamps != NULL && blockIdx.x == 0 && threadIdx.x == 0)
        a.stamps[STAMPED_BEGIN] = globaltimer();
}

/* All warps of the block have come to the barrier. */
static __device__ __forceinline__ void
stamp_coming(const struct sweep_shared *s)
{
    if (s->a.stamps != NULL && thread_here() == STAMP_THREAD)
        s->a.stamps[stamps_at(s->n_stamps, gridDim.x) + STAMP_CAME + blockIdx.x] = globaltimer();
}

/* The barrier behind this step is past. */
static __device__ __forceinline__ void
stamp_leaving(struct sweep_shared *s, uint32_t layer, uint32_t step)
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
