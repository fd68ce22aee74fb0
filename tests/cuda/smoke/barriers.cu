/* Checks the barrier of the grid (kernels/cuda/device/grid.cuh) many times. After each barrier threads read values that
 * threads of other blocks wrote before it, as in a forward pass. */
#include "tests/cuda/smoke/run.h"

#include "kernels/cuda/device/grid.cuh"

#define PATIENCE 5000000000u /* nanoseconds, as in forward passes */

struct barrier_args {
    struct dev_barrier *barrier;
    uint4 *words; /* (2, blocks, BLOCK_THREADS) */
    uint32_t n;
    uint32_t *wrong; /* number of wrong values; barrier, block, thread and value of the first */
};

static __global__ void
__launch_bounds__(BLOCK_THREADS, 1) meet_again_and_again(struct barrier_args a)
{
    struct grid_barrier barrier = grid_barrier_of(a.barrier);
    const uint32_t thread = thread_here(), place = blockIdx.x * BLOCK_THREADS + thread;
    for (uint32_t i = 0; i < a.n; i++) {
        uint4 *const words = a.words + (size_t)(i % 2) * gridDim.x * BLOCK_THREADS;
        words[place] = make_uint4(i, place, 0, 0);
        grid_sync(barrier, [] {});
        const uint32_t other = (blockIdx.x + 1 + i) % gridDim.x * BLOCK_THREADS + (thread + i) % BLOCK_THREADS;
        uint4 got;
        load_state(&got, &words[other]);
        if ((got.x != i || got.y != other) && atomicAdd(&a.wrong[0], 1u) == 0) {
            a.wrong[1] = i;
            a.wrong[2] = blockIdx.x;
            a.wrong[3] = thread;
            a.wrong[4] = got.x;
        }
    }
}

bool
smoke_barriers(struct smoke *s)
{
    begin(s);
    const uint32_t n = s->size == SMOKE_WHOLE ? 100000 : s->size == SMOKE_REAL ? 10000 : 100;
    const uint32_t blocks = blocks_of(meet_again_and_again, 0);
    void *notes = nullptr;
    SUCCEEDS(cudaHostAlloc(&notes, blocks * sizeof(uint32_t), cudaHostAllocDefault));
    struct dev_barrier rest = {};
    rest.patience = PATIENCE; /* a block that hangs ends the kernel, and with it the program: smoke_must() */
    rest.notes = (uint32_t *)notes;
    struct dev_barrier *barrier = on_device(std::vector<struct dev_barrier>(1, rest));
    uint4 *words = on_device(std::vector<uint4>((size_t)2 * blocks * BLOCK_THREADS));
    uint32_t *wrong = on_device(std::vector<uint32_t>(5, 0));
    cudaEvent_t begun, done;
    float ms = 0;
    SUCCEEDS(cudaEventCreate(&begun));
    SUCCEEDS(cudaEventCreate(&done));
    for (int launches = 0; launches < 2;
         launches++) { /* the second launch uses the barrier in the state after the first */
        SUCCEEDS(cudaEventRecord(begun, nullptr));
        run(meet_again_and_again, barrier_args{barrier, words, n, wrong}, 0);
        SUCCEEDS(cudaEventRecord(done, nullptr));
        SUCCEEDS(cudaEventSynchronize(done));
        SUCCEEDS(cudaEventElapsedTime(&ms, begun, done));
    }
    const std::vector<uint32_t> got = fetched(wrong, 5);
    SUCCEEDS(cudaEventDestroy(begun));
    SUCCEEDS(cudaEventDestroy(done));
    SUCCEEDS(cudaFree(barrier));
    SUCCEEDS(cudaFreeHost(notes));
    SUCCEEDS(cudaFree(words));
    SUCCEEDS(cudaFree(wrong));
    if (got[0] > 0)
        return smoke_says(
            s, false,
            "%u times another block's word was not there; first at barrier %u: thread %u of block %u read "
            "what was written before barrier %u",
            got[0], got[1], got[3], got[2], got[4]);
    return smoke_says(s, true, "twice %u of %u blocks, %.2f us each with a write and a read", n, blocks,
                      (double)ms * 1e3 / n);
}
