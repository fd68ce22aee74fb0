/* The barrier of a cooperative grid, of which one can be left out (tests/cuda/emulation/watch.cc). */
#ifndef EMULATION_GRID_CUH
#define EMULATION_GRID_CUH

#include_next "kernels/cuda/grid.cuh"

#define grid_sync(...) (emulation::meets({__FILE__, __LINE__}) ? grid_sync(__VA_ARGS__) : (void)0)

#endif
