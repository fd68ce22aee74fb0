/* Inputs of rows: embeddings from packed weights, and trunk tables. */
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/norm.cuh"
#include "kernels/cuda/device/units.cuh"

#define FEW_ROWS 64

struct embed_args {
    const struct dev_model *model;
    float *hidden;
    struct row rows[FEW_ROWS];
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
    float *to = a.hidden + (size_t)row.ring * (m.n_layers + 1) * m.width;
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
    slot_t slots[FEW_ROWS];
};

static __global__ void
__launch_bounds__(FEW_ROWS) write_trunk(struct trunk_args a)
{
    a.to[threadIdx.x] = a.slots[threadIdx.x];
}

extern "C" cudaError_t
launch_embed(const struct dev_model *model, struct dev_kv_cache kv_cache, const struct row *rows, size_t n,
             cudaStream_t stream)
{
    cudaError_t said = cudaSuccess;
    struct embed_args a = {model, kv_cache.hidden, {}};
    for (size_t done = 0; done < n && said == cudaSuccess; done += FEW_ROWS) {
        const uint32_t few = n - done < FEW_ROWS ? (uint32_t)(n - done) : FEW_ROWS;
        memcpy(a.rows, rows + done, few * sizeof *rows);
        said = launch(embed_rows, few, BLOCK_THREADS, a, stream);
    }
    return said;
}

extern "C" cudaError_t
launch_trunk(struct dev_kv_cache kv_cache, seq_t seq, uint32_t first, const slot_t *slots, size_t n,
             cudaStream_t stream)
{
    cudaError_t said = cudaSuccess;
    struct trunk_args a = {kv_cache.trunk + (size_t)seq * kv_cache.trunk_room + first, {}};
    for (size_t done = 0; done < n && said == cudaSuccess; done += FEW_ROWS, a.to += FEW_ROWS) {
        const uint32_t few = n - done < FEW_ROWS ? (uint32_t)(n - done) : FEW_ROWS;
        memcpy(a.slots, slots + done, few * sizeof *slots);
        said = launch(write_trunk, 1, few, a, stream);
    }
    return said;
}
