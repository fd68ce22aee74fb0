/* What a block of a sweep has in shared memory. */
#ifndef KERNELS_CUDA_DEVICE_SWEEP_SHARED_CUH
#define KERNELS_CUDA_DEVICE_SWEEP_SHARED_CUH

#include "kernels/cuda/device/attention.cuh"
#include "kernels/cuda/device/matmul.cuh"
#include "kernels/cuda/device/visits.h"

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

#endif
