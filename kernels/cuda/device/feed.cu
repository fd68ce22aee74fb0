/* The input of a drafter's rows (struct drafter_desc, kernels/backend.h): g from features, or from the previous rows;
 * then the pairs [norm(e); norm(g)], and the layer's input, or a block drafter's norm(g), from which a pass computes
 * keys and values (schedule_feed()). launch_product() computes the products. */
#include "kernels/cuda/device/block.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/norm.cuh"
#include "kernels/cuda/device/units.cuh"

#define FEATURES_MOST 32768.0f /* the largest feature that is packed in F16 */

static __device__ __forceinline__ float *
pair_of(const struct feed_args &a, uint32_t i)
{
    return a.kv_cache.pairs + (size_t)a.rows[i].ring * (2 * a.model->width + 1);
}

/* Returns the power of two by which features are divided, so that none is larger than FEATURES_MOST. It is 1 unless
 * they are unusually large. No feature is larger than the root of the sum of their squares. */
static __device__ float
feature_factor(const float *x, uint32_t n, struct block_scratch *scratch)
{
    float squares = 0;
    for (uint32_t k = threadIdx.x; k < n; k += BLOCK_THREADS)
        squares = fmaf(x[k], x[k], squares);
    const float most = sqrtf(block_reduce(squares, add_op(), scratch));
    return most > FEATURES_MOST && most < INFINITY ? ldexpf(1, ilogbf(most / FEATURES_MOST) + 1) : 1;
}

/* Norms row i's features and packs them as input of the projection. Without a projection g is the features, or the
 * output of the previous row. One block per row. */
static __global__ void
__launch_bounds__(BLOCK_THREADS) take_features(struct feed_args a)
{
    __shared__ struct block_scratch scratch;
    const struct dev_model &m = *a.model;
    const struct dev_drafter &d = m.drafter;
    const bool given = a.features != NULL, projects = given && d.projection.rows > 0;
    const uint32_t i = blockIdx.x, n = given ? d.features : m.width, part = given ? n / d.parts : n;
    const float *const from = given ? a.features + (size_t)i * n : hidden_at(&m, &a.kv_cache, a.before[i], 1);
    const struct dev_norm none = {NULL, NULL}, norm = given ? d.norm : d.output_normed ? m.final_norm : none;
    const bool norms = norm.weight != NULL;
    const float factor = projects && !norms ? feature_factor(from, n, &scratch) : 1;
    for (uint32_t at = 0; at < n; at += part) {
        const struct spread s = norms ? block_spread(m, from + at, part, &scratch) : spread{0, 1};
        for (uint32_t k = at + threadIdx.x; k < at + part; k += BLOCK_THREADS) {
            const float x = norms ? normed(norm, s, from[k], k) : from[k];
            if (projects)
                put_activation(a.kv_cache.normed, m.exact, n, i, k, x / factor);
            else
                a.kv_cache.raw[(size_t)i * n + k] = x;
        }
    }
    if (projects)
        put_padding(a.kv_cache.normed, m.exact, n, i);
    if (threadIdx.x == 0)
        pair_of(a, i)[2 * m.width] = factor;
}

/* Computes the pairs from g and packs them as input of `join`, or computes the layer's input. One block per row. Each
 * thread norms the values that it stored itself. */
static __global__ void
__launch_bounds__(BLOCK_THREADS) begin_rows(struct feed_args a)
{
    __shared__ struct block_scratch scratch;
    const struct dev_model &m = *a.model;
    const struct dev_drafter &d = m.drafter;
    const uint32_t i = blockIdx.x, width = m.width;
    const struct row &row = a.rows[i];
    float *const g = a.kv_cache.raw + (size_t)i * width, *const input = hidden_at(&m, &a.kv_cache, row.ring, 0);
    float *const of_token = pair_of(a, i), *const of_g = of_token + width;
    for (uint32_t k = threadIdx.x; k < width; k += BLOCK_THREADS) {
        of_token[k] = element(m.embedding, (uint32_t)row.token, k) * m.form.embedding_scale;
        of_g[k] = g[k] * of_token[2 * width];
    }
    const struct spread spread = block_spread(m, of_token, width, &scratch),
                        spread_g = block_spread(m, of_g, width, &scratch);
    for (uint32_t k = threadIdx.x; k < width; k += BLOCK_THREADS) {
        const float own = of_g[k];
        of_token[k] = normed(d.token_norm, spread, of_token[k], k);
        of_g[k] = normed(d.feature_norm, spread_g, own, k);
        if (!d.pairs) {
            put_activation(a.kv_cache.normed, m.exact, 2 * width, i, k, of_token[k]);
            put_activation(a.kv_cache.normed, m.exact, 2 * width, i, width + k, of_g[k]);
        } else
            input[k] = d.input_normed ? of_g[k] : own;
    }
    if (!d.pairs)
        put_padding(a.kv_cache.normed, m.exact, 2 * width, i);
}

/* Norms g as input of a block drafter's keys and values. One block per row. Each thread norms the values that it scaled
 * itself. */
static __global__ void
__launch_bounds__(BLOCK_THREADS) norm_features(struct feed_args a)
{
    __shared__ struct block_scratch scratch;
    const struct dev_model &m = *a.model;
    float *const g = a.kv_cache.raw + (size_t)blockIdx.x * m.width;
    const float factor = pair_of(a, blockIdx.x)[2 * m.width];
    for (uint32_t k = threadIdx.x; k < m.width; k += BLOCK_THREADS)
        g[k] *= factor;
    norm_row(m, m.exact, g, m.drafter.feature_norm, a.kv_cache.normed, blockIdx.x, &scratch);
}

cudaError_t
launch_feed(struct feed_args a, const struct dev_model *sizes, cudaStream_t stream)
{
    const struct dev_drafter &d = sizes->drafter, *const d_there = &a.model->drafter;
    const struct matrix_args projects = {a.model, &d_there->projection, a.kv_cache.normed, a.kv_cache.raw, NULL,
                                         a.n,     sizes->width,         a.blocks,          false,          {}};
    const struct matrix_args joins = {a.model,
                                      &d_there->join,
                                      a.kv_cache.normed,
                                      a.kv_cache.hidden,
                                      a.rows,
                                      a.n,
                                      (sizes->n_layers + 1) * sizes->width,
                                      a.blocks,
                                      false,
                                      {}};
    cudaError_t status = launch(take_features, a.n, BLOCK_THREADS, a, stream);
    if (status == cudaSuccess && a.features != NULL && d.projection.rows > 0)
        status = launch_product(projects, stream);
    if (status == cudaSuccess && d.block)
        return launch(norm_features, a.n, BLOCK_THREADS, a, stream);
    if (status == cudaSuccess)
        status = launch(begin_rows, a.n, BLOCK_THREADS, a, stream);
    if (status == cudaSuccess && !d.pairs)
        status = launch_product(joins, stream);
    return status;
}
