/* The barrier of a cooperative grid. One barrier can be omitted (tests/emulator/mutations/omit.cc): a block then does
 * everything except wait for others. */
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
