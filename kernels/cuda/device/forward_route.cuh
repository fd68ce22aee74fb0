/* The routing step of a layer with experts. All warps compute the router's logits, in F32. The last block to finish
 * chooses each row's experts and builds the list of expert rows. */
#pragma once

#include "kernels/cuda/device/forward_state.cuh"
#include "kernels/cuda/device/route.cuh"

struct order_place { /* shared memory of a block: the number of rows of each expert, then the index of its next row */
    uint32_t next[MOST_EXPERTS], alone[WARP];
};

struct route_shared {
    struct route_place choosing[BLOCK_WARPS];
    struct order_place ordering;
};
static_assert(sizeof(struct route_shared) <= WORK_SHARED, "a block's shared memory");

/* ---- logits ---- */

/* Norms n rows, up to a tile, with all warps (norm.cuh), beginning with the sums. layer_norm: of numbers, too.
 * source(i) returns row i, or NULL if it takes no part or does not exist. */

static __device__ __forceinline__ float
smem_sum(const float *sums)
{
    return warp_reduce<BLOCK_WARPS>(sums[thread_here() % BLOCK_WARPS], add_op());
}

static __device__ __forceinline__ float
smem_mean(const struct forward_state *s, bool layer_norm, uint32_t i)
{
    return layer_norm ? smem_sum(s->norm_sums[i]) / (float)s->model.width : 0;
}

static __device__ __forceinline__ struct spread
smem_spread(const struct forward_state *s, bool layer_norm, uint32_t i)
{
    return spread_of(s->model, smem_mean(s, layer_norm, i), smem_sum(s->norm_parts[i]), s->model.width);
}

template <class Source>
static __device__ __forceinline__ void
add_norm_sums(struct forward_state *s, uint32_t n, bool layer_norm, Source source)
{
    for (uint32_t i = 0; i < n && layer_norm; i += 2)
        add_terms(s->model, source(i), source(i + 1), &s->norm_sums[i],
                  [](float sum, float x, bool) { return sum + x; });
    if (layer_norm)
        __syncthreads();
    for (uint32_t i = 0; i < n; i += 2) {
        const float mean = smem_mean(s, layer_norm, i), mean_second = smem_mean(s, layer_norm, i + 1);
        add_terms(s->model, source(i), source(i + 1), &s->norm_parts[i], [=](float sum, float x, bool second) {
            const float apart = x - (second ? mean_second : mean);
            return fmaf(apart, apart, sum);
        });
    }
    __syncthreads();
}

/* Computes the router's logits of rows that an earlier step normed, or that each block norms itself. */
static __device__ __forceinline__ void
put_router_logits(struct forward_state *s)
{
    const struct dev_model &m = s->model;
    const struct dev_kv_cache &kv_cache = s->a.kv_cache;
    const struct dev_norm none = {NULL, NULL}, norm = s->now.in_smem ? mlp_norm(s) : none;
    const bool norms = norm.weight != NULL;
    const uint32_t experts = m.form.experts.n, outputs = experts + (s->layer.shared_mix != NULL ? 1 : 0);
    const auto source = [=](uint32_t i) {
        return i >= s->a.n       ? NULL
               : !s->now.in_smem ? kv_cache.raw + (size_t)i * m.width
                                 : hidden_of(s, row_of(s, i), s->now.depth);
    };
    if (norms)
        add_norm_sums(s, s->a.n, m.form.layer_norm, source);
    for (uint32_t u = thread_here() / WARP * gridDim.x + blockIdx.x; u < s->a.n * outputs;
         u += gridDim.x * BLOCK_WARPS) {
        const uint32_t i = u / outputs, e = u % outputs;
        const float *const weights = e < experts ? moe_here(s).router + (size_t)e * m.width : s->layer.shared_mix;
        if (row_of(s, i).from >= s->l)
            continue;
        const struct spread own = norms ? smem_spread(s, m.form.layer_norm, i) : spread{0, 1};
        const float *const x = source(i);
        float z = 0;
#pragma unroll 8
        for (uint32_t k = thread_here() % WARP; k < m.width; k += WARP)
            z = fmaf(weights[k], norms ? normed(norm, own, x[k], k) : x[k], z);
        z = warp_sum(z);
        if (thread_here() % WARP == 0)
            kv_cache.router_logits[(size_t)i * (experts + 1) + e] = z;
    }
}

/* ---- the choice, by the block that finishes last ---- */

static __device__ __forceinline__ void
choose_all(struct forward_state *s, struct route_shared *shared)
{
    const struct experts_form &f = s->model.form.experts;
    const struct dev_layer &layer = s->layer;
    const uint32_t warp = thread_here() / WARP;
    for (uint32_t i = warp; i < s->a.n; i += BLOCK_WARPS)
        if (row_of(s, i).from < s->l)
            choose_experts(f, s->a.kv_cache.router_logits + (size_t)i * (f.n + 1), layer.brouter, layer.correction,
                           &shared->choosing[warp], s->a.kv_cache.routes + (size_t)i * f.used);
}

/* Calls with(row, k, route) for all routes of rows that take part, with all threads. */
template <class With>
static __device__ __forceinline__ void
for_routes(struct forward_state *s, With with)
{
    const uint32_t used = s->model.form.experts.used;
    for (uint32_t u = thread_here(); u < s->a.n * used; u += BLOCK_THREADS)
        if (row_of(s, u / used).from < s->l)
            with(u / used, u % used, s->a.kv_cache.routes[u]);
}

/* Copies the routes to the results. */
static __device__ __forceinline__ void
copy_routes(struct forward_state *s)
{
    const uint32_t used = s->model.form.experts.used, depths = s->model.n_layers + 1;
    for_routes(s, [=](uint32_t i, uint32_t k, const struct route &r) {
        s->a.routes_out[((size_t)i * depths + s->l) * used + k] = r;
    });
}

/* ---- the list of expert rows ---- */

/* Lists the experts that have rows, with the index of their first row; called by a warp. */
static __device__ __forceinline__ void
list_experts(struct forward_state *s, struct order_place *order)
{
    const uint32_t lane = thread_here() % WARP, experts = s->model.form.experts.n;
    struct expert_list *const expert_list = s->a.kv_cache.expert_list;
    uint32_t n = 0, expert_rows = 0, most = 0;
    for (uint32_t first = 0; first < experts; first += WARP) {
        const uint32_t e = first + lane, own = e < experts ? order->next[e] : 0;
        const uint32_t listed = __ballot_sync(ALL_OF_WARP, own > 0);
        uint32_t before = own; /* includes this lane's number */
#pragma unroll
        for (uint32_t apart = 1; apart < WARP; apart *= 2) {
            const uint32_t lower = __shfl_up_sync(ALL_OF_WARP, before, apart);
            before += lane >= apart ? lower : 0;
        }
        if (own > 0)
            expert_list->experts[n + (uint32_t)__popc(listed & ((1u << lane) - 1))] = {e, expert_rows + before - own,
                                                                                       own};
        if (e < experts)
            order->next[e] = expert_rows + before - own;
        n += (uint32_t)__popc(listed);
        expert_rows += __shfl_sync(ALL_OF_WARP, before, WARP - 1);
        most = own > most ? own : most;
    }
    most = __reduce_max_sync(ALL_OF_WARP, most);
    if (lane == 0) {
        expert_list->n = n;
        expert_list->most = most;
        if (s->a.touched != NULL)
            s->a.touched[s->l] = n;
    }
}

/* Adds the rows of the shared expert, if there is one, after the room for the other rows; called by one warp. */
static __device__ __forceinline__ void
list_rows(struct forward_state *s)
{
    const struct experts_form &f = s->model.form.experts;
    const struct dev_kv_cache &kv_cache = s->a.kv_cache;
    const uint32_t lane = thread_here() % WARP, begin = s->a.n * f.used;
    const bool weighed = s->layer.shared_mix != NULL;
    uint32_t rows = 0;
    for (uint32_t first = 0; first < s->a.n; first += WARP) {
        const uint32_t i = first + lane;
        const bool there = i < s->a.n && row_of(s, i).from < s->l;
        const uint32_t all = __ballot_sync(ALL_OF_WARP, there);
        if (there && f.shared_ffn > 0)
            kv_cache.expert_rows[begin + rows + (uint32_t)__popc(all & ((1u << lane) - 1))] = {
                i, f.n, weighed ? 1 / (1 + expf(-kv_cache.router_logits[(size_t)i * (f.n + 1) + f.n])) : 1, ROW_LAST};
        rows += (uint32_t)__popc(all);
    }
    if (lane == 0) {
        kv_cache.expert_list->rows = rows;
        kv_cache.expert_list->alone = {f.n, begin, rows};
    }
}

/* Orders rows by expert. The order of an expert's rows is arbitrary and does not affect results. */
static __device__ __forceinline__ void
order_expert_rows(struct forward_state *s, struct order_place *order)
{
    const struct experts_form &f = s->model.form.experts;
    const uint32_t thread = thread_here();
    for (uint32_t e = thread; e < f.n; e += BLOCK_THREADS)
        order->next[e] = 0;
    __syncthreads(); /* routes are also complete */
    if (s->a.routes_out != NULL)
        copy_routes(s);
    for_routes(s, [=](uint32_t, uint32_t, const struct route &r) { atomicAdd(&order->next[r.expert], 1u); });
    __syncthreads();
    if (thread < WARP)
        list_experts(s, order);
    else if (thread < 2 * WARP)
        list_rows(s);
    __syncthreads();
    struct expert_row *const expert_rows = s->a.kv_cache.expert_rows;
    const bool alone = f.shared_ffn == 0;
    const uint32_t used = f.used;
    for_routes(s, [=](uint32_t i, uint32_t k, const struct route &r) {
        const uint32_t at = atomicAdd(&order->next[r.expert], 1u);
        expert_rows[at] = {i, r.expert, r.weight, (k == 0 ? ROW_FIRST : 0) | (alone && k + 1 == used ? ROW_LAST : 0)};
    });
}

static __device__ __forceinline__ void
route_rows(struct forward_state *s)
{
    struct route_shared *const shared = (struct route_shared *)s->work;
    put_router_logits(s);
    __syncthreads();
    if (!is_last(&s->a.kv_cache.expert_list->arrived, gridDim.x - 1))
        return;
    choose_all(s, shared);
    order_expert_rows(s, &shared->ordering);
}
