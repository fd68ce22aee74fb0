/* Inputs of rows: embeddings from packed weights, and trunk tables. Also time stamps between requests. */
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

/* Embeds one row per block. If embeddings are normed, each thread norms the values that it stored itself. */
static __global__ void
__launch_bounds__(BLOCK_THREADS) embed_rows(struct embed_args a)
{
    __shared__ struct block_scratch scratch;
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
    const struct spread spread = block_spread(m, to, m.width, &scratch);
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

/* Calls with(done, n) for FEW_ROWS elements at a time, until a launch fails. */
template <class With>
static cudaError_t
for_few(size_t n, With with)
{
    cudaError_t status = cudaSuccess;
    for (size_t done = 0; done < n && status == cudaSuccess; done += FEW_ROWS)
        status = with(done, n - done < FEW_ROWS ? (uint32_t)(n - done) : FEW_ROWS);
    return status;
}

cudaError_t
launch_embed(const struct dev_model *model, struct dev_kv_cache kv_cache, const struct row *rows, size_t n,
             cudaStream_t stream)
{
    struct embed_args a = {model, kv_cache.hidden, {}};
    return for_few(n, [&](size_t done, uint32_t few) {
        memcpy(a.rows, rows + done, few * sizeof *rows);
        return launch(embed_rows, few, BLOCK_THREADS, a, stream);
    });
}

cudaError_t
launch_trunk(struct dev_kv_cache kv_cache, seq_t seq, uint32_t first, const slot_t *slots, size_t n,
             cudaStream_t stream)
{
    struct trunk_args a = {NULL, {}};
    return for_few(n, [&](size_t done, uint32_t few) {
        a.to = kv_cache.trunk + (size_t)seq * kv_cache.trunk_room + first + done;
        memcpy(a.slots, slots + done, few * sizeof *slots);
        return launch(write_trunk, 1, few, a, stream);
    });
}

/* Records a time stamp between requests (profile.h). */

static __global__ void __launch_bounds__(1) stamp(uint64_t *to)
{
    *to = globaltimer();
}

cudaError_t
launch_stamp(uint64_t *to, cudaStream_t stream)
{
    return launch(stamp, 1, 1, to, stream);
}
