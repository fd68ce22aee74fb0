/* Models that norm queries and keys: that, and their rotation, in either order, in a step of their own. A warp a head. */
#ifndef KERNELS_CUDA_DEVICE_SWEEP_HEADS_CUH
#define KERNELS_CUDA_DEVICE_SWEEP_HEADS_CUH

#include "kernels/cuda/device/sweep_steps.cuh"

#define LANE_PAIRS (MAX_HEAD_DIM / 2 / WARP)

/* A lane's pairs of a head, number lane, lane + WARP, …; behind the head's end zero. */
struct head_pairs {
    float2 x[LANE_PAIRS];
};

static __device__ __forceinline__ bool
has_pair(const struct dev_model &m, uint32_t p)
{
    return p < m.head_dim / 2;
}

static __device__ __forceinline__ struct spread
warp_spread(const struct dev_model &m, const struct head_pairs &head, uint32_t lane)
{
    float mean = 0, squares = 0;
    if (m.form.centred) {
#pragma unroll
        for (int j = 0; j < LANE_PAIRS; j++)
            mean += head.x[j].x + head.x[j].y;
        mean = warp_sum(mean) / (float)m.head_dim;
    }
#pragma unroll
    for (int j = 0; j < LANE_PAIRS; j++)
        if (has_pair(m, lane + j * WARP)) {
            squares = fmaf(head.x[j].x - mean, head.x[j].x - mean, squares);
            squares = fmaf(head.x[j].y - mean, head.x[j].y - mean, squares);
        }
    return spread_of(m, mean, warp_sum(squares), m.head_dim);
}

/* turns: of the row; NULL: nothing is rotated. */
static __device__ __forceinline__ void
rotate_pairs(const struct dev_model &m, const float2 *turns, struct head_pairs *head, uint32_t lane)
{
#pragma unroll
    for (int j = 0; j < LANE_PAIRS; j++)
        if (turns != NULL && lane + j * WARP < m.rope_dims / 2)
            rotate(turns[lane + j * WARP], &head->x[j].x, &head->x[j].y);
}

/* Numbers of which those at `first` and up are the head's; whole: the spread of all heads together. */
static __device__ __forceinline__ void
norm_pairs(const struct dev_model &m, const float *weight, uint32_t first, const struct spread &whole,
           struct head_pairs *head, uint32_t lane)
{
    const struct dev_norm norm = {weight, NULL};
    const struct spread spread = m.form.whole_norms ? whole : warp_spread(m, *head, lane);
#pragma unroll
    for (int j = 0; j < LANE_PAIRS; j++)
        if (has_pair(m, lane + j * WARP)) {
            const uint2 d = dims_of_pair(m, lane + j * WARP);
            head->x[j].x = normed(norm, spread, head->x[j].x, first + d.x);
            head->x[j].y = normed(norm, spread, head->x[j].y, first + d.y);
        }
}

static __device__ __forceinline__ void
clip_pairs(float most, struct head_pairs *head)
{
#pragma unroll
    for (int j = 0; j < LANE_PAIRS; j++)
        head->x[j] = make_float2(clipped(most, head->x[j].x), clipped(most, head->x[j].y));
}

static __device__ __forceinline__ const float *
raw_heads(const struct sweep_shared *s, uint32_t i, bool is_key)
{
    const struct dev_model &m = s->model;
    return s->a.store.qk_raw + ((size_t)i * (m.heads + m.kv_heads) + (is_key ? m.heads : 0)) * m.head_dim;
}

/* Head h of row i's queries or keys. */
template <class Shared>
static __device__ __forceinline__ void
norm_head(Shared *s, uint32_t i, uint32_t h, bool is_key, const struct spread &whole)
{
    const struct dev_model &m = s->model;
    const struct dev_store &store = s->a.store;
    const uint32_t lane = thread_here() % WARP, base = h * m.head_dim;
    const float *const from = raw_heads(s, i, is_key) + base;
    const float *const weight = is_key ? layer_here(s).k_norm : layer_here(s).q_norm;
    const float2 *const turns = s->turns != NULL ? s->turns + i * (m.rope_dims / 2) : NULL;
    struct head_pairs head = {};
#pragma unroll
    for (int j = 0; j < LANE_PAIRS; j++)
        if (has_pair(m, lane + j * WARP)) {
            const uint2 d = dims_of_pair(m, lane + j * WARP);
            head.x[j] = make_float2(from[d.x], from[d.y]);
        }
    if (m.form.late_norms)
        rotate_pairs(m, turns, &head, lane);
    if (weight != NULL)
        norm_pairs(m, weight, m.form.whole_norms ? base : 0, whole, &head, lane);
    if (Shared::BENDS && m.form.whole_norms)
        clip_pairs(m.form.clip, &head);
    if (!m.form.late_norms)
        rotate_pairs(m, turns, &head, lane);
#pragma unroll
    for (int j = 0; j < LANE_PAIRS; j++) {
        if (!has_pair(m, lane + j * WARP))
            break;
        const uint2 d = dims_of_pair(m, lane + j * WARP);
        if (is_key) {
            put_kv(m, store, store.keys, s->l, row_of(s, i).slot, base + d.x, head.x[j].x);
            put_kv(m, store, store.keys, s->l, row_of(s, i).slot, base + d.y, head.x[j].y);
        } else {
            float *const q = store.q + (size_t)i * m.heads * m.head_dim + base;
            q[d.x] = head.x[j].x * m.form.attention_scale;
            q[d.y] = head.x[j].y * m.form.attention_scale;
        }
    }
}

/* Norms over all heads of a row: each block sums the row up for itself, and takes some of its heads. */
template <class Shared>
static __device__ __forceinline__ void
norm_whole_heads(Shared *s)
{
    const struct dev_model &m = s->model;
    const uint32_t warp = thread_here() / WARP, of_q = (m.heads + SWEEP_WARPS - 1) / SWEEP_WARPS,
                   of_k = (m.kv_heads + SWEEP_WARPS - 1) / SWEEP_WARPS;
    for (uint32_t u = blockIdx.x; u < s->a.n * (of_q + of_k); u += gridDim.x) {
        const uint32_t i = u / (of_q + of_k), part = u % (of_q + of_k);
        const bool is_key = part >= of_q;
        const uint32_t heads = is_key ? m.kv_heads : m.heads, h = (is_key ? part - of_q : part) * SWEEP_WARPS + warp;
        if (row_of(s, i).from >= s->l)
            continue;
        const struct spread whole = block_spread(m, raw_heads(s, i, is_key), heads * m.head_dim, s->parts);
        if (h < heads)
            norm_head(s, i, h, is_key, whole);
    }
}

template <class Shared>
static __device__ __forceinline__ void
norm_heads(Shared *s)
{
    const uint32_t q_heads = s->model.heads, heads = q_heads + s->model.kv_heads;
    if (s->model.form.whole_norms) {
        norm_whole_heads(s);
        return;
    }
    for (uint32_t u = thread_here() / WARP * gridDim.x + blockIdx.x; u < s->a.n * heads; u += gridDim.x * SWEEP_WARPS) {
        const uint32_t i = u / heads, h = u % heads;
        if (row_of(s, i).from < s->l)
            norm_head(s, i, h < q_heads ? h : h - q_heads, h >= q_heads, {0, 1});
    }
}

#endif
