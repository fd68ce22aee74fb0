/* The steps between products: norms, attention, probes for early exits. */
#pragma once

#include "kernels/cuda/device/block.cuh"
#include "kernels/cuda/device/epilogue.cuh"
#include "kernels/cuda/device/forward_route.cuh"
#include "kernels/cuda/device/forward_state.cuh"
#include "kernels/cuda/device/norm.cuh"
#include "kernels/cuda/device/ptx.cuh"

/* Norms and rotation in models with query and key norms, in either order, as a separate step. One warp per head. */

#define LANE_PAIRS (MAX_HEAD_DIM / 2 / WARP)

/* Calls with(pair, number) for a lane's pairs of a head, that is numbers lane, lane + WARP, … */
template <class With>
static __device__ __forceinline__ void
for_pairs(const struct dev_model &m, float2 (&head)[LANE_PAIRS], With with)
{
    const uint32_t lane = thread_here() % WARP;
#pragma unroll
    for (uint32_t j = 0; j < LANE_PAIRS; j++)
        if (lane + j * WARP < m.head_dim / 2)
            with(head[j], lane + j * WARP);
}

static __device__ __forceinline__ struct spread
warp_spread(const struct dev_model &m, float2 (&head)[LANE_PAIRS])
{
    float mean = 0, squares = 0;
    if (m.form.layer_norm) {
        for_pairs(m, head, [&](const float2 &x, uint32_t) { mean += x.x + x.y; });
        mean = warp_sum(mean) / (float)m.head_dim;
    }
    for_pairs(m, head, [&](const float2 &x, uint32_t) {
        squares = fmaf(x.x - mean, x.x - mean, squares);
        squares = fmaf(x.y - mean, x.y - mean, squares);
    });
    return spread_of(m, mean, warp_sum(squares), m.head_dim);
}

static __device__ __forceinline__ const float *
raw_heads(const struct forward_state *s, uint32_t i, bool is_key)
{
    const struct dev_model &m = s->model;
    return s->a.kv_cache.qk_raw + ((size_t)i * (m.heads + m.kv_heads) + (is_key ? m.heads : 0)) * m.head_dim;
}

/* Norms head h of row i's queries or keys. whole: the spread of all heads together. */
template <class Shared>
static __device__ __forceinline__ void
norm_head(Shared *s, uint32_t i, uint32_t h, bool is_key, const struct spread &whole)
{
    const struct dev_model &m = s->model;
    const struct dev_kv_cache &kv_cache = s->a.kv_cache;
    const uint32_t base = h * m.head_dim;
    const float *const from = raw_heads(s, i, is_key) + base;
    const struct dev_norm norm = {is_key ? s->layer.k_norm : s->layer.q_norm, NULL};
    const float2 *const rotations = s->rotations != NULL ? s->rotations + i * (m.rope_dims / 2) : NULL;
    float2 head[LANE_PAIRS] = {};
    const auto turn = [&] {
        for_pairs(m, head, [&](float2 &x, uint32_t p) {
            if (rotations != NULL && p < m.rope_dims / 2)
                rotate(rotations[p], &x.x, &x.y);
        });
    };
    for_pairs(m, head, [&](float2 &x, uint32_t p) {
        const uint2 d = dims_of_pair(m, p);
        x = make_float2(from[d.x], from[d.y]);
    });
    if (m.form.late_norms)
        turn();
    if (norm.weight != NULL) {
        const struct spread spread = m.form.whole_norms ? whole : warp_spread(m, head);
        for_pairs(m, head, [&](float2 &x, uint32_t p) {
            const uint2 d = dims_of_pair(m, p);
            const uint32_t first = m.form.whole_norms ? base : 0;
            x = make_float2(normed(norm, spread, x.x, first + d.x), normed(norm, spread, x.y, first + d.y));
        });
    }
    if (Shared::RARE && m.form.whole_norms)
        for_pairs(m, head,
                  [&](float2 &x, uint32_t) { x = make_float2(clipped(m.form.clip, x.x), clipped(m.form.clip, x.y)); });
    if (!m.form.late_norms)
        turn();
    for_pairs(m, head, [&](const float2 &x, uint32_t p) {
        const uint2 d = dims_of_pair(m, p);
        if (is_key) {
            put_kv(m, kv_cache, kv_cache.keys, s->l, row_of(s, i).slot, base + d.x, x.x);
            put_kv(m, kv_cache, kv_cache.keys, s->l, row_of(s, i).slot, base + d.y, x.y);
        } else {
            float *const q = kv_cache.q + (size_t)i * m.heads * m.head_dim + base;
            q[d.x] = x.x * m.form.attention_scale;
            q[d.y] = x.y * m.form.attention_scale;
        }
    });
}

/* Norms 16 heads of a row at a time in each block. */
template <class Shared>
static __device__ __forceinline__ void
norm_heads(Shared *s)
{
    const struct dev_model &m = s->model;
    const uint32_t warp = thread_here() / WARP, of_q = s->a.feeds ? 0 : (m.heads + BLOCK_WARPS - 1) / BLOCK_WARPS,
                   of_k = (m.kv_heads + BLOCK_WARPS - 1) / BLOCK_WARPS;
    for (uint32_t u = blockIdx.x; u < s->a.n * (of_q + of_k); u += gridDim.x) {
        const uint32_t i = u / (of_q + of_k), part = u % (of_q + of_k);
        const bool is_key = part >= of_q;
        const uint32_t heads = is_key ? m.kv_heads : m.heads, h = (is_key ? part - of_q : part) * BLOCK_WARPS + warp;
        struct spread whole = {0, 1}; /* of all heads together */
        if (row_of(s, i).from >= s->l)
            continue;
        if (m.form.whole_norms)
            whole = block_spread(m, raw_heads(s, i, is_key), heads * m.head_dim, &s->scratch);
        if (h < heads)
            norm_head(s, i, h, is_key, whole);
    }
}

/* Early exit: the softmax of the last row, merged from all blocks. */

/* Merges the parts of each LANES adjacent lanes; every lane gets the result. */
template <int LANES = WARP>
static __device__ __forceinline__ void
add_lanes(struct softmax_part *all, float temperature)
{
#pragma unroll
    for (int apart = LANES / 2; apart > 0; apart /= 2)
        all->add(__shfl_xor_sync(ALL_OF_WARP, all->max, apart), __shfl_xor_sync(ALL_OF_WARP, all->sum, apart),
                 temperature);
}

/* Call before the grid's barrier: merges the parts of row 0's softmax in the block's threads. */
static __device__ __forceinline__ void
put_part(struct forward_state *s, struct softmax_part all)
{
    float2 *const parts = (float2 *)s->norm_parts;
    const uint32_t thread = thread_here();
    add_lanes(&all, s->temperature);
    if (thread % WARP == 0)
        parts[thread / WARP] = make_float2(all.max, all.sum);
    __syncthreads();
    if (thread >= WARP)
        return;
    all = {parts[thread % BLOCK_WARPS].x, parts[thread % BLOCK_WARPS].y};
    add_lanes<BLOCK_WARPS>(&all, s->temperature);
    if (thread == 0)
        ((float2 *)s->a.kv_cache.until_parts)[blockIdx.x] = make_float2(all.max, all.sum);
}

/* Returns whether the last row exits at layer l; all blocks get the same result. */
static __device__ __forceinline__ bool
leaves(struct forward_state *s, uint32_t l)
{
    const float temperature = s->a.until.temperature[l];
    struct softmax_part all = {};
    for (uint32_t b = thread_here() % WARP; b < gridDim.x; b += WARP) {
        const float2 part = __ldcg((const float2 *)s->a.kv_cache.until_parts + b);
        all.add(part.x, part.y, temperature);
    }
    add_lanes(&all, temperature);
    const float annealed = 1 / all.sum;
    const bool exited = annealed >= s->a.until.threshold[l];
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        struct until_state *state = s->a.until.state;
        state->probed[s->n_probes] = l;
        state->annealed[s->n_probes] = annealed;
        state->probes = s->n_probes + 1;
        state->exited = exited;
        state->probe_ns += globaltimer() - s->probe_start;
    }
    if (threadIdx.x == 0)
        s->n_probes++;
    return exited;
}

/* Stores the rotations of all rows for these frequencies, times a gain, from number `first` on. */
static __device__ __forceinline__ void
put_rotations(struct forward_state *s, const double *frequencies, float gain, uint32_t first)
{
    const uint32_t pairs = s->model.rope_dims / 2;
    float2 *const rotations = (float2 *)s->a.kv_cache.rotations + first;
    for (uint32_t u = blockIdx.x * BLOCK_THREADS + threadIdx.x; u < s->a.n * pairs; u += gridDim.x * BLOCK_THREADS) {
        const struct row &row = s->a.rows[u / pairs];
        const float2 rotation = rotation_of(row.n_trunk + row.n_tail - 1, frequencies[u % pairs]);
        rotations[u] = make_float2(rotation.x * gain, rotation.y * gain);
    }
}

/* Stores the rotations of all rows and finds the last split of the longest path. */
static __device__ __forceinline__ void
inspect_rows(struct forward_state *s)
{
    const uint32_t pairs = s->model.rope_dims / 2;
    uint32_t last = 0;
    for (uint32_t i = threadIdx.x; i < s->a.n; i += BLOCK_THREADS) {
        const uint32_t end = row_of(s, i).n_trunk + row_of(s, i).n_tail - 1 + row_of(s, i).n_after;
        last = end > last ? end : last;
    }
    put_rotations(s, s->model.inv_freq, s->model.form.rope_gain, 0);
    if (s->model.inv_freq_local != NULL)
        put_rotations(s, s->model.inv_freq_local, 1, s->a.kv_cache.max_rows * pairs);
    last = __reduce_max_sync(ALL_OF_WARP, last / ATTEND_SPLIT);
    if (threadIdx.x % WARP == 0)
        atomicMax(&s->last_split, last);
}

/* Norms the hidden states of the rows. copies: also stores them in F32 for a router, since products read halves. */
static __device__ __forceinline__ void
norm_rows(struct forward_state *s, const struct dev_norm &norm, bool copies)
{
    for_rows(s, [=](uint32_t i, const struct row &row) {
        norm_row(s->model, s->model.exact, hidden_of(s, row, s->now.depth), norm, s->a.kv_cache.normed, i, &s->scratch,
                 copies ? s->a.kv_cache.raw + (size_t)i * s->model.width : NULL);
    });
}

/* Packs the pairs that a drafter's q, k and v read (feed.cu). */
static __device__ __forceinline__ void
take_pairs(struct forward_state *s)
{
    const uint32_t cols = 2 * s->model.width;
    for_rows(s, [=](uint32_t i, const struct row &row) {
        const float *const from = s->a.kv_cache.pairs + (size_t)row.ring * (cols + 1);
        for (uint32_t k = thread_here(); k < cols; k += BLOCK_THREADS)
            put_activation(s->a.kv_cache.normed, s->model.exact, cols, i, k, from[k]);
        put_padding(s->a.kv_cache.normed, s->model.exact, cols, i);
    });
}

/* hidden (l) = hidden (depth) + the normed output of the sublayer. */
static __device__ __forceinline__ void
post_rows(struct forward_state *s, const float *weight)
{
    const uint32_t width = s->model.width;
    const struct dev_norm norm = {weight, NULL};
    for_rows(s, [=](uint32_t i, const struct row &row) {
        const float *const raw = s->a.kv_cache.raw + (size_t)i * width, *const before = hidden_of(s, row, s->now.depth);
        float *const after = hidden_of(s, row, s->l);
        const struct spread spread = block_spread(s->model, raw, width, &s->scratch);
        for (uint32_t k = thread_here(); k < width; k += BLOCK_THREADS)
            after[k] = fmaf(s->model.form.residual_scale, normed(norm, spread, raw[k], k), before[k]);
    });
}

static __device__ __forceinline__ void
copy_rows(struct forward_state *s)
{
    for_rows(s, [=](uint32_t, const struct row &row) {
        const float *from = hidden_of(s, row, s->l - 1);
        float *to = hidden_of(s, row, s->l);
        for (uint32_t k = thread_here(); k < s->model.width; k += BLOCK_THREADS)
            to[k] = from[k];
    });
}

template <class KV, int PAIRS, int DIMS, class Shared>
static __device__ __forceinline__ void
attend(Shared *s)
{
    const uint32_t share = s->model.heads / s->model.kv_heads, splits = s->last_split + 1;
    const uint32_t jobs = (s->a.n * share + PAIRS - 1) / PAIRS * s->model.kv_heads * splits;
    const bool most_have_one = s->a.n > QUARTER_ROWS || 2 * jobs > gridDim.x; /* most blocks have a split */
    const uint32_t part = most_have_one ? ATTEND_SPLIT : ATTEND_QUARTER;
    const struct attend_scene scene = {&s->a,
                                       &s->model,
                                       s->l,
                                       part,
                                       ATTEND_SPLIT / part * splits,
                                       s->layer.window,
                                       s->a.n <= SPLIT_ROWS,
                                       Shared::RARE ? s->layer.sinks : NULL,
                                       Shared::RARE ? s->model.slopes : NULL,
                                       s->layer.causal};
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

/* Computes h + A h + b of the last row, with all warps. */
static __device__ __forceinline__ void
shift_probe(struct forward_state *s)
{
    const float *const h = hidden_of(s, s->a.rows[s->a.n - 1], s->l);
    for (uint32_t o = thread_here() / WARP * gridDim.x + blockIdx.x; o < s->model.width; o += gridDim.x * BLOCK_WARPS) {
        const float y = shifted(s->trained, h, o, s->model.width);
        if (threadIdx.x % WARP == 0)
            s->a.kv_cache.head_shifted[o] = y;
    }
}

/* Returns the input of the final norm for the probed row. */
static __device__ __forceinline__ const float *
probe_state(struct forward_state *s)
{
    return s->trained.a != NULL ? s->a.kv_cache.head_shifted : hidden_of(s, s->a.rows[s->a.n - 1], s->l);
}

static __device__ __forceinline__ void
norm_probe(struct forward_state *s)
{
    if (blockIdx.x == 0)
        norm_row(s->model, s->model.exact || s->trained.full != NULL, probe_state(s), s->model.final_norm,
                 s->a.kv_cache.head_normed, 0, &s->scratch);
}

/* Returns the state of row i of the next product; NULL: the row takes no part, or there is none. */
static __device__ __forceinline__ const float *
smem_source(struct forward_state *s, uint32_t i)
{
    if (s->entry.kind == EPILOGUE_LOGITS)
        return i < s->product.n ? probe_state(s) : NULL;
    return i < s->product.n && row_of(s, i).from < s->l ? hidden_of(s, row_of(s, i), s->now.depth) : NULL;
}

/* Norms the rows of the next product into this block's shared memory; rows that take no part are zero. by_squares: the
 * norm needs only the sum of squares. The code for other norms, and for rows without a norm, is compiled once, not once
 * for each kind of product. */
static __device__ __forceinline__ void
norm_to_smem(struct forward_state *s, bool by_squares)
{
    const struct dev_norm norm = {s->entry.norm.weight, by_squares ? NULL : s->entry.norm.bias};
    const bool norms = by_squares || norm.weight != NULL;
    const uint32_t n = s->product.n;
    add_norm_sums(s, norms ? n : 0, !by_squares, [=](uint32_t i) { return smem_source(s, i); });
    for (uint32_t i = 0; i < n; i += 2) {
        struct spread spreads[2] = {};
        if (norms)
            spreads[0] = smem_spread(s, !by_squares, i), spreads[1] = smem_spread(s, !by_squares, i + 1);
        put_smem(s->model, smem_source(s, i), smem_source(s, i + 1), norms, norm, spreads,
                 (uint16_t *)(s->work + SMEM_AT), i, n);
    }
    __syncthreads();
}

template <class Shared>
static __device__ __forceinline__ void
do_elementwise(Shared *s)
{
    const struct dev_layer &layer = s->layer;
    if (s->now.probing && threadIdx.x == 0)
        s->probe_start = globaltimer();
    switch (s->step) {
    case NORM_ATTENTION:
        if (Shared::RARE && s->model.drafter.pairs)
            take_pairs(s);
        else
            norm_rows(s, {layer.attn_norm, layer.attn_norm_b}, false);
        break;
    case NORM_HEADS: norm_heads(s); break;
    case ATTEND: attend_all(s); break;
    case POST_ATTENTION: post_rows(s, layer.attn_post); break;
    case NORM_MLP: norm_rows(s, mlp_norm(s), Shared::RARE && layer.has_experts); break;
    case ROUTE:
        if (Shared::RARE)
            route_rows(s);
        break;
    case POST_MLP: post_rows(s, layer.ffn_post); break;
    case CARRY: copy_rows(s); break;
    case SHIFT_PROBE: shift_probe(s); break;
    case NORM_PROBE: norm_probe(s); break;
    }
}
