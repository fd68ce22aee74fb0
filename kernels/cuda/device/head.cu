/* A head call: final norm and packing of hidden states, logits and their form, predictions (predictions.cu). */
#include "kernels/cuda/device/block.cuh"
#include "kernels/cuda/device/forms.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/matmul.cuh"
#include "kernels/cuda/device/norm.cuh"

/* The head for many rows: 33 and more, as probes of many layers are. What strip by strip (matmul.cuh) would read the
 * activations again for each strip is here a matrix product in tiles: a block takes TILE_STRIPS strips and TILE_TILES
 * tiles of 8 rows, its warps two strips and eight tiles each. Weights go from memory to registers, activations through
 * shared memory, two units at a time and two ahead.
 *
 * The bits are those of a strip: a share of units (there a warp's) is summed up from zero, the shares' sums are added in
 * their order. */

#define WARP_STRIPS  2
#define WARP_TILES   8
#define STRIP_WARPS  4 /* warps along strips */
#define TILE_WARPS   2 /* warps along rows */
#define TILE_STRIPS  (STRIP_WARPS * WARP_STRIPS)
#define TILE_TILES   (TILE_WARPS * WARP_TILES)
#define TILE_THREADS (STRIP_WARPS * TILE_WARPS * WARP)
#define STAGE_UNITS  (PAIR / UNIT)
#define STAGE_PARTS  (TILE_TILES * STAGE_UNITS * WARP) /* of 16 bytes */

/* Returns the end of the share of units that contains `unit`; `share` is that share or the one before it. */
static __device__ __forceinline__ uint32_t
share_end(uint32_t unit, uint32_t units, uint32_t *share)
{
    while ((*share + 1) * units / BLOCK_WARPS <= unit)
        ++*share;
    return (*share + 1) * units / BLOCK_WARPS;
}

/* Position of a thread's work in a block's tile: strips from `strip` on, the block's tiles from `own_tile` on. */
struct tile_place {
    uint32_t strip, own_tile;
    uint32_t first_tile, tiles; /* of the block; of all rows */
    uint32_t lane;
};

static __device__ __forceinline__ struct tile_place
tile_place_of(uint32_t n, uint32_t first_strip, uint32_t first_tile)
{
    const uint32_t warp = threadIdx.x / WARP;
    return {first_strip + warp % STRIP_WARPS * WARP_STRIPS, warp / STRIP_WARPS * WARP_TILES, first_tile,
            (n + TILE - 1) / TILE, threadIdx.x % WARP};
}

/* Starts the loads of the stage that begins with unit `first`: weights of STAGE units, and activations. */
template <enum weight_type T, uint32_t STAGE>
static __device__ __forceinline__ void
load_stage(const struct dev_matrix &m, const uint4 *x, const struct tile_place &at, uint32_t first,
           unit_of<T> (&next)[STAGE][WARP_STRIPS], uint4 (&coming)[STAGE_PARTS / TILE_THREADS])
{
    const uint32_t span = unit_of<T>::SPAN;
#pragma unroll
    for (uint32_t s = 0; s < WARP_STRIPS; s++) {
        const typename unit_of<T>::place from = unit_of<T>::place_of(m, at.strip + s, first, at.lane);
#pragma unroll
        for (uint32_t u = 0; u < STAGE; u++)
            next[u][s].load(from, u, first + u < m.units / span && at.strip + s < m.strips);
    }
#pragma unroll
    for (uint32_t i = 0; i < STAGE_PARTS / TILE_THREADS; i++) {
        const uint32_t part = i * TILE_THREADS + threadIdx.x, in_tile = part % (STAGE_UNITS * WARP),
                       tile = at.first_tile + part / (STAGE_UNITS * WARP);
        if (tile < at.tiles) /* a stage is always complete: layout.h, units_of() */
            coming[i] = x[((size_t)tile * m.units + first * span) * WARP + in_tile];
    }
}

/* Multiplies unit `u` of the stage in shared memory with its weights. */
template <enum weight_type T>
static __device__ __forceinline__ void
multiply_unit(unit_of<T> (&weights)[WARP_STRIPS], const uint4 *stage, const struct tile_place &at, uint32_t u,
              float (&sum)[WARP_STRIPS][WARP_TILES][4])
{
    const uint32_t span = unit_of<T>::SPAN;
#pragma unroll
    for (uint32_t j = 0; j < WARP_TILES; j++) {
        if (at.first_tile + at.own_tile + j >= at.tiles)
            break;
        uint4 b[span];
#pragma unroll
        for (uint32_t i = 0; i < span; i++)
            b[i] = stage[((at.own_tile + j) * STAGE_UNITS + u * span + i) * WARP + at.lane];
#pragma unroll
        for (uint32_t s = 0; s < WARP_STRIPS; s++)
            weights[s].add(b, sum[s][j]);
    }
}

/* Adds a share's sums to the total. */
static __device__ __forceinline__ void
end_share(float (&sum)[WARP_STRIPS][WARP_TILES][4], float (&total)[WARP_STRIPS][WARP_TILES][4])
{
#pragma unroll
    for (uint32_t s = 0; s < WARP_STRIPS; s++)
#pragma unroll
        for (uint32_t j = 0; j < WARP_TILES; j++)
#pragma unroll
            for (uint32_t i = 0; i < 4; i++) {
                total[s][j][i] += sum[s][j][i];
                sum[s][j][i] = 0;
            }
}

/* Writes this warp's outputs to y (n, m.rows). */
static __device__ __forceinline__ void
put_totals(const struct dev_matrix &m, const struct tile_place &at, uint32_t n, float factor,
           const float (&total)[WARP_STRIPS][WARP_TILES][4], float *y)
{
    const uint32_t g = at.lane / 4, c = at.lane % 4;
#pragma unroll
    for (uint32_t s = 0; s < WARP_STRIPS; s++)
#pragma unroll
        for (uint32_t half = 0; half < 2; half++) {
            const uint32_t packed = (at.strip + s) * STRIP + half * 8 + g;
            const uint32_t o = at.strip + s >= m.strips ? UINT32_MAX : m.source != NULL ? m.source[packed] : packed;
            if (o >= m.rows)
                continue;
#pragma unroll
            for (uint32_t j = 0; j < WARP_TILES; j++)
#pragma unroll
                for (uint32_t i = 0; i < 2; i++) {
                    const uint32_t row = (at.first_tile + at.own_tile + j) * TILE + 2 * c + i;
                    if (row < n)
                        y[(size_t)row * m.rows + o] = total[s][j][half * 2 + i] * factor;
                }
        }
}

/* Multiplies rows [8 first_tile, ...) of x (tiles * 8 rows) with strips from first_strip on; writes y (n, m.rows). */
template <enum weight_type T>
static __device__ __forceinline__ void
multiply_tile(const struct dev_matrix &m, const uint4 *x, uint32_t n, float *y, uint32_t first_strip,
              uint32_t first_tile, uint4 (*stage)[STAGE_PARTS])
{
    const uint32_t span = unit_of<T>::SPAN, stage_units = STAGE_UNITS / span; /* of weights, in a stage */
    const uint32_t units = m.units / span;
    const struct tile_place at = tile_place_of(n, first_strip, first_tile);
    float sum[WARP_STRIPS][WARP_TILES][4] = {}, total[WARP_STRIPS][WARP_TILES][4] = {};
    unit_of<T> now[stage_units][WARP_STRIPS] = {}, next[stage_units][WARP_STRIPS] = {};
    uint4 coming[STAGE_PARTS / TILE_THREADS];
    uint32_t share = 0;
    load_stage<T, stage_units>(m, x, at, 0, next, coming);
    for (uint32_t first = 0, buffer_index = 0; first < units; first += stage_units, buffer_index ^= 1) {
#pragma unroll
        for (uint32_t i = 0; i < STAGE_PARTS / TILE_THREADS; i++)
            stage[buffer_index][i * TILE_THREADS + threadIdx.x] = coming[i];
#pragma unroll
        for (uint32_t u = 0; u < stage_units; u++)
#pragma unroll
            for (uint32_t s = 0; s < WARP_STRIPS; s++)
                now[u][s] = next[u][s];
        __syncthreads(); /* the stage is complete, and the one before the last is no longer read */
        if (first + stage_units < units)
            load_stage<T, stage_units>(m, x, at, first + stage_units, next, coming);
#pragma unroll
        for (uint32_t u = 0; u < stage_units; u++) {
            multiply_unit<T>(now[u], stage[buffer_index], at, u, sum);
            if (first + u + 1 >= share_end(first + u, units, &share))
                end_share(sum, total);
        }
    }
    put_totals(m, at, n, unit_of<T>::FACTOR, total, y);
}

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
struct put_logits {
    float *logits; /* (rows, vocab) */
    size_t vocab;
    __device__ __forceinline__ void
    operator()(uint32_t, uint32_t row, uint32_t o0, uint32_t o1, float y0, float y1) const
    {
        if (o0 != UINT32_MAX)
            logits[row * vocab + o0] = y0;
        if (o1 != UINT32_MAX)
            logits[row * vocab + o1] = y1;
    }
};

static __device__ __forceinline__ struct product
head_product(const struct head_args &a)
{
    return {{&a.model->head}, 1, a.kv_cache.head_normed, a.n, false};
}

/* Up to NT tiles of rows; one block per multiprocessor, which process strips in turn. */
template <enum weight_type T, int NT>
__global__ void
__launch_bounds__(BLOCK_THREADS, 1) head_by_strips(struct head_args a)
{
    SHARED_MEMORY(float, shared);
    uint32_t buffer_index = 0;
    struct put_logits put = {a.kv_cache.head_logits, a.model->vocab};
    packed_strips<T, NT>(head_product(a), shared, &buffer_index, put);
}

/* Any number of rows of an exact model. */
__global__ void
__launch_bounds__(BLOCK_THREADS) head_exactly(struct head_args a)
{
    SHARED_MEMORY(float, shared);
    uint32_t buffer_index = 0;
    struct put_logits put = {a.kv_cache.head_logits, a.model->vocab};
    exact_product(head_product(a), PAIR_NONE, *a.model, shared, &buffer_index, put);
}

/* Any number of rows. Grid: (tiles of rows, tiles of strips), so that blocks that share weights run at the same
 * time. */
template <enum weight_type T>
__global__ void
__launch_bounds__(TILE_THREADS, 1) head_by_tiles(struct head_args a)
{
    __shared__ uint4 stage[2][STAGE_PARTS];
    multiply_tile<T>(a.model->head, (const uint4 *)a.kv_cache.head_normed, a.n, a.kv_cache.head_logits,
                     blockIdx.y * TILE_STRIPS, blockIdx.x * TILE_TILES, stage);
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
launch_logits(const struct head_args &a, const struct dev_matrix &m, cudaStream_t stream)
{
    const uint32_t tiles = (a.n + TILE - 1) / TILE;
    if (tiles == 1)
        return launch(head_by_strips<T, 1>, a.blocks, BLOCK_THREADS, a, stream, PRODUCT_SHARED);
    if (tiles == 2)
        return launch(head_by_strips<T, 2>, a.blocks, BLOCK_THREADS, a, stream, PRODUCT_SHARED);
    if (tiles <= PRODUCT_TILES)
        return launch(head_by_strips<T, PRODUCT_TILES>, a.blocks, BLOCK_THREADS, a, stream, PRODUCT_SHARED);
    const dim3 grid((tiles + TILE_TILES - 1) / TILE_TILES, (m.strips + TILE_STRIPS - 1) / TILE_STRIPS);
    return launch(head_by_tiles<T>, grid, TILE_THREADS, a, stream);
}

static cudaError_t
launch_any_logits(const struct head_args &a, const struct dev_model &sizes, cudaStream_t stream)
{
    if (sizes.exact)
        return launch(head_exactly, a.blocks, BLOCK_THREADS, a, stream, PRODUCT_SHARED);
    switch (sizes.head.type) {
    case WEIGHT_Q8_0: return launch_logits<WEIGHT_Q8_0>(a, sizes.head, stream);
    case WEIGHT_Q4_0: return launch_logits<WEIGHT_Q4_0>(a, sizes.head, stream);
    case WEIGHT_Q4_K: return launch_logits<WEIGHT_Q4_K>(a, sizes.head, stream);
    case WEIGHT_Q6_K: return launch_logits<WEIGHT_Q6_K>(a, sizes.head, stream);
    case WEIGHT_BF16: return launch_logits<WEIGHT_BF16>(a, sizes.head, stream);
    case WEIGHT_F16: return launch_logits<WEIGHT_F16>(a, sizes.head, stream);
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
    cudaError_t said = cudaSuccess;
    if (a.trained)
        said = launch(shift_head_rows, shifts, TRAINED_WARPS * WARP, a, stream);
    if (said == cudaSuccess)
        said = launch(norm_head_rows, a.n, BLOCK_THREADS, a, stream);
    if (said == cudaSuccess)
        said = launch_any_logits(a, *sizes, stream);
    if (said == cudaSuccess && a.trained)
        said = launch(full_head_rows, fulls, TRAINED_WARPS * WARP, a, stream);
    if (said == cudaSuccess && sizes->shapes_logits)
        said = launch(shape_logits, shapes, SHAPE_THREADS, a, stream);
    if (said != cudaSuccess || a.predictions == NULL)
        return said;
    struct prediction_args g = {};
    g.logits = a.kv_cache.head_logits;
    g.vocab = sizes->vocab;
    g.n = a.n;
    g.pieces = a.kv_cache.head_pieces;
    g.rows = a.rows;
    g.predictions = a.predictions;
    return launch_predictions(g, stream);
}
