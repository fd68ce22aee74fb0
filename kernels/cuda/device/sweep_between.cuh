/* The steps between products: norms, attention, what an early exit looks at. */
#ifndef KERNELS_CUDA_DEVICE_SWEEP_BETWEEN_CUH
#define KERNELS_CUDA_DEVICE_SWEEP_BETWEEN_CUH

#include "kernels/cuda/device/sweep_heads.cuh"
#include "kernels/cuda/device/sweep_route.cuh"
#include "kernels/cuda/device/sweep_steps.cuh"
#include "kernels/cuda/device/trained.cuh"

/* Turns of all rows, for some frequencies, times a gain, from number `first` on. */
static __device__ __forceinline__ void
put_turns(struct sweep_shared *s, const double *frequencies, float gain, uint32_t first)
{
    const uint32_t pairs = s->model.rope_dims / 2;
    float2 *const turns = (float2 *)s->a.store.turns + first;
    for (uint32_t u = blockIdx.x * SWEEP_THREADS + threadIdx.x; u < s->a.n * pairs; u += gridDim.x * SWEEP_THREADS) {
        const struct row &row = s->a.rows[u / pairs];
        const float2 turn = turn_of(row.n_trunk + row.n_tail - 1, frequencies[u % pairs]);
        turns[u] = make_float2(turn.x * gain, turn.y * gain);
    }
}

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
    put_turns(s, s->model.inv_freq, s->model.form.rope_gain, 0);
    if (s->model.inv_freq_local != NULL)
        put_turns(s, s->model.inv_freq_local, 1, s->a.store.max_rows * pairs);
    last = __reduce_max_sync(ALL_OF_WARP, last / ATTEND_SPLIT);
    if (threadIdx.x % WARP == 0)
        atomicMax(&s->last_split, last);
}

/* The hidden states of the rows that take part, normed. A block a row. */
static __device__ __forceinline__ void
norm_rows(struct sweep_shared *s, uint32_t depth, const struct dev_norm &norm)
{
    for (uint32_t i = blockIdx.x; i < s->a.n; i += gridDim.x) {
        const struct row &row = row_of(s, i);
        if (row.from < s->l)
            norm_row(s->model, hidden_of(s, row, depth), norm, s->a.store.normed, i, s->parts);
    }
}

/* hidden (l) = hidden (from) + what the sublayer adds, normed. A block a row. */
static __device__ __forceinline__ void
post_rows(struct sweep_shared *s, uint32_t from, const float *weight)
{
    const uint32_t width = s->model.width;
    const struct dev_norm norm = {weight, NULL};
    for (uint32_t i = blockIdx.x; i < s->a.n; i += gridDim.x) {
        const struct row &row = row_of(s, i);
        if (row.from >= s->l)
            continue;
        const float *const raw = s->a.store.raw + (size_t)i * width, *const before = hidden_of(s, row, from);
        float *const after = hidden_of(s, row, s->l);
        const struct spread spread = block_spread(s->model, raw, width, s->parts);
        for (uint32_t k = thread_here(); k < width; k += SWEEP_THREADS)
            after[k] = fmaf(s->model.form.residual_scale, normed(norm, spread, raw[k], k), before[k]);
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

template <class KV, int PAIRS, int DIMS, class Shared>
static __device__ __forceinline__ void
attend(Shared *s)
{
    const struct attend_scene scene = {&s->a,
                                       &s->model,
                                       s->l,
                                       s->last_split + 1,
                                       layer_here(s).window,
                                       s->a.n <= SPLIT_ROWS,
                                       Shared::MIXES ? layer_here(s).sinks : NULL,
                                       Shared::BENDS ? s->model.slopes : NULL};
    attend_rows<KV, PAIRS, DIMS>(scene, (struct attend_place *)s->work);
}

template <class Shared>
static __device__ __forceinline__ void
attend_all(Shared *s)
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

/* The state of row i of the product that comes; NULL: it takes no part. */
static __device__ __forceinline__ const float *
near_state(struct sweep_shared *s, uint32_t i)
{
    if (s->how.kind == FINISH_LOGITS)
        return probe_state(s);
    return row_of(s, i).from < s->l ? hidden_of(s, row_of(s, i), s->how.norm_depth) : NULL;
}

/* norm_near() of centred norms, and where there is none: once in the kernel, not once for each kind of product. */
static __device__ __forceinline__ void
norm_near_first(struct sweep_shared *s)
{
    const bool norms = s->how.norm.weight != NULL;
    uint16_t *const to = (uint16_t *)(s->work + NEAR_AT);
    for (uint32_t i = 0; i < s->product.n && norms; i++)
        if (near_state(s, i) != NULL)
            add_numbers(s->model, near_state(s, i), s->near_sums[i]);
    __syncthreads();
    for (uint32_t i = 0; i < s->product.n && norms; i++)
        if (near_state(s, i) != NULL)
            add_deviations(s->model, near_state(s, i), s->near_sums[i], s->near_parts[i]);
    __syncthreads();
    for (uint32_t i = 0; i < s->product.n; i++) {
        const float *const state = near_state(s, i);
        if (norms && state != NULL)
            put_centred(s->model, state, s->how.norm, s->near_sums[i], s->near_parts[i], to, i);
        else
            carry_near(s->model, state, to, i);
    }
    __syncthreads();
}

/* The rows of the product that comes, normed into this block's shared memory; rows that take no part are zero there. */
static __device__ __forceinline__ void
norm_near(struct sweep_shared *s)
{
    uint16_t *const to = (uint16_t *)(s->work + NEAR_AT);
    for (uint32_t i = 0; i < s->product.n; i++)
        if (near_state(s, i) != NULL)
            add_squares(s->model, near_state(s, i), s->near_parts[i]);
    __syncthreads();
    for (uint32_t i = 0; i < s->product.n; i++)
        put_near(s->model, near_state(s, i), s->how.norm.weight, s->near_parts[i], to, i);
    __syncthreads();
}

template <class Shared>
static __device__ __forceinline__ void
do_between(Shared *s)
{
    const struct dev_layer &layer = layer_here(s);
    if (s->step >= SHIFT_PROBE && s->before.step < SHIFT_PROBE && threadIdx.x == 0)
        s->probe_start = globaltimer();
    switch (s->step) {
    case NORM_ATTENTION: norm_rows(s, s->l - 1, {layer.attn_norm, layer.attn_norm_b}); break;
    case NORM_HEADS: norm_heads(s); break;
    case ATTEND: attend_all(s); break;
    case POST_ATTENTION: post_rows(s, s->l - 1, layer.attn_post); break;
    case NORM_MLP:
        if (Shared::MIXES && s->does.mixes)
            norm_for_router(s);
        else
            norm_rows(s, mlp_depth(s), mlp_norm(s, layer));
        break;
    case ROUTE:
        if (Shared::MIXES)
            route_rows(s);
        break;
    case POST_MLP: post_rows(s, s->does.attends ? s->l : s->l - 1, layer.ffn_post); break;
    case CARRY: carry_rows(s); break;
    case SHIFT_PROBE: shift_probe(s); break;
    case NORM_PROBE: norm_probe(s); break;
    }
}

#endif
