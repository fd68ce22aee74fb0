/* What the lanes of a warp find out together, in trees of fixed shape: every lane gets the same bits. */
#ifndef KERNELS_CUDA_DEVICE_WARP_CUH
#define KERNELS_CUDA_DEVICE_WARP_CUH

#include <cuda_runtime.h>

#include "kernels/cuda/device/layout.h"

#define ALL_OF_WARP 0xffffffffu

struct add_op {
    template <class T>
    __device__ __forceinline__ T
    operator()(T a, T b) const
    {
        return a + b;
    }
};

struct max_op {
    template <class T>
    __device__ __forceinline__ T
    operator()(T a, T b) const
    {
        return a > b ? a : b;
    }
};

struct min_op {
    template <class T>
    __device__ __forceinline__ T
    operator()(T a, T b) const
    {
        return a < b ? a : b;
    }
};

/* Over each `LANES` neighbours of a warp. */
template <int LANES = WARP, class T, class Op>
static __device__ __forceinline__ T
warp_reduce(T value, Op op)
{
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2)
        value = op(value, __shfl_xor_sync(ALL_OF_WARP, value, step));
    return value;
}

static __device__ __forceinline__ float
warp_sum(float x)
{
    return warp_reduce(x, add_op());
}

#endif
