/* A head call: final norm and packing of hidden states, logits and their form, predictions (predictions.cu). */
#include "kernels/cuda/device/block.cuh"
#include "kernels/cuda/device/forms.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/matmul.cuh"
#include "kernels/cuda/device/norm.cuh"
#include "kernels/cuda/device/tile.cuh"

static __device__ __forceinline__ const float *
hidden_of(const struct head_args &a, const struct head_row &row)
{
    return a.kv_cache.hidden + ((size_t)row.ring * (a.model->n_layers + 1) + row.layer) * a.model->width;
}

/* One block per row. */
__global__ void
__launch_bounds__(BLOCK_THREADS) norm_head_rows(struct head_args a)
{
    __shared__ float parts[WARP];
    const struct head_row &row = a.rows[blockIdx.x];
    const struct dev_model &m = *a.model;
    const bool affine = row.trained && m.trained[row.layer].a != NULL;
    const float *const from = affine ? a.kv_cache.head_shifted + (size_t)blockIdx.x * m.width : hidden_of(a, row);
    norm_row(m, from, m.final_norm, a.kv_cache.head_normed, blockIdx.x, parts);
}

/* ---- trained heads ---- */

#define SHAPE_THREADS   256
#define TRAINED_WARPS   8
#define TRAINED_OUTPUTS 32 /* per block */

/* h + A h + b of rows whose layer has an affine head. Grid: (rows, blocks of outputs); one warp per output. */
__global__ void
__launch_bounds__(TRAINED_WARPS *WARP) shift_head_rows(struct head_args a)
{
    const struct head_row &row = a.rows[blockIdx.x];
    const struct dev_model &m = *a.model;
    if (!row.trained || m.trained[row.layer].a == NULL)
        return;
    const uint32_t first = blockIdx.y * TRAINED_OUTPUTS, last = min(first + TRAINED_OUTPUTS, m.width);
    for (uint32_t o = first + threadIdx.x / WARP; o < last; o += TRAINED_WARPS) {
        const float y = shifted(m.trained[row.layer], hidden_of(a, row), o, m.width);
        if (threadIdx.x % WARP == 0)
            a.kv_cache.head_shifted[(size_t)blockIdx.x * m.width + o] = y;
    }
}

/* Logits of rows whose layer has a full head of its own; they replace the LM head's. Grid as above. */
__global__ void
__launch_bounds__(TRAINED_WARPS *WARP) full_head_rows(struct head_args a)
{
    const struct head_row &row = a.rows[blockIdx.x];
    const struct dev_model &m = *a.model;
    if (!row.trained || m.trained[row.layer].full == NULL)
        return;
    const float *const h = hidden_of(a, row);
    const struct spread spread = warp_row_spread(m, h);
    const uint32_t first = blockIdx.y * TRAINED_OUTPUTS, last = min(first + TRAINED_OUTPUTS, m.vocab);
    for (uint32_t o = first + threadIdx.x / WARP; o < last; o += TRAINED_WARPS) {
        const float *const w = m.trained[row.layer].full + (size_t)o * m.width;
        float z = 0;
        for (uint32_t k = threadIdx.x % WARP; k < m.width; k += WARP)
            z = fmaf(w[k], normed(m.final_norm, spread, h[k], k), z);
        z = warp_sum(z);
        if (threadIdx.x % WARP == 0)
            a.kv_cache.head_logits[(size_t)blockIdx.x * m.vocab + o] = z;
    }
}

/* ---- logits ---- */

/* Stores the outputs of a strip. */
struct put_outputs {
    float *to;
    const struct row *rows; /* NULL: row i's outputs are at to + i * ld */
    size_t ld;
    __device__ __forceinline__ void
    operator()(uint32_t, uint32_t row, uint32_t o0, uint32_t o1, float y0, float y1) const
    {
        float *const y = to + (rows != NULL ? rows[row].ring : row) * ld;
        if (o0 != UINT32_MAX)
            y[o0] = y0;
        if (o1 != UINT32_MAX)
            y[o1] = y1;
    }
};

static __device__ __forceinline__ struct product
whole_product(const struct matrix_args &a)
{
    return {{a.matrix}, 1, a.x, a.n, false};
}

/* Up to NT tiles of rows; one block per multiprocessor, which process strips in turn. */
template <enum weight_type T, int NT>
__global__ void
__launch_bounds__(BLOCK_THREADS, 1) head_by_strips(struct matrix_args a)
{
    SHARED_MEMORY(float, shared);
    uint32_t buffer_index = 0;
    struct put_outputs put = {a.y, a.rows, a.ld};
    packed_strips<T, NT>(whole_product(a), shared, &buffer_index, put);
}

/* Any number of rows of an exact model. */
__global__ void
__launch_bounds__(BLOCK_THREADS) head_exactly(struct matrix_args a)
{
    SHARED_MEMORY(float, shared);
    uint32_t buffer_index = 0;
    struct put_outputs put = {a.y, a.rows, a.ld};
    exact_product(whole_product(a), PAIR_NONE, *a.model, shared, &buffer_index, put);
}

/* Any number of rows; one block per multiprocessor, which process tiles in turn. */
template <enum weight_type T>
__global__ void
__launch_bounds__(BLOCK_THREADS, 1) head_by_tiles(struct matrix_args a)
{
    SHARED_MEMORY(struct tile_shared, shared);
    struct put_outputs put = {a.y, a.rows, a.ld};
    all_tiles<T>(whole_product(a), shared, put);
}

/* Applies bias, scale and cap of logits, after all heads. Grid: (rows, blocks of logits). */
__global__ void
__launch_bounds__(SHAPE_THREADS) shape_logits(struct head_args a)
{
    const struct dev_model &m = *a.model;
    float *const logits = a.kv_cache.head_logits + (size_t)blockIdx.x * m.vocab;
    const uint32_t o = blockIdx.y * SHAPE_THREADS + threadIdx.x;
    if (o < m.vocab)
        logits[o] = shaped_logit(m, o, logits[o]);
}

/* ---- launches ---- */

template <enum weight_type T>
static cudaError_t
prepare(int device)
{
    uint32_t blocks;
    cudaError_t said = resident_blocks(head_by_strips<T, 1>, device, BLOCK_THREADS, PRODUCT_SHARED, &blocks);
    if (said == cudaSuccess)
        said = resident_blocks(head_by_strips<T, 2>, device, BLOCK_THREADS, PRODUCT_SHARED, &blocks);
    if (said == cudaSuccess)
        said = resident_blocks(head_by_strips<T, PRODUCT_TILES>, device, BLOCK_THREADS, PRODUCT_SHARED, &blocks);
    if (said == cudaSuccess)
        said = resident_blocks(head_by_tiles<T>, device, BLOCK_THREADS, sizeof(struct tile_shared), &blocks);
    return said;
}

cudaError_t
head_prepare(int device)
{
    uint32_t blocks;
    cudaError_t said = resident_blocks(head_exactly, device, BLOCK_THREADS, PRODUCT_SHARED, &blocks);
    if (said == cudaSuccess)
        said = prepare<WEIGHT_F16>(device);
    if (said == cudaSuccess)
        said = prepare<WEIGHT_BF16>(device);
    if (said == cudaSuccess)
        said = prepare<WEIGHT_Q8_0>(device);
    if (said == cudaSuccess)
        said = prepare<WEIGHT_Q4_0>(device);
    if (said == cudaSuccess)
        said = prepare<WEIGHT_Q4_K>(device);
    if (said == cudaSuccess)
        said = prepare<WEIGHT_Q6_K>(device);
    return said;
}

template <enum weight_type T>
static cudaError_t
launch_packed(const struct matrix_args &a, cudaStream_t stream)
{
    const uint32_t tiles = (a.n + TILE - 1) / TILE;
    if (tiles == 1)
        return launch(head_by_strips<T, 1>, a.blocks, BLOCK_THREADS, a, stream, PRODUCT_SHARED);
    if (tiles == 2)
        return launch(head_by_strips<T, 2>, a.blocks, BLOCK_THREADS, a, stream, PRODUCT_SHARED);
    if (tiles <= PRODUCT_TILES)
        return launch(head_by_strips<T, PRODUCT_TILES>, a.blocks, BLOCK_THREADS, a, stream, PRODUCT_SHARED);
    return launch(head_by_tiles<T>, a.blocks, BLOCK_THREADS, a, stream, sizeof(struct tile_shared));
}

cudaError_t
launch_product(struct matrix_args a, enum weight_type type, cudaStream_t stream)
{
    switch (type) {
    case WEIGHT_F32: return launch(head_exactly, a.blocks, BLOCK_THREADS, a, stream, PRODUCT_SHARED);
    case WEIGHT_Q8_0: return launch_packed<WEIGHT_Q8_0>(a, stream);
    case WEIGHT_Q4_0: return launch_packed<WEIGHT_Q4_0>(a, stream);
    case WEIGHT_Q4_K: return launch_packed<WEIGHT_Q4_K>(a, stream);
    case WEIGHT_Q6_K: return launch_packed<WEIGHT_Q6_K>(a, stream);
    case WEIGHT_BF16: return launch_packed<WEIGHT_BF16>(a, stream);
    case WEIGHT_F16: return launch_packed<WEIGHT_F16>(a, stream);
    default: return cudaErrorInvalidValue;
    }
}

cudaError_t
launch_head(struct head_args a, const struct dev_model *sizes, cudaStream_t stream)
{
    if (a.n == 0)
        return cudaSuccess;
    const dim3 shifts(a.n, (sizes->width + TRAINED_OUTPUTS - 1) / TRAINED_OUTPUTS),
        fulls(a.n, (sizes->vocab + TRAINED_OUTPUTS - 1) / TRAINED_OUTPUTS),
        shapes(a.n, (sizes->vocab + SHAPE_THREADS - 1) / SHAPE_THREADS);
    const struct matrix_args logits = {
        a.model, &a.model->head, a.kv_cache.head_normed, a.kv_cache.head_logits, NULL, a.n, sizes->vocab, a.blocks};
    cudaError_t said = cudaSuccess;
    if (a.trained)
        said = launch(shift_head_rows, shifts, TRAINED_WARPS * WARP, a, stream);
    if (said == cudaSuccess)
        said = launch(norm_head_rows, a.n, BLOCK_THREADS, a, stream);
    if (said == cudaSuccess)
        said = launch_product(logits, sizes->head.type, stream);
    if (said == cudaSuccess && a.trained)
        said = launch(full_head_rows, fulls, TRAINED_WARPS * WARP, a, stream);
    if (said == cudaSuccess && sizes->shapes_logits)
        said = launch(shape_logits, shapes, SHAPE_THREADS, a, stream);
    if (said != cudaSuccess || a.predictions == NULL)
        return said;
    struct prediction_args g = {};
    g.logits = a.kv_cache.head_logits;
    g.vocab = sizes->vocab;
    g.tokens = sizes->drafter.tokens;
    g.n = a.n;
    g.pieces = a.kv_cache.head_pieces;
    g.rows = a.rows;
    g.predictions = a.predictions;
    return launch_predictions(g, stream);
}
