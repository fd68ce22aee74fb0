/* Rows of activations: RMS norm, and how they are put down for a product to read. A block works on one row at a time. */
#ifndef KERNELS_CUDA_NORM_CUH
#define KERNELS_CUDA_NORM_CUH

#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/warp.cuh"

/* Value k of row r of activations of `cols` columns: packed halves, or F32 when exact. */
static __device__ __forceinline__ void
put_activation(void *to, bool exact, uint32_t cols, uint32_t r, uint32_t k, float x)
{
    if (exact)
        ((float *)to)[(size_t)r * cols + k] = x;
    else
        ((uint16_t *)to)[packed_place(units_of(cols), r, k)] = half_bits(x);
}

/* Values k and k+1, k even. */
static __device__ __forceinline__ void
put_two(void *to, bool exact, uint32_t cols, uint32_t r, uint32_t k, float x, float y)
{
    if (exact) {
        ((float *)to)[(size_t)r * cols + k] = x;
        ((float *)to)[(size_t)r * cols + k + 1] = y;
    } else
        *(uint32_t *)((uint16_t *)to + packed_place(units_of(cols), r, k)) = pack_halves(x, y);
}

/* Columns from cols to the end of the last unit are zero. */
static __device__ __forceinline__ void
put_padding(void *to, bool exact, uint32_t cols, uint32_t r)
{
    for (uint32_t k = cols + threadIdx.x; !exact && k < units_of(cols) * UNIT; k += blockDim.x)
        put_activation(to, exact, cols, r, k, 0);
}

/* ---- in shared memory ---- */

/* Rows that a block has in its own shared memory, up to a tile of them: (rows, units, 4, 8) halves, values of a unit in the
 * order in which the lanes of a row take them (layout.h), a row 64 bytes longer than its units are, so that neighbouring
 * rows lie in different banks. */
#define NEAR_SHARED (TILE * (4096 * 2 + 64))
#define NEAR_AT     (2 * SWEEP_WARPS * STRIP * TILE * sizeof(float)) /* behind a tile's sums */

/* Of a row, in parts of 16 bytes. */
static __device__ __forceinline__ uint32_t
near_stride(uint32_t units)
{
    return units * 4 + 4;
}

static __device__ __forceinline__ uint32_t
near_place(uint32_t units, uint32_t r, uint32_t k)
{
    const uint32_t within = k % 16;
    return (r * near_stride(units) + k / UNIT * 4 + within % 8 / 2) * 8 + k % UNIT / 16 * 4 + within / 8 * 2 +
           within % 2;
}

static __device__ __forceinline__ bool
rows_are_near(const struct dev_model &m, uint32_t n)
{
    return !m.exact && n <= TILE && n * near_stride(units_of(m.width)) * 16 <= NEAR_SHARED;
}

/* ---- norm ---- */

/* The sum over a block of up to 32 warps, in a tree of fixed shape; `parts` is shared memory for 32 floats. */
static __device__ __forceinline__ float
block_sum(float x, float *parts, uint32_t thread)
{
    x = warp_sum(x);
    __syncthreads(); /* parts may still be read from the call before */
    if (thread % WARP == 0)
        parts[thread / WARP] = x;
    __syncthreads();
    return warp_sum(thread % WARP < blockDim.x / WARP ? parts[thread % WARP] : 0);
}

/* to[r] = from / rms(from) * weight, from (width) F32: by a whole block of SWEEP_THREADS threads, so that the order of
 * the sum is the same wherever it is called from. exact: put down in F32. */
static __device__ __forceinline__ void
norm_row_as(const struct dev_model &m, bool exact, const float *from, const float *weight, void *to, uint32_t r,
            float *parts)
{
    const uint32_t thread = thread_here();
    float squares = 0;
    for (uint32_t k = thread; k < m.width; k += SWEEP_THREADS)
        squares = fmaf(from[k], from[k], squares);
    const float mean = block_sum(squares, parts, thread) / (float)m.width, inverse = 1.0f / sqrtf(mean + m.rms_eps);
    for (uint32_t k = thread; k < m.width; k += SWEEP_THREADS)
        put_activation(to, exact, m.width, r, k, from[k] * inverse * weight[k]);
    put_padding(to, exact, m.width, r);
}

/* The same in two parts, for rows that every block norms for itself. First the warps' sums of squares, of (SWEEP_WARPS): to be
 * read behind a __syncthreads(). */
static __device__ __forceinline__ void
add_squares(const struct dev_model &m, const float *from, float *sums)
{
    const uint32_t thread = thread_here();
    float squares = 0;
#pragma unroll 8
    for (uint32_t k = thread; k < m.width; k += SWEEP_THREADS)
        squares = fmaf(from[k], from[k], squares);
    squares = warp_sum(squares);
    if (thread % WARP == 0)
        sums[thread / WARP] = squares;
}

/* Then row r in shared memory. from NULL: zeros. */
static __device__ __forceinline__ void
put_near(const struct dev_model &m, const float *from, const float *weight, const float *sums, uint16_t *to, uint32_t r)
{
    const uint32_t thread = thread_here(), units = units_of(m.width);
    const float mean =
                    from == NULL ? 0 : warp_sum(thread % WARP < SWEEP_WARPS ? sums[thread % WARP] : 0) / (float)m.width,
                inverse = 1.0f / sqrtf(mean + m.rms_eps);
#pragma unroll 8
    for (uint32_t k = thread; k < m.width; k += SWEEP_THREADS)
        to[near_place(units, r, k)] = from == NULL ? 0 : half_bits(from[k] * inverse * weight[k]);
    for (uint32_t k = m.width + thread; k < units * UNIT; k += SWEEP_THREADS)
        to[near_place(units, r, k)] = 0;
}

static __device__ __forceinline__ void
norm_row(const struct dev_model &m, const float *from, const float *weight, void *to, uint32_t r, float *parts)
{
    norm_row_as(m, m.exact, from, weight, to, r, parts);
}

#endif
