/* The barrier of a cooperative grid. */
#ifndef KERNELS_CUDA_DEVICE_GRID_CUH
#define KERNELS_CUDA_DEVICE_GRID_CUH

#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/device/ptx.cuh"

#define GRID_PHASE 0x80000000u /* flips when all blocks have arrived */
#define GRID_POLLS 256         /* between readings of the clock */

/* The barrier's state in thread 0 of a block. The barrier's phase cannot change before this block has arrived, so it is
 * read once, at the start. `place` is the note of a block that waits too long (layout.h). */
struct grid_barrier {
    struct dev_barrier *barrier;
    uint32_t phase, place;
};

static __device__ __forceinline__ struct grid_barrier
grid_barrier_of(struct dev_barrier *b)
{
    return {b, threadIdx.x == 0 ? load_acquire(&b->arrived) & GRID_PHASE : 0, 0};
}

/* ---- waiting too long ---- */

struct grid_wait {
    /* Nanoseconds: the last reading, the total wait. A long gap between two readings counts little, because a GPU that
     * was suspended or used by another process does not wait. */
    uint64_t looked, waited;
    bool noted;
};

/* Checks the wait. A block that waits too long first writes a note where it waits. It continues to wait, so that all
 * others can do the same: a block without a note never arrived. Later it ends the kernel. */
static __device__ __forceinline__ void
check_clock(const struct grid_barrier &b, struct grid_wait *w)
{
    const uint64_t now = globaltimer(), since = now - w->looked, patience = b.barrier->patience;
    w->looked = now;
    w->waited += since < GRID_CLOCK_STEP ? since : GRID_CLOCK_STEP;
    if (patience == 0 || w->waited < patience)
        return;
    if (w->noted && w->waited >= 2 * patience)
        trap_grid();
    w->noted = true;
    b.barrier->notes[blockIdx.x] = b.place;
    __threadfence_system();
}

static __device__ __forceinline__ void
wait_for_phase(const struct grid_barrier &b)
{
    struct grid_wait w = {0, 0, false};
    for (uint32_t polls = 1; (load_acquire(&b.barrier->arrived) & GRID_PHASE) != b.phase; polls++)
        if (polls % GRID_POLLS == 0)
            check_clock(b, &w);
    if (w.noted)
        b.barrier->notes[blockIdx.x] = 0;
}

/* ---- the barrier ---- */

/* All writes before the barrier by any thread of the grid are visible to all threads after it. Thread 0 signals the
 * block's arrival and waits; meanwhile the other warps call `meanwhile()`, which must not access the results of other
 * blocks. Each block adds one, and the first block adds the difference to GRID_PHASE, so that the counter needs no
 * reset and no block has to be the last. */
template <class Meanwhile>
static __device__ __forceinline__ void
grid_sync(struct grid_barrier &b, Meanwhile meanwhile)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        add_release(&b.barrier->arrived, blockIdx.x == 0 ? GRID_PHASE - (gridDim.x - 1) : 1);
        b.phase ^= GRID_PHASE;
        wait_for_phase(b);
    } else if (threadIdx.x >= WARP) {
        meanwhile();
    }
    __syncthreads();
}

#endif
