/* The barrier of a cooperative grid. */
#ifndef KERNELS_CUDA_GRID_CUH
#define KERNELS_CUDA_GRID_CUH

#include "kernels/cuda/layout.h"
#include "kernels/cuda/ptx.cuh"

/* What thread 0 of a block has to remember: how often the grid came to it. The count in memory cannot move on before this
 * block has arrived, so it is read once, at the start. */
struct grid_barrier {
    struct dev_barrier *barrier;
    uint32_t generation;
};

static __device__ __forceinline__ struct grid_barrier
grid_barrier_of(struct dev_barrier *b)
{
    return {b, threadIdx.x == 0 ? load_acquire(&b->generation) : 0};
}

/* What was written before it by any thread of the grid is seen after it by all. Between arriving and waiting a block
 * does `meanwhile()`, which touches nothing that others compute. The last to arrive lets the others go; `arrived` is 0
 * again then. */
template <class Meanwhile>
static __device__ __forceinline__ void
grid_sync(struct grid_barrier &b, Meanwhile meanwhile)
{
    bool last = false;
    __syncthreads();
    if (threadIdx.x == 0) {
        last = add_acquire_release(&b.barrier->arrived, 1) == gridDim.x - 1;
        if (last) {
            b.barrier->arrived = 0;
            store_release(&b.barrier->generation, b.generation + 1);
        }
    }
    meanwhile();
    if (threadIdx.x == 0) {
        while (!last && load_acquire(&b.barrier->generation) == b.generation) {}
        b.generation++;
    }
    __syncthreads();
}

#endif
