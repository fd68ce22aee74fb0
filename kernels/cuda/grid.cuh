/* The blocks of a cooperative grid meet. */
#ifndef KERNELS_CUDA_GRID_CUH
#define KERNELS_CUDA_GRID_CUH

#include "kernels/cuda/layout.h"
#include "kernels/cuda/ptx.cuh"

/* What was written before it by any thread of the grid is seen after it by all. Between arriving and waiting a block
 * does `meanwhile()`, which neither reads nor writes what others compute. The last to arrive lets the others go; the
 * barrier is at rest again then, whatever the number of meetings. */
template <class Meanwhile>
static __device__ __forceinline__ void
grid_meet(struct dev_barrier *b, Meanwhile meanwhile)
{
    uint32_t generation = 0;
    bool last = false;
    __syncthreads();
    if (threadIdx.x == 0) {
        generation = load_acquire(&b->generation);
        __threadfence();
        last = add_acquire_release(&b->arrived, 1) == gridDim.x - 1;
        if (last) {
            b->arrived = 0;
            store_release(&b->generation, generation + 1);
        }
    }
    meanwhile();
    if (threadIdx.x == 0) {
        while (!last && load_acquire(&b->generation) == generation) {}
        __threadfence();
    }
    __syncthreads();
}

#endif
