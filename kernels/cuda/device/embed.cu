/* Inputs of rows: embeddings from packed weights, and trunk tables. */
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/norm.cuh"
#include "kernels/cuda/device/units.cuh"

#define TRUNK_THREADS 256

struct embed_args {
    const struct dev_model *model;
    struct dev_kv_cache kv_cache;
    const struct row *rows;
};

/* One block per row. If embeddings are normed, a thread norms the values that it stored itself. */
static __global__ void
__launch_bounds__(BLOCK_THREADS) embed_rows(struct embed_args a)
{
    __shared__ float parts[WARP];
    const struct dev_model &m = *a.model;
    const struct row &row = a.rows[blockIdx.x];
    const uint32_t position = row.n_trunk + row.n_tail - 1;
    const float *const place =
        m.positions != NULL ? m.positions + (size_t)min(position, m.n_positions - 1) * m.width : NULL;
    float *to = a.kv_cache.hidden + (size_t)row.ring * (m.n_layers + 1) * m.width;
    for (uint32_t k = threadIdx.x; k < m.width; k += BLOCK_THREADS)
        to[k] = element(m.embedding, (uint32_t)row.token, k) * m.form.embedding_scale + (place != NULL ? place[k] : 0);
    if (m.embedding_norm.weight == NULL)
        return;
    const struct spread spread = block_spread(m, to, m.width, parts);
    for (uint32_t k = threadIdx.x; k < m.width; k += BLOCK_THREADS)
        to[k] = normed(m.embedding_norm, spread, to[k], k);
}

struct trunk_args {
    slot_t *to;
    const slot_t *from;
    uint32_t n;
};

static __global__ void
__launch_bounds__(TRUNK_THREADS) write_trunk(struct trunk_args a)
{
    const uint32_t i = blockIdx.x * TRUNK_THREADS + threadIdx.x;
    if (i < a.n)
        a.to[i] = a.from[i];
}

extern "C" cudaError_t
launch_embed(const struct dev_model *model, struct dev_kv_cache kv_cache, const struct row *rows, uint32_t n,
             cudaStream_t stream)
{
    const struct embed_args a = {model, kv_cache, rows};
    return launch(embed_rows, n, BLOCK_THREADS, a, stream);
}

extern "C" cudaError_t
launch_trunk(struct dev_kv_cache kv_cache, seq_t seq, uint32_t first, const slot_t *slots, uint32_t n, cudaStream_t stream)
{
    const struct trunk_args a = {kv_cache.trunk + (size_t)seq * kv_cache.trunk_room + first, slots, n};
    return launch(write_trunk, (n + TRUNK_THREADS - 1) / TRUNK_THREADS, TRUNK_THREADS, a, stream);
}
