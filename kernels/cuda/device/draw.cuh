/* Draws by inversion: the first token at which the prefix sum passes u times the total. */
#ifndef KERNELS_CUDA_DEVICE_DRAW_CUH
#define KERNELS_CUDA_DEVICE_DRAW_CUH

#include "kernels/cuda/device/mass.cuh"
#include "kernels/rng.h"

static __device__ __forceinline__ bool
listed_among(const token_t *tokens, size_t n, uint32_t v)
{
    for (size_t i = 0; i < n; i++)
        if (tokens[i] == (token_t)v)
            return true;
    return false;
}

/* A stored distribution with some tokens taken out. */
struct stored_p {
    const float *p;
    const token_t *without; /* (n_without) */
    size_t n_without;
    __device__ __forceinline__ float
    operator()(uint32_t v) const
    {
        const float pv = p[v]; /* a place that was never written may hold anything */
        return pv > 0 && !listed_among(without, n_without, v) ? fminf(pv, 1.0f) : 0.0f;
    }
};

/* From p(v) >= 0, v < n; TOKEN_NONE when all are 0. Each step divides the range that holds the answer by the number of
 * warps, so a vocabulary takes four. The sums are integers: a part's is what its parts' add up to. */
template <class P>
static __device__ token_t
block_draw(P p, uint32_t n, const struct rng_key *key, struct block_scratch *scratch)
{
    const struct mass total = block_mass(p, n, scratch);
    if (total.units == 0)
        return TOKEN_NONE;
    uint64_t target = (uint64_t)(rng_uniform(key) * (double)total.units);
    if (target >= total.units)
        target = total.units - 1;
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    uint32_t first = 0, length = n;
    while (length > 1) {
        const uint32_t part = (length + ROW_WARPS - 1) / ROW_WARPS;
        const uint32_t from = first + warp * part, until = from + part < first + length ? from + part : first + length;
        uint64_t sum = 0;
#pragma unroll 4
        for (uint32_t v = from + lane; v < until; v += WARP)
            sum += fixed_point(p(v), total.scale);
        sum = warp_reduce(sum, add_op());
        __syncthreads();
        if (lane == 0)
            scratch->words[warp] = sum;
        __syncthreads();
        uint32_t chosen = 0;
        while (chosen < ROW_WARPS - 1 && target >= scratch->words[chosen])
            target -= scratch->words[chosen++];
        const uint32_t end = first + length;
        first += chosen * part;
        length = end - first < part ? end - first : part;
    }
    return (token_t)first;
}

#endif
