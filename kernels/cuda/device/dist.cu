/* Distributions over the vocabulary, and draws from them; one block for each. */
#include "kernels/cuda/device/dist.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/launch.h"

__global__ void
__launch_bounds__(BLOCK_THREADS) write_dists(struct dist_args a)
{
    __shared__ struct select_scratch scratch;
    const struct dev_set set = a.rows != NULL ? a.rows[blockIdx.x].set : dev_set{};
    const uint32_t n = set.number > 0 ? set.n : a.model->vocab;
    const struct dist_req *const r = &a.requests[blockIdx.x];
    const float *const z = a.kv_cache.head_logits + (size_t)blockIdx.x * a.model->vocab;
    float *const p = a.kv_cache.dists_p + (size_t)r->out * a.kv_cache.dists_vocab;
    const token_t *const tokens = a.model->drafter.tokens;
    const bool scattered = tokens != NULL || set.number > 0;
    const struct row_dist dist = measure_dist(z, n, &r->sampling, &scratch);
    for (uint32_t v = (scattered ? 0 : n) + threadIdx.x; v < a.kv_cache.dists_vocab; v += BLOCK_THREADS)
        p[v] = 0;
    if (scattered)
        __syncthreads();
    for (uint32_t v = threadIdx.x; v < n; v += BLOCK_THREADS)
        p[tokens != NULL ? (uint32_t)tokens[v] : set_token(&set, v)] = dist_p(&dist, z[v], v);
}

__global__ void
__launch_bounds__(BLOCK_THREADS) draw_tokens(struct draw_args a)
{
    __shared__ struct block_scratch scratch;
    const struct draw_req *const r = &a.requests[blockIdx.x];
    const uint32_t vocab = a.kv_cache.dists_vocab;
    const struct stored_p p = {a.kv_cache.dists_p + (size_t)r->from * vocab, r->without, r->n_without};
    token_t token;
    if (r->likeliest) {
        uint64_t best = 0;
        for (uint32_t v = threadIdx.x; v < vocab; v += BLOCK_THREADS) {
            const float pv = p(v);
            if (pv > 0)
                best = max_op()(best, rank_of(__float_as_uint(pv), v));
        }
        best = block_reduce(best, max_op(), &scratch);
        token = best == 0 ? TOKEN_NONE : (token_t)rank_id(best);
    } else {
        token = block_draw(p, vocab, &r->key, &scratch);
    }
    if (threadIdx.x == 0)
        *r->out = token;
}

cudaError_t
launch_dist(struct dist_args a, cudaStream_t stream)
{
    return launch(write_dists, a.n, BLOCK_THREADS, a, stream);
}

cudaError_t
launch_draw(struct draw_args a, cudaStream_t stream)
{
    return launch(draw_tokens, a.n, BLOCK_THREADS, a, stream);
}

/* Computes struct overlap (kernels/backend.h) of two distributions; one block for each request. */

__global__ void
__launch_bounds__(BLOCK_THREADS) compare_dists(struct overlap_args a)
{
    __shared__ struct block_scratch scratch;
    const uint32_t vocab = a.kv_cache.dists_vocab;
    const struct overlap_req *const r = &a.requests[blockIdx.x];
    const struct stored_p d = {a.kv_cache.dists_p + (size_t)r->d * vocab, NULL, 0},
                          c = {a.kv_cache.dists_p + (size_t)r->c * vocab, NULL, 0};
    const struct mass common = block_mass([=](uint32_t v) { return fminf(d(v), c(v)); }, vocab, &scratch);
    if (threadIdx.x != 0)
        return;
    const float dx = d((uint32_t)r->token), cx = c((uint32_t)r->token);
    r->out->similarity = (float)mass_value(common);
    r->out->acceptance = fminf(dx > 0 ? cx / dx : cx, 1.0f);
}

cudaError_t
launch_overlap(struct overlap_args a, cudaStream_t stream)
{
    return launch(compare_dists, a.n, BLOCK_THREADS, a, stream);
}
