/* Norms of rows of activations, packed as input of products, and the affine part of trained heads. A block works on one
 * row at a time. */
#ifndef KERNELS_CUDA_DEVICE_NORM_CUH
#define KERNELS_CUDA_DEVICE_NORM_CUH

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

/* Stores values k and k+1, k even. */
static __device__ __forceinline__ void
put_two(void *to, bool exact, uint32_t cols, uint32_t r, uint32_t k, float x, float y)
{
    if (exact) {
        ((float *)to)[(size_t)r * cols + k] = x;
        ((float *)to)[(size_t)r * cols + k + 1] = y;
    } else
        *(uint32_t *)((uint16_t *)to + packed_place(units_of(cols), r, k)) = pack_halves(x, y);
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

/* Returns the sum over a block of up to 32 warps, in a tree of fixed shape; `parts` is shared memory for 32 floats. */
static __device__ __forceinline__ float
block_sum(float x, float *parts, uint32_t thread)
{
    x = warp_sum(x);
    __syncthreads(); /* parts may still be in use by the previous call */
    if (thread % WARP == 0)
        parts[thread / WARP] = x;
    __syncthreads();
    return warp_sum(thread % WARP < blockDim.x / WARP ? parts[thread % WARP] : 0);
}

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
block_spread(const struct dev_model &m, const float *x, uint32_t n, float *parts)
{
    const uint32_t thread = thread_here();
    float mean = 0, squares = 0;
    if (m.form.centred) {
        float sum = 0;
        for (uint32_t k = thread; k < n; k += BLOCK_THREADS)
            sum += x[k];
        mean = block_sum(sum, parts, thread) / (float)n;
    }
    for (uint32_t k = thread; k < n; k += BLOCK_THREADS)
        squares = fmaf(x[k] - mean, x[k] - mean, squares);
    return spread_of(m, mean, block_sum(squares, parts, thread), n);
}

/* Returns the normed value of number k of a row. */
static __device__ __forceinline__ float
normed(const struct dev_norm &norm, const struct spread &s, float x, uint32_t k)
{
    const float y = (x - s.mean) * s.inverse * norm.weight[k];
    return norm.bias != NULL ? y + norm.bias[k] : y;
}

/* to[r] = the norm of from (width) F32, or from itself where there is no norm, by a whole block; copy: the same in F32, or
 * NULL. exact: to is F32. */
static __device__ __forceinline__ void
norm_row(const struct dev_model &m, bool exact, const float *from, const struct dev_norm &norm, void *to, uint32_t r,
         float *parts, float *copy = NULL)
{
    const bool norms = norm.weight != NULL;
    const struct spread s = norms ? block_spread(m, from, m.width, parts) : spread{0, 1};
    for (uint32_t k = thread_here(); k < m.width; k += BLOCK_THREADS) {
        const float x = norms ? normed(norm, s, from[k], k) : from[k];
        put_activation(to, exact, m.width, r, k, x);
        if (copy != NULL)
            copy[k] = x;
    }
    put_padding(to, exact, m.width, r);
}

static __device__ __forceinline__ float
smem_sum(const float *sums)
{
    const uint32_t lane = thread_here() % WARP;
    return warp_sum(lane < BLOCK_WARPS ? sums[lane] : 0);
}

/* The same in two parts, for rows that every block norms for itself, two at once, so that their loads overlap; RMS norms
 * only. A row that takes no part is NULL. First part: the warps' sums of squares, of (2, BLOCK_WARPS), which may be read
 * after a __syncthreads(). */
static __device__ __forceinline__ void
add_squares(const struct dev_model &m, const float *first, const float *second, float (*sums)[BLOCK_WARPS])
{
    const uint32_t thread = thread_here();
    float one = 0, two = 0;
#pragma unroll 8
    for (uint32_t k = thread; k < m.width; k += BLOCK_THREADS) {
        const float x = first != NULL ? first[k] : 0, y = second != NULL ? second[k] : 0;
        one = fmaf(x, x, one);
        two = fmaf(y, y, two);
    }
    one = warp_sum(one);
    two = warp_sum(two);
    if (thread % WARP == 0) {
        sums[0][thread / WARP] = one;
        sums[1][thread / WARP] = two;
    }
}

/* Second part: stores row r of n in shared memory, and the one after it. Rows that take no part are zero. */
static __device__ __forceinline__ void
put_smem(const struct dev_model &m, const float *first, const float *second, const float *weight,
         const float (*sums)[BLOCK_WARPS], uint16_t *to, uint32_t r, uint32_t n)
{
    const uint32_t units = units_of(m.width);
    const float one = 1.0f / sqrtf(smem_sum(sums[0]) / (float)m.width + m.rms_eps),
                two = 1.0f / sqrtf(smem_sum(sums[1]) / (float)m.width + m.rms_eps);
#pragma unroll 8
    for (uint32_t k = thread_here(); k < m.width; k += BLOCK_THREADS) {
        to[smem_place(units, r, k)] = first != NULL ? half_bits(first[k] * one * weight[k]) : 0;
        if (r + 1 < n)
            to[smem_place(units, r + 1, k)] = second != NULL ? half_bits(second[k] * two * weight[k]) : 0;
    }
    for (uint32_t k = m.width + thread_here(); k < units * UNIT; k += BLOCK_THREADS)
        for (uint32_t i = r; i < n && i < r + 2; i++)
            to[smem_place(units, i, k)] = 0;
}

/* The same for centred norms, in three parts: the warps' sums, of (BLOCK_WARPS), */
static __device__ __forceinline__ void
add_numbers(const struct dev_model &m, const float *from, float *sums)
{
    const uint32_t thread = thread_here();
    float sum = 0;
#pragma unroll 4
    for (uint32_t k = thread; k < m.width; k += BLOCK_THREADS)
        sum += from[k];
    sum = warp_sum(sum);
    if (thread % WARP == 0)
        sums[thread / WARP] = sum;
}

/* the sums of squared deviations from the mean, */
static __device__ __forceinline__ void
add_deviations(const struct dev_model &m, const float *from, const float *sums, float *squares)
{
    const uint32_t thread = thread_here();
    const float mean = smem_sum(sums) / (float)m.width;
    float own = 0;
#pragma unroll 4
    for (uint32_t k = thread; k < m.width; k += BLOCK_THREADS)
        own = fmaf(from[k] - mean, from[k] - mean, own);
    own = warp_sum(own);
    if (thread % WARP == 0)
        squares[thread / WARP] = own;
}

/* and the row itself, or without a norm its numbers. from NULL: zeros. */
static __device__ __forceinline__ void
put_centred(const struct dev_model &m, const float *from, const struct dev_norm &norm, const float *sums,
            const float *squares, uint16_t *to, uint32_t r)
{
    const uint32_t units = units_of(m.width);
    const bool norms = norm.weight != NULL;
    const struct spread s = norms && from != NULL
                                ? spread_of(m, smem_sum(sums) / (float)m.width, smem_sum(squares), m.width)
                                : spread{0, 1};
#pragma unroll 4
    for (uint32_t k = thread_here(); k < units * UNIT; k += BLOCK_THREADS)
        to[smem_place(units, r, k)] =
            from == NULL || k >= m.width ? 0 : half_bits(norms ? normed(norm, s, from[k], k) : from[k]);
}

/* Trained heads (backend_ops.heads): input of the final norm in a layer with an affine head. */

/* Sum over k of w[k] x[k], by a warp: lanes take every 32nd and add up in a tree. */
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

#endif
