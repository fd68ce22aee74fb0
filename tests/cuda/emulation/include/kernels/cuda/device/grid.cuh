/* The barrier of a cooperative grid, of which one can be left out (tests/cuda/emulation/watch.cc): a block does what it does there,
 * but for waiting for others. */
#ifndef EMULATION_GRID_CUH
#define EMULATION_GRID_CUH

#include_next "kernels/cuda/device/grid.cuh"

template <class Meanwhile>
static inline void
grid_sync_alone(struct grid_barrier &, Meanwhile meanwhile)
{
    __syncthreads();
    if (threadIdx.x >= WARP)
        meanwhile();
    __syncthreads();
}

#define grid_sync(...) (emulation::meets({__FILE__, __LINE__}) ? grid_sync(__VA_ARGS__) : grid_sync_alone(__VA_ARGS__))

#endif
