/* Early exit: the last row's softmax, put together from all blocks. */
#ifndef KERNELS_CUDA_DEVICE_SWEEP_EXIT_CUH
#define KERNELS_CUDA_DEVICE_SWEEP_EXIT_CUH

#include "kernels/cuda/device/finish.cuh"
#include "kernels/cuda/device/ptx.cuh"
#include "kernels/cuda/device/warp.cuh"

/* Of all lanes, in every lane. */
static __device__ __forceinline__ void
add_lanes(struct softmax_part *all, float temperature)
{
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
        all->add(__shfl_xor_sync(ALL_OF_WARP, all->max, apart), __shfl_xor_sync(ALL_OF_WARP, all->sum, apart),
                 temperature);
}

/* Before the grid's barrier: what the first warp's threads have of row 0's softmax, together. */
static __device__ __forceinline__ void
put_part(struct sweep_shared *s, struct softmax_part all)
{
    if (threadIdx.x >= WARP)
        return;
    add_lanes(&all, s->how.temperature);
    if (threadIdx.x == 0)
        ((float2 *)s->a.store.until_parts)[blockIdx.x] = make_float2(all.max, all.sum);
}

/* Does the last row leave at layer l? Every block comes to the same answer. */
static __device__ __forceinline__ bool
leaves(struct sweep_shared *s, uint32_t l)
{
    const float temperature = s->a.until.temperature[l];
    if (threadIdx.x < WARP) {
        struct softmax_part all = {-INFINITY, 0};
        for (uint32_t b = threadIdx.x; b < gridDim.x; b += WARP) {
            const float2 part = __ldcg((const float2 *)s->a.store.until_parts + b);
            all.add(part.x, part.y, temperature);
        }
        add_lanes(&all, temperature);
        if (threadIdx.x == 0)
            s->parts[0] = 1 / all.sum;
    }
    __syncthreads();
    const float annealed = s->parts[0];
    const bool exited = annealed >= s->a.until.threshold[l];
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        struct until_state *state = s->a.until.state;
        state->probed[s->n_probes] = l;
        state->annealed[s->n_probes] = annealed;
        state->probes = s->n_probes + 1;
        state->exited = exited;
        state->probe_ns += globaltimer() - s->probe_start;
    }
    if (threadIdx.x == 0)
        s->n_probes++;
    return exited;
}

#endif
