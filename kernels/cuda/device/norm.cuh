/* Norms of rows of activations, packed as input of products, and the affine part of trained heads. A block works on one
 * row at a time. */
#pragma once

#include "kernels/cuda/device/block.cuh"
#include "kernels/cuda/device/ptx.cuh"

/* Stores value k of row r of activations of `cols` columns: packed halves, or F32 if exact. */
static __device__ __forceinline__ void
put_activation(void *to, bool exact, uint32_t cols, uint32_t r, uint32_t k, float x)
{
    if (exact)
        ((float *)to)[(size_t)r * cols + k] = x;
    else
        ((uint16_t *)to)[packed_place(units_of(cols), r, k)] = half_bits(x);
}

/* Sets the columns from cols to the end of the last unit to zero. */
static __device__ __forceinline__ void
put_padding(void *to, bool exact, uint32_t cols, uint32_t r)
{
    for (uint32_t k = cols + threadIdx.x; !exact && k < units_of(cols) * UNIT; k += blockDim.x)
        put_activation(to, exact, cols, r, k, 0);
}

/* ---- in shared memory ---- */

#define SMEM_AT (2 * BLOCK_WARPS * STRIP * TILE * sizeof(float)) /* of rows (layout.h): after a tile's sums */

static __device__ __forceinline__ uint32_t
smem_place(uint32_t units, uint32_t r, uint32_t k)
{
    const uint32_t within = k % 16;
    return (r * smem_stride(units) + k / UNIT * 4 + within % 8 / 2) * 8 + k % UNIT / 16 * 4 + within / 8 * 2 +
           within % 2;
}

/* ---- norm ---- */

/* The mean that a norm subtracts from a row, and the factor that it multiplies by. */
struct spread {
    float mean, inverse; /* RMS norms: mean 0 */
};

static __device__ __forceinline__ struct spread
spread_of(const struct dev_model &m, float mean, float squares, uint32_t n)
{
    return {mean, 1.0f / sqrtf(squares / (float)n + m.rms_eps)};
}

/* Computes the spread of x (n) F32 with a whole block of BLOCK_THREADS threads, so that the order of the sums is always
 * the same. Squares are of deviations from the mean, because squares of large numbers would lose the deviations to
 * rounding. */
static __device__ __forceinline__ struct spread
block_spread(const struct dev_model &m, const float *x, uint32_t n, struct block_scratch *scratch)
{
    const uint32_t thread = thread_here();
    float mean = 0, squares = 0;
    if (m.form.layer_norm) {
        float sum = 0;
        for (uint32_t k = thread; k < n; k += BLOCK_THREADS)
            sum += x[k];
        mean = block_reduce(sum, add_op(), scratch) / (float)n;
    }
    for (uint32_t k = thread; k < n; k += BLOCK_THREADS)
        squares = fmaf(x[k] - mean, x[k] - mean, squares);
    return spread_of(m, mean, block_reduce(squares, add_op(), scratch), n);
}

/* Returns the normed value of number k of a row. */
static __device__ __forceinline__ float
normed(const struct dev_norm &norm, const struct spread &s, float x, uint32_t k)
{
    const float y = (x - s.mean) * s.inverse * norm.weight[k];
    return norm.bias != NULL ? y + norm.bias[k] : y;
}

/* Norms `from` (width) F32 into row r of `to`, with a whole block; without a norm it stores `from` itself. copy: also
 * gets the result in F32, or NULL. exact: `to` is F32. */
static __device__ __forceinline__ void
norm_row(const struct dev_model &m, bool exact, const float *from, const struct dev_norm &norm, void *to, uint32_t r,
         struct block_scratch *scratch, float *copy = NULL)
{
    const bool norms = norm.weight != NULL;
    const struct spread s = norms ? block_spread(m, from, m.width, scratch) : spread{0, 1};
    for (uint32_t k = thread_here(); k < m.width; k += BLOCK_THREADS) {
        const float x = norms ? normed(norm, s, from[k], k) : from[k];
        put_activation(to, exact, m.width, r, k, x);
        if (copy != NULL)
            copy[k] = x;
    }
    put_padding(to, exact, m.width, r);
}

/* The norm in parts, for rows that every block norms for itself. Two rows are processed at once, so that their loads
 * overlap; a row that takes no part is NULL. This first part writes the warps' sums of the rows' terms to sums (2,
 * BLOCK_WARPS), which may be read after a __syncthreads(). For LayerNorm it is called for the numbers, then for the
 * squares. with(sum, x, second) returns a sum plus another number's term. */
template <class With>
static __device__ __forceinline__ void
add_terms(const struct dev_model &m, const float *first, const float *second, float (*sums)[BLOCK_WARPS], With with)
{
    const uint32_t thread = thread_here();
    float one = 0, two = 0;
#pragma unroll 8
    for (uint32_t k = thread; k < m.width; k += BLOCK_THREADS) {
        const float x = first != NULL ? first[k] : 0, y = second != NULL ? second[k] : 0;
        one = with(one, x, false);
        two = with(two, y, true);
    }
    one = warp_sum(one);
    two = warp_sum(two);
    if (thread % WARP == 0) {
        sums[0][thread / WARP] = one;
        sums[1][thread / WARP] = two;
    }
}

/* The second part stores the norms of rows r and r + 1 (of n) in shared memory, or their numbers if there is no norm.
 * Rows that take no part are zero. */
static __device__ __forceinline__ void
put_smem(const struct dev_model &m, const float *first, const float *second, bool norms, const struct dev_norm &norm,
         const struct spread (&spreads)[2], uint16_t *to, uint32_t r, uint32_t n)
{
    const uint32_t units = units_of(m.width);
    const auto of = [&](const float *from, const struct spread &s, uint32_t k) -> uint16_t {
        return from == NULL ? 0 : half_bits(norms ? normed(norm, s, from[k], k) : from[k]);
    };
#pragma unroll 8
    for (uint32_t k = thread_here(); k < m.width; k += BLOCK_THREADS) {
        to[smem_place(units, r, k)] = of(first, spreads[0], k);
        if (r + 1 < n)
            to[smem_place(units, r + 1, k)] = of(second, spreads[1], k);
    }
    for (uint32_t k = m.width + thread_here(); k < units * UNIT; k += BLOCK_THREADS)
        for (uint32_t i = r; i < n && i < r + 2; i++)
            to[smem_place(units, i, k)] = 0;
}

/* Trained heads (backend_ops.heads): input of the final norm in a layer with an affine head. */

/* Returns the sum over k of w[k] x[k], by a warp: lanes take every 32nd term, and their sums are added in a tree. */
static __device__ __forceinline__ float
warp_dot(const float *w, const float *x, uint32_t n)
{
    float sum = 0;
    for (uint32_t k = threadIdx.x % WARP; k < n; k += WARP)
        sum = fmaf(w[k], x[k], sum);
    return warp_sum(sum);
}

/* Returns element o of h + A h + b, in every lane. */
static __device__ __forceinline__ float
shifted(const struct dev_head &t, const float *h, uint32_t o, uint32_t width)
{
    return h[o] + (warp_dot(t.a + (size_t)o * width, h, width) + t.b[o]);
}
