/* The steps between products: norms, attention, what an early exit looks at. */
#ifndef KERNELS_CUDA_SWEEP_BETWEEN_CUH
#define KERNELS_CUDA_SWEEP_BETWEEN_CUH

#include "kernels/cuda/sweep_steps.cuh"
#include "kernels/cuda/trained.cuh"

/* Turns of all rows; where the longest path's last split is. */
static __device__ __forceinline__ void
look_at_rows(struct sweep_shared *s)
{
    const uint32_t pairs = s->model.rope_dims / 2;
    uint32_t last = 0;
    for (uint32_t i = threadIdx.x; i < s->a.n; i += SWEEP_THREADS) {
        const uint32_t position = row_of(s, i).n_trunk + row_of(s, i).n_tail - 1;
        last = position > last ? position : last;
    }
    for (uint32_t u = blockIdx.x * SWEEP_THREADS + threadIdx.x; u < s->a.n * pairs; u += gridDim.x * SWEEP_THREADS) {
        const struct row &row = s->a.rows[u / pairs];
        ((float2 *)s->a.store.turns)[u] = turn_of(row.n_trunk + row.n_tail - 1, s->model.inv_freq[u % pairs]);
    }
    last = __reduce_max_sync(ALL_OF_WARP, last / ATTEND_SPLIT);
    if (threadIdx.x % WARP == 0)
        atomicMax(&s->last_split, last);
}

/* The hidden states of the rows that take part, normed. A block a row. */
static __device__ __forceinline__ void
norm_rows(struct sweep_shared *s, uint32_t depth, const float *weight)
{
    for (uint32_t i = blockIdx.x; i < s->a.n; i += gridDim.x) {
        const struct row &row = row_of(s, i);
        if (row.from < s->l)
            norm_row(s->model, hidden_of(s, row, depth), weight, s->a.store.normed, i, s->parts);
    }
}

static __device__ __forceinline__ void
carry_rows(struct sweep_shared *s)
{
    for (uint32_t i = blockIdx.x; i < s->a.n; i += gridDim.x) {
        const struct row &row = row_of(s, i);
        const float *from = hidden_of(s, row, s->l - 1);
        float *to = hidden_of(s, row, s->l);
        for (uint32_t k = thread_here(); row.from < s->l && k < s->model.width; k += SWEEP_THREADS)
            to[k] = from[k];
    }
}

/* RMS norm over a head, then rotation: a warp a head. */
static __device__ __forceinline__ void
norm_head(struct sweep_shared *s, uint32_t i, uint32_t h)
{
    const uint32_t dim = s->model.head_dim, lane = thread_here() % WARP, rotated = s->model.rope_dims / 2;
    const struct dev_store &store = s->a.store;
    const bool is_key = h >= s->model.heads;
    const uint32_t base = (is_key ? h - s->model.heads : h) * dim;
    const float *from = is_key ? store.kv_raw + (size_t)i * 2 * s->model.kv_heads * dim + base
                               : store.q + (size_t)i * s->model.heads * dim + base;
    const float *weight = is_key ? layer_here(s).k_norm : layer_here(s).q_norm;
    float squares = 0;
    for (uint32_t d = lane; d < dim; d += WARP)
        squares = fmaf(from[d], from[d], squares);
    squares = warp_sum(squares);
    __syncwarp(); /* all has been read that is written below */
    const float inverse = weight != NULL ? 1.0f / sqrtf(squares / (float)dim + s->model.rms_eps) : 1;
    const float scale = 1.0f / sqrtf((float)dim);
    for (uint32_t p = lane; p < dim / 2; p += WARP) {
        const bool apart = p < rotated && s->model.rope == ROPE_HALVES;
        const uint32_t d0 = apart ? p : 2 * p, d1 = apart ? p + rotated : d0 + 1;
        float y0 = from[d0] * inverse, y1 = from[d1] * inverse;
        if (weight != NULL) {
            y0 *= weight[d0];
            y1 *= weight[d1];
        }
        if (p < rotated)
            rotate(((const float2 *)store.turns)[i * rotated + p], &y0, &y1);
        if (is_key) {
            put_kv(s->model, store, store.keys, s->l, row_of(s, i).slot, base + d0, y0);
            put_kv(s->model, store, store.keys, s->l, row_of(s, i).slot, base + d1, y1);
        } else { /* in place: a lane reads no other's */
            store.q[(size_t)i * s->model.heads * dim + base + d0] = y0 * scale;
            store.q[(size_t)i * s->model.heads * dim + base + d1] = y1 * scale;
        }
    }
}

static __device__ __forceinline__ void
norm_heads(struct sweep_shared *s)
{
    const uint32_t heads = s->model.heads + s->model.kv_heads;
    for (uint32_t u = thread_here() / WARP * gridDim.x + blockIdx.x; u < s->a.n * heads; u += gridDim.x * SWEEP_WARPS)
        if (row_of(s, u / heads).from < s->l)
            norm_head(s, u / heads, u % heads);
}

template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
attend(struct sweep_shared *s)
{
    const struct attend_scene scene = {&s->a, &s->model, s->l, s->last_split + 1, s->a.n <= SPLIT_ROWS};
    attend_rows<KV, PAIRS, DIMS>(scene, (struct attend_place *)s->work);
}

static __device__ __forceinline__ void
attend_all(struct sweep_shared *s)
{
    if (s->model.exact)
        attend<float, ATTEND_PAIRS / 2, 8>(s);
    else if (s->model.head_dim <= 128)
        attend<uint16_t, ATTEND_PAIRS, 4>(s);
    else
        attend<uint16_t, ATTEND_PAIRS / 2, 8>(s);
}

/* h + A h + b of the last row, all warps together. */
static __device__ __forceinline__ void
shift_probe(struct sweep_shared *s)
{
    const float *const h = hidden_of(s, s->a.rows[s->a.n - 1], s->l);
    for (uint32_t o = thread_here() / WARP * gridDim.x + blockIdx.x; o < s->model.width; o += gridDim.x * SWEEP_WARPS) {
        const float y = shifted(s->trained, h, o, s->model.width);
        if (threadIdx.x % WARP == 0)
            s->a.store.until_shifted[o] = y;
    }
}

/* What the final norm sees of the row that is probed. */
static __device__ __forceinline__ const float *
probe_state(struct sweep_shared *s)
{
    return s->does.shifts ? s->a.store.until_shifted : hidden_of(s, s->a.rows[s->a.n - 1], s->l);
}

static __device__ __forceinline__ void
norm_probe(struct sweep_shared *s)
{
    if (blockIdx.x == 0)
        norm_row_as(s->model, s->model.exact || s->trained.full != NULL, probe_state(s), s->model.final_norm,
                    s->a.store.until_normed, 0, s->parts);
}

/* The rows of the product that comes, normed into this block's shared memory; rows that take no part are zero there. */
static __device__ __forceinline__ void
norm_near(struct sweep_shared *s)
{
    const struct finish_how &how = s->how;
    uint16_t *const to = (uint16_t *)(s->work + NEAR_AT);
    const auto state = [&](uint32_t i) -> const float * {
        if (how.kind == FINISH_LOGITS)
            return probe_state(s);
        return row_of(s, i).from < s->l ? hidden_of(s, row_of(s, i), how.norm_depth) : NULL;
    };
    for (uint32_t i = 0; i < s->product.n; i++)
        if (state(i) != NULL)
            add_squares(s->model, state(i), s->near_parts[i]);
    __syncthreads();
    for (uint32_t i = 0; i < s->product.n; i++)
        put_near(s->model, state(i), how.norm, s->near_parts[i], to, i);
    __syncthreads();
}

static __device__ __forceinline__ void
do_between(struct sweep_shared *s)
{
    if (s->step >= SHIFT_PROBE && s->before.step < SHIFT_PROBE && threadIdx.x == 0)
        s->probe_start = globaltimer();
    switch (s->step) {
    case NORM_ATTENTION: norm_rows(s, s->l - 1, layer_here(s).attn_norm); break;
    case NORM_HEADS: norm_heads(s); break;
    case ATTEND: attend_all(s); break;
    case NORM_MLP: norm_rows(s, s->does.attends ? s->l : s->l - 1, layer_here(s).ffn_norm); break;
    case CARRY: carry_rows(s); break;
    case SHIFT_PROBE: shift_probe(s); break;
    case NORM_PROBE: norm_probe(s); break;
    }
}

#endif
