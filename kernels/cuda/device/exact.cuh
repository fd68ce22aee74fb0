/* Products of exact models: F32, plain rows (layout.h), plain multiply-adds in one order. A warp an output; lanes take every
 * 32nd column and add up in a tree. */
#ifndef KERNELS_CUDA_DEVICE_EXACT_CUH
#define KERNELS_CUDA_DEVICE_EXACT_CUH

#include "kernels/cuda/device/matmul.cuh"
#include "kernels/cuda/device/warp.cuh"

/* How outputs would lie in strips, were the matrix packed: pack_plain, pack_heads, pack_gate_up. */
enum pairing { PAIR_NONE, PAIR_HEADS, PAIR_GATE_UP };

/* Output of packed row r (0..15) of a strip. */
static __device__ __forceinline__ uint32_t
exact_output(const struct dev_matrix &m, enum pairing pairing, uint32_t strip, uint32_t r,
             const struct dev_model &model)
{
    const uint32_t g = r % 8, second = r / 8;
    if (pairing == PAIR_GATE_UP) {
        const uint32_t unit = strip * 8 + g, ffn = m.rows / 2;
        return unit < ffn ? second * ffn + unit : UINT32_MAX;
    }
    if (pairing == PAIR_HEADS) {
        const uint32_t pairs = model.head_dim / 2, rotated = model.rope_dims / 2, strips = (pairs + 7) / 8;
        const uint32_t head = strip / strips, i = strip % strips * 8 + g;
        if (i >= pairs)
            return UINT32_MAX;
        return head * model.head_dim +
               (model.rope == ROPE_HALVES && i < rotated ? i + second * rotated : 2 * i + second);
    }
    const uint32_t o = strip * STRIP + r;
    return o < m.rows ? o : UINT32_MAX;
}

static __device__ __forceinline__ uint32_t
exact_strips(const struct dev_matrix &m, enum pairing pairing, uint32_t head_dim)
{
    if (pairing == PAIR_GATE_UP)
        return (m.rows / 2 + 7) / 8;
    if (pairing == PAIR_HEADS)
        return m.rows / head_dim * ((head_dim / 2 + 7) / 8);
    return (m.rows + STRIP - 1) / STRIP;
}

/* A strip of the matrix whose first output's weights are at `w`, with n rows: x_of(row) is a row's activations, and put(row, o0, o1, y0, y1) what
 * becomes of outputs. */
template <class Row, class Put>
static __device__ __forceinline__ void
exact_strip(const struct dev_matrix &m, const float *w, uint32_t strip, uint32_t n, enum pairing pairing,
            const struct dev_model &model, float *shared, uint32_t *turn, Row x_of, Put put)
{
    const uint32_t thread = thread_here(), warp = thread / WARP, lane = thread % WARP, g = thread % 8, own = thread / 8;
    const uint32_t o = exact_output(m, pairing, strip, warp, model);
    w += o != UINT32_MAX ? (size_t)o * m.cols : 0;
    for (uint32_t first = 0; first < n; first += TILE) {
        const uint32_t rows = n - first < TILE ? n - first : TILE;
        float *buffer = shared + *turn * (STRIP * TILE);
        *turn ^= 1;
        for (uint32_t r = 0; r < rows; r++) {
            const float *x = x_of(first + r);
            float sum = 0;
            for (uint32_t k = lane; k < m.cols && o != UINT32_MAX; k += WARP)
                sum = fmaf(w[k], x[k], sum);
            sum = warp_sum(sum);
            if (lane == 0)
                buffer[r * STRIP + warp] = sum;
        }
        __syncthreads();
        if (own < rows)
            put(first + own, exact_output(m, pairing, strip, g, model), exact_output(m, pairing, strip, g + 8, model),
                buffer[own * STRIP + g], buffer[own * STRIP + g + 8]);
    }
}

/* One matrix, number `which` of a product. */
template <class Then>
static __device__ __forceinline__ void
exact_matrix(const struct dev_matrix &m, uint32_t which, const struct product &p, enum pairing pairing,
             const struct dev_model &model, float *shared, uint32_t *turn, Then &then)
{
    const uint32_t strips = exact_strips(m, pairing, model.head_dim);
    const auto x_of = [&](uint32_t row) { return (const float *)p.x + (size_t)row * m.cols; };
    const auto put = [&](uint32_t row, uint32_t o0, uint32_t o1, float y0, float y1) {
        then(which, row, o0, o1, y0, y1);
    };
    for (uint32_t strip = blockIdx.x; strip < strips; strip += gridDim.x)
        exact_strip(m, (const float *)m.quants, strip, p.n, pairing, model, shared, turn, x_of, put);
}

template <class Then>
static __device__ __forceinline__ void
exact_product(const struct product &p, enum pairing pairing, const struct dev_model &model, float *shared,
              uint32_t *turn, Then &then)
{
    for (uint32_t i = 0; i < p.n_matrices; i++) /* values are not rotated */
        exact_matrix(*(i == 0   ? p.matrices[0]
                       : i == 1 ? p.matrices[1]
                                : p.matrices[2]),
                     i, p, pairing == PAIR_HEADS && i == 2 ? PAIR_NONE : pairing, model, shared, turn, then);
}

#endif
