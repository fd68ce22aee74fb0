/* Reductions over a warp and over a block, and the order of logits. Reductions are trees of fixed shape or sums of
 * integers, so every thread gets the same bits. */
#pragma once

#include <cuda_runtime.h>
#include <math.h>

#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/device/ptx.cuh"

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

/* Reduces over each group of LANES adjacent lanes of a warp. */
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

/* Reductions over a block, and the order of logits. Results are deterministic: integer sums, which do not depend on the
 * order, or trees of fixed shape. A function with `scratch` (shared memory) must be called by all threads of the block,
 * and returns the same result to all. */

/* ---- the order of tokens ---- */

/* Returns a key that orders logits: larger is better; 0 for tokens that are never drawn, -infinity and NaN. */
static __device__ __forceinline__ uint32_t
logit_key(float z)
{
    const uint32_t bits = __float_as_uint(z + 0.0f); /* makes -0 equal to 0 */
    return !(z > -INFINITY) ? 0 : bits >> 31 ? ~bits : bits | 0x80000000u;
}

static __device__ __forceinline__ float
key_logit(uint32_t key)
{
    return key == 0 ? -INFINITY : __uint_as_float(key >> 31 ? key & 0x7fffffffu : ~key);
}

/* Combines logit and id to a number that orders tokens: the larger logit first, among equals the lower id. */
static __device__ __forceinline__ uint64_t
rank_of(uint32_t key, uint32_t id)
{
    return (uint64_t)key << 32 | (uint32_t)~id;
}

static __device__ __forceinline__ uint32_t
rank_key(uint64_t rank)
{
    return (uint32_t)(rank >> 32);
}

static __device__ __forceinline__ uint32_t
rank_id(uint64_t rank)
{
    return ~(uint32_t)rank;
}

/* ---- reductions ---- */

struct block_scratch {
    uint64_t words[BLOCK_WARPS];
};

/* Reduces over BLOCK_THREADS threads, in a tree of fixed shape; T has at most 8 bytes. */
template <class T, class Op>
static __device__ __forceinline__ T
block_reduce(T value, Op op, struct block_scratch *scratch)
{
    T *const parts = (T *)scratch->words;
    const uint32_t thread = thread_here();
    value = warp_reduce(value, op);
    __syncthreads(); /* the previous result has been read */
    if (thread % WARP == 0)
        parts[thread / WARP] = value;
    __syncthreads();
    return warp_reduce<BLOCK_WARPS>(parts[thread % BLOCK_WARPS], op);
}

/* Call by all threads when the block has stored its part of a result, and after a __syncthreads() if threads other than
 * the first did. Returns whether the parts of the `others` are complete too, so that this block may read all of them.
 * The counter is zero before and after. */
static __device__ __forceinline__ bool
is_last(uint32_t *counter, uint32_t others)
{
    bool last = false;
    if (thread_here() == 0) {
        last = add_acquire_release(counter, 1) == others;
        if (last)
            *counter = 0;
    }
    return __syncthreads_or(last); /* the acquire applies to the whole block */
}
