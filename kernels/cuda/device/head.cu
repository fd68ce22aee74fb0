/* A head call: final norm and packing of hidden states, logits and their form, predictions (predictions.cu). */
#include "kernels/cuda/device/block.cuh"
#include "kernels/cuda/device/forms.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/matmul.cuh"
#include "kernels/cuda/device/norm.cuh"
#include "kernels/cuda/device/tile.cuh"
#include "kernels/cuda/device/units.cuh"

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
    struct put_part part;
    __device__ __forceinline__ void
    put(float *y, const struct dev_set *set, uint32_t o, float value) const
    {
        if (o == UINT32_MAX || (set != NULL && part.kind == PART_BASE && o >= set->base))
            return;
        o += set != NULL && part.kind == PART_RECENT ? set->base : 0;
        y[o] = logits != NULL ? shaped_logit(*logits, set != NULL ? set_token(set, o) : o, value) : value;
    }
    __device__ __forceinline__ void
    operator()(uint32_t, uint32_t row, uint32_t o0, uint32_t o1, float y0, float y1) const
    {
        if (row < part.first)
            return;
        float *const y = to + (rows != NULL ? rows[row].ring : row) * ld;
        const struct dev_set *const set = part.heads != NULL ? &part.heads[row].set : NULL;
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

__global__ void
__launch_bounds__(BLOCK_THREADS, 1) multiply_matrix(struct matrix_args a)
{
    SHARED_MEMORY(float, shared);
    const struct product p = {{a.matrix}, 1, a.x, a.n, false};
    struct put_outputs put = {a.y, a.rows, a.ld, a.logits && a.model->shapes_logits ? a.model : NULL, a.part};
    switch (a.matrix->type) {
    case WEIGHT_F32: exact_strips(block_rows<false, 1>(p), shared, put); break;
    case WEIGHT_Q8_0: multiply_as<WEIGHT_Q8_0>(p, shared, put); break;
    case WEIGHT_Q4_0: multiply_as<WEIGHT_Q4_0>(p, shared, put); break;
    case WEIGHT_Q4_K: multiply_as<WEIGHT_Q4_K>(p, shared, put); break;
    case WEIGHT_Q6_K: multiply_as<WEIGHT_Q6_K>(p, shared, put); break;
    case WEIGHT_BF16: multiply_as<WEIGHT_BF16>(p, shared, put); break;
    default: multiply_as<WEIGHT_F16>(p, shared, put);
    }
}

/* ---- kept logits of a block drafter ---- */

/* Packs markov_w1[before]; one row per block. */
__global__ void
__launch_bounds__(BLOCK_THREADS) take_before(struct head_args a)
{
    const struct head_row &row = a.rows[blockIdx.x];
    const struct dev_model &m = *a.model;
    const struct dev_matrix &w = m.drafter.markov_w1;
    for (uint32_t k = threadIdx.x; k < w.cols; k += BLOCK_THREADS)
        put_activation(a.kv_cache.head_normed, m.exact, w.cols, blockIdx.x, k,
                       row.before != TOKEN_NONE ? element(w, (uint32_t)row.before, k) : 0);
    put_padding(a.kv_cache.head_normed, m.exact, w.cols, blockIdx.x);
}

/* Adds the kept logits to the bias. Grid: (rows, pieces). */
__global__ void
__launch_bounds__(BLOCK_THREADS) add_kept(struct head_args a)
{
    const struct head_row &row = a.rows[blockIdx.x];
    const uint32_t vocab = a.model->vocab, first = blockIdx.y * HEAD_PIECE;
    float *const z = a.kv_cache.head_logits + (size_t)blockIdx.x * vocab;
    const float *const kept = a.kv_cache.kept + (size_t)row.kept * vocab;
    for (uint32_t o = first + threadIdx.x; o < min(first + HEAD_PIECE, vocab); o += BLOCK_THREADS)
        z[o] = row.before != TOKEN_NONE ? kept[o] + z[o] : kept[o];
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

/* Multiplies all rows with the head, or each part of the call. A part begins with the tile of its first row. */
static cudaError_t
launch_logits(const struct head_args &a, const struct dev_model *sizes, cudaStream_t stream)
{
    const size_t row = sizes->exact ? sizes->width * sizeof(float) : units_of(sizes->width) * UNIT * sizeof(uint16_t);
    struct matrix_args m = {a.model,
                            &a.model->head,
                            a.kv_cache.head_normed,
                            a.kv_cache.head_logits,
                            NULL,
                            a.n,
                            sizes->vocab,
                            a.blocks,
                            true,
                            {}};
    cudaError_t status = a.n_parts == 0 ? launch_product(m, stream) : cudaSuccess;
    for (uint32_t i = 0; i < a.n_parts && status == cudaSuccess; i++) {
        const struct head_part &part = a.parts[i];
        const uint32_t before = part.first / TILE * TILE;
        m.matrix = &a.parts_there[i].matrix;
        m.x = (const unsigned char *)a.kv_cache.head_normed + before * row;
        m.y = a.kv_cache.head_logits + (size_t)before * sizes->vocab;
        m.n = part.first + part.n - before;
        m.part = {part.kind == PART_WHOLE ? NULL : a.rows + before, part.first - before, part.kind};
        status = launch_product(m, stream);
    }
    return status;
}

static cudaError_t
launch_kept(const struct head_args &a, const struct dev_model *sizes, cudaStream_t stream)
{
    const struct matrix_args m = {a.model,
                                  &a.model->drafter.markov_w2,
                                  a.kv_cache.head_normed,
                                  a.kv_cache.head_logits,
                                  NULL,
                                  a.n,
                                  sizes->vocab,
                                  a.blocks,
                                  false,
                                  {}};
    const bool biased = sizes->drafter.markov_w2.rows > 0;
    cudaError_t status = biased ? launch(take_before, a.n, BLOCK_THREADS, a, stream) : cudaSuccess;
    if (status == cudaSuccess && biased)
        status = launch_product(m, stream);
    return status == cudaSuccess ? launch(add_kept, dim3(a.n, head_pieces_of(sizes->vocab)), BLOCK_THREADS, a, stream)
                                 : status;
}

static cudaError_t
launch_computed(const struct head_args &a, const struct dev_model *sizes, cudaStream_t stream)
{
    const dim3 shifts(a.n, (sizes->width + TRAINED_OUTPUTS - 1) / TRAINED_OUTPUTS),
        fulls(a.n, (sizes->vocab + TRAINED_OUTPUTS - 1) / TRAINED_OUTPUTS);
    cudaError_t status = cudaSuccess;
    if (a.trained)
        status = launch(trained_rows<false>, shifts, TRAINED_WARPS * WARP, a, stream);
    if (status == cudaSuccess)
        status = launch(norm_head_rows, a.n, BLOCK_THREADS, a, stream);
    if (status == cudaSuccess)
        status = launch_logits(a, sizes, stream);
    if (status == cudaSuccess && a.trained)
        status = launch(trained_rows<true>, fulls, TRAINED_WARPS * WARP, a, stream);
    return status;
}

cudaError_t
launch_head(struct head_args a, const struct dev_model *sizes, cudaStream_t stream)
{
    if (a.n == 0)
        return cudaSuccess;
    const cudaError_t status = a.kept ? launch_kept(a, sizes, stream) : launch_computed(a, sizes, stream);
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
