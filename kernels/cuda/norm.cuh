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

static __device__ __forceinline__ void
norm_row(const struct dev_model &m, const float *from, const float *weight, void *to, uint32_t r, float *parts)
{
    norm_row_as(m, m.exact, from, weight, to, r, parts);
}

#endif
