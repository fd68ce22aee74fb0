/* A head call: final norm and packing of hidden states, logits and their form, predictions (predictions.cu). */
#include "kernels/cuda/device/block.cuh"
#include "kernels/cuda/device/forms.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/matmul.cuh"
#include "kernels/cuda/device/norm.cuh"
#include "kernels/cuda/device/tile.cuh"

/* Norms and packs one row per block. The norm of a row with a full head is also stored in F32. */
__global__ void
__launch_bounds__(BLOCK_THREADS) norm_head_rows(struct head_args a)
{
    __shared__ struct block_scratch scratch;
    const struct head_row &row = a.rows[blockIdx.x];
    const struct dev_model &m = *a.model;
    const struct dev_head trained = row.trained ? m.trained[row.layer] : dev_head{NULL, NULL, NULL};
    float *const shifted = a.kv_cache.head_shifted + (size_t)blockIdx.x * m.width;
    const float *const from = trained.a != NULL ? shifted : hidden_at(&m, &a.kv_cache, row.ring, row.layer);
    norm_row(m, m.exact, from, m.final_norm, a.kv_cache.head_normed, blockIdx.x, &scratch,
             trained.full != NULL ? shifted : NULL);
}

/* ---- trained heads ---- */

#define TRAINED_WARPS   8
#define TRAINED_OUTPUTS 32 /* per block */

/* Computes the rows whose layer has an affine head h + A h + b, before the norm. If `full`, it computes the logits of
 * rows whose layer has a full head, which replace those of the LM head. Grid: (rows, blocks of outputs); one warp per
 * output. */
template <bool FULL>
__global__ void
__launch_bounds__(TRAINED_WARPS *WARP) trained_rows(struct head_args a)
{
    const struct head_row &row = a.rows[blockIdx.x];
    const struct dev_model &m = *a.model;
    const uint32_t n = !FULL ? m.width : row.set.number > 0 ? row.set.n : m.vocab, first = blockIdx.y * TRAINED_OUTPUTS;
    if (!row.trained)
        return;
    const struct dev_head head = m.trained[row.layer];
    float *const shifted_row = a.kv_cache.head_shifted + (size_t)blockIdx.x * m.width,
                 *const to = FULL ? a.kv_cache.head_logits + (size_t)blockIdx.x * m.vocab : shifted_row;
    const float *const h = FULL ? shifted_row : hidden_at(&m, &a.kv_cache, row.ring, row.layer);
    for (uint32_t o = first + threadIdx.x / WARP;
         (FULL ? head.full : head.a) != NULL && o < min(first + TRAINED_OUTPUTS, n); o += TRAINED_WARPS) {
        const uint32_t token = FULL ? set_token(&row.set, o) : o;
        float y = FULL ? warp_dot(head.full + (size_t)token * m.width, h, m.width) : shifted(head, h, o, m.width);
        if (FULL && m.shapes_logits)
            y = shaped_logit(m, token, y);
        if (threadIdx.x % WARP == 0)
            to[o] = y;
    }
}

/* ---- logits ---- */

/* Stores the outputs of a strip. */
struct put_outputs {
    float *to;
    const struct row *rows; /* NULL: row i's outputs are at to + i * ld */
    size_t ld;
    const struct dev_model *logits; /* the outputs are logits of the model, which get its form; or NULL */
    const struct head_part *part;   /* the product is part of a head call; or NULL */
    const struct head_row *heads;   /* rows of the call, */
    uint32_t skipped;               /* of which the product begins with this one, in a tile that contains part->first */
    __device__ __forceinline__ void
    put(float *y, const struct dev_set *set, uint32_t o, float value) const
    {
        if (o == UINT32_MAX)
            return;
        if (set != NULL && set->number > 0) {
            if (part->recent)
                o += set->base;
            else if (o >= set->base)
                return;
        }
        y[o] = logits != NULL ? shaped_logit(*logits, set != NULL ? set_token(set, o) : o, value) : value;
    }
    __device__ __forceinline__ void
    operator()(uint32_t, uint32_t row, uint32_t o0, uint32_t o1, float y0, float y1) const
    {
        row += skipped;
        if (part != NULL && row < part->first)
            return;
        float *const y = to + (rows != NULL ? rows[row].ring : row) * ld;
        const struct dev_set *const set = part != NULL ? &heads[row].set : NULL;
        put(y, set, o0, y0);
        put(y, set, o1, y1);
    }
};

/* Multiplies one matrix with any number of rows; one block per multiprocessor. */
template <enum weight_type T>
static __device__ __forceinline__ void
multiply_as(const struct product &p, float *shared, struct put_outputs &put)
{
    const auto nothing = [] {};
    if (p.n <= TILE)
        all_strips<T, 1, false>(block_rows<false, 1>(p), shared, nothing, put);
    else if (p.n <= 2 * TILE)
        all_strips<T, 2, false>(block_rows<false, 2>(p), shared, nothing, put);
    else if (p.n <= PASS_ROWS)
        all_strips<T, PRODUCT_TILES, false>(block_rows<false, PRODUCT_TILES>(p), shared, nothing, put);
    else
        all_tiles<T>(p, (struct tile_shared *)shared, put);
}

/* Computes the product of a matrix and all rows; or, one after the other, those of the parts of a head call. A part may
 * begin inside of a tile of rows: the outputs of the tile's other rows are dropped. */
__global__ void
__launch_bounds__(BLOCK_THREADS, 1) multiply_matrix(struct matrix_args a)
{
    SHARED_MEMORY(float, shared);
    struct put_outputs put = {a.y, a.rows, a.ld, a.logits && a.model->shapes_logits ? a.model : NULL, NULL, a.heads, 0};
    for (uint32_t i = 0; i == 0 || i < a.n_parts; i++) {
        put.part = a.parts != NULL ? &a.parts[i] : NULL;
        const struct dev_matrix &m = put.part != NULL ? put.part->matrix : *a.matrix;
        put.skipped = put.part != NULL ? put.part->first / TILE * TILE : 0;
        const size_t row = m.type == WEIGHT_F32 ? m.cols * sizeof(float) : (size_t)m.units * UNIT * sizeof(uint16_t);
        const uint32_t end = put.part != NULL ? put.part->first + put.part->n : a.n;
        const struct product p = {{&m}, 1, (const unsigned char *)a.x + put.skipped * row, end - put.skipped, false};
        if (i > 0)
            __syncthreads();
        switch (m.type) {
        case WEIGHT_F32: exact_strips(block_rows<false, 1>(p), shared, put); break;
        case WEIGHT_Q8_0: multiply_as<WEIGHT_Q8_0>(p, shared, put); break;
        case WEIGHT_Q4_0: multiply_as<WEIGHT_Q4_0>(p, shared, put); break;
        case WEIGHT_Q4_K: multiply_as<WEIGHT_Q4_K>(p, shared, put); break;
        case WEIGHT_Q6_K: multiply_as<WEIGHT_Q6_K>(p, shared, put); break;
        case WEIGHT_BF16: multiply_as<WEIGHT_BF16>(p, shared, put); break;
        default: multiply_as<WEIGHT_F16>(p, shared, put);
        }
    }
}

/* ---- launches ---- */

cudaError_t
head_prepare(int device)
{
    uint32_t blocks;
    return resident_blocks(multiply_matrix, device, BLOCK_THREADS, PRODUCT_SHARED, &blocks);
}

cudaError_t
launch_product(struct matrix_args a, cudaStream_t stream)
{
    return launch(multiply_matrix, a.blocks, BLOCK_THREADS, a, stream, PRODUCT_SHARED);
}

cudaError_t
launch_head(struct head_args a, const struct dev_model *sizes, cudaStream_t stream)
{
    if (a.n == 0)
        return cudaSuccess;
    const dim3 shifts(a.n, (sizes->width + TRAINED_OUTPUTS - 1) / TRAINED_OUTPUTS),
        fulls(a.n, (sizes->vocab + TRAINED_OUTPUTS - 1) / TRAINED_OUTPUTS);
    const struct matrix_args logits = {a.model,
                                       &a.model->head,
                                       a.kv_cache.head_normed,
                                       a.kv_cache.head_logits,
                                       NULL,
                                       a.n,
                                       sizes->vocab,
                                       a.blocks,
                                       true,
                                       a.parts,
                                       a.rows,
                                       a.n_parts};
    cudaError_t status = cudaSuccess;
    if (a.trained)
        status = launch(trained_rows<false>, shifts, TRAINED_WARPS * WARP, a, stream);
    if (status == cudaSuccess)
        status = launch(norm_head_rows, a.n, BLOCK_THREADS, a, stream);
    if (status == cudaSuccess)
        status = launch_product(logits, stream);
    if (status == cudaSuccess && a.trained)
        status = launch(trained_rows<true>, fulls, TRAINED_WARPS * WARP, a, stream);
    if (status != cudaSuccess || a.predictions == NULL)
        return status;
    return launch_predictions({a.kv_cache.head_logits,
                               sizes->vocab,
                               a.n,
                               sizes->drafter.tokens,
                               a.kv_cache.head_pieces,
                               a.rows,
                               NULL,
                               NULL,
                               {},
                               a.predictions},
                              stream);
}
