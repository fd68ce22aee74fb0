/* Stamps of a sweep's phases (trace.h), by threads of every block. */
#ifndef KERNELS_CUDA_DEVICE_STAMPS_CUH
#define KERNELS_CUDA_DEVICE_STAMPS_CUH

#include "kernels/cuda/device/finish.cuh"
#include "kernels/cuda/device/stamps.h"

#define STAMP_THREAD (4 * WARP) /* of those that do not wait at a barrier (sweep.cu) */

static __device__ __forceinline__ void
stamp_begin(const struct sweep_args &a)
{
    if (a.stamps != NULL && blockIdx.x == 0 && threadIdx.x == 0)
        a.stamps[STAMPED_BEGIN] = globaltimer();
}

/* All warps of the block have come to the barrier. */
static __device__ __forceinline__ void
stamp_coming(const struct sweep_shared *s)
{
    if (s->a.stamps != NULL && thread_here() == STAMP_THREAD)
        s->a.stamps[stamps_at(s->n_stamps, gridDim.x) + STAMP_CAME + blockIdx.x] = globaltimer();
}

/* The barrier behind this step is past. */
static __device__ __forceinline__ void
stamp_leaving(struct sweep_shared *s, uint32_t layer, uint32_t step)
{
    if (s->a.stamps == NULL || threadIdx.x != 0)
        return;
    if (blockIdx.x == 0) {
        uint64_t *const phase = s->a.stamps + stamps_at(s->n_stamps, gridDim.x);
        phase[STAMP_PLACE] = grid_place(layer, step);
        phase[STAMP_LEFT] = globaltimer();
        s->a.stamps[STAMPED_PHASES] = s->n_stamps + 1;
    }
    s->n_stamps++;
}

#endif
