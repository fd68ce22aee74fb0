/* Trained heads (backend_ops.heads): what the final norm sees where a layer has an affine one. */
#ifndef KERNELS_CUDA_DEVICE_TRAINED_CUH
#define KERNELS_CUDA_DEVICE_TRAINED_CUH

#include "kernels/cuda/device/norm.cuh"
#include "kernels/cuda/device/warp.cuh"

/* Sum over k of w[k] x[k], by a warp: lanes take every 32nd and add up in a tree. */
static __device__ __forceinline__ float
warp_dot(const float *w, const float *x, uint32_t n)
{
    float sum = 0;
    for (uint32_t k = threadIdx.x % WARP; k < n; k += WARP)
        sum = fmaf(w[k], x[k], sum);
    return warp_sum(sum);
}

/* Of a row of hidden states, by a warp (norm.cuh). */
static __device__ __forceinline__ struct spread
warp_row_spread(const struct dev_model &m, const float *h)
{
    float mean = 0, squares = 0;
    for (uint32_t k = threadIdx.x % WARP; k < m.width && m.form.centred; k += WARP)
        mean += h[k];
    mean = warp_sum(mean) / (float)m.width;
    for (uint32_t k = threadIdx.x % WARP; k < m.width; k += WARP)
        squares = fmaf(h[k] - mean, h[k] - mean, squares);
    return spread_of(m, mean, warp_sum(squares), m.width);
}

/* Element o of h + A h + b, in every lane. */
static __device__ __forceinline__ float
shifted(const struct dev_head &t, const float *h, uint32_t o, uint32_t width)
{
    return h[o] + (warp_dot(t.a + (size_t)o * width, h, width) + t.b[o]);
}

#endif
