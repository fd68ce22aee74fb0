/* Tests what blocks and grids of the emulator compute, in order and in random orders of threads. */
#include "base/clock.h"
#include "kernels/cuda/device/grid.cuh"
#include "kernels/cuda/device/ptx.cuh"
#include "tests/rigs/emulation_rig.cuh"
#include <cinttypes>

/* ---- blocks ---- */

enum { THREADS = 200 };

struct block_args {
    uint32_t *values; /* (blocks, THREADS), replaced by the sums of the block's earlier threads */
    uint32_t *counts; /* (blocks, 3) */
    bool forgets;     /* leaves out a barrier */
};

/* Computes the sum of all earlier threads in log steps, alternately in static and dynamic shared memory. */
static __global__ void
scan(struct block_args a)
{
    __shared__ uint32_t even[THREADS];
    SHARED_MEMORY(uint32_t, odd);
    const unsigned t = threadIdx.x;
    uint32_t *const values = a.values + blockIdx.x * THREADS, *from = even, *to = odd;
    from[t] = values[t];
    for (unsigned step = 1; step < THREADS; step *= 2) {
        if (!a.forgets)
            __syncthreads();
        to[t] = t >= step ? from[t] + from[t - step] : from[t];
        uint32_t *const other = from;
        from = to;
        to = other;
    }
    const int count = __syncthreads_count(values[t] % 3 == 0), all = __syncthreads_and(values[t] < 1000),
              any = __syncthreads_or(values[t] == 7);
    if (t == 0) {
        a.counts[blockIdx.x * 3] = (uint32_t)count;
        a.counts[blockIdx.x * 3 + 1] = (uint32_t)all;
        a.counts[blockIdx.x * 3 + 2] = (uint32_t)any;
    }
    values[t] = from[t];
}

/* Returns the number of blocks with wrong results. */
static unsigned
scan_once(int order, bool forgets)
{
    enum { BLOCKS = 4 };
    array<uint32_t> values(BLOCKS * THREADS), counts(BLOCKS * 3);
    uint32_t before[BLOCKS * THREADS];
    unsigned wrong = 0;
    for (size_t i = 0; i < BLOCKS * THREADS; i++)
        before[i] = values[i] = (uint32_t)(random64() % 1001);
    RUN(order,
        launch(scan, BLOCKS, THREADS, block_args{values.p, counts.p, forgets}, nullptr, THREADS * sizeof(uint32_t)));
    for (unsigned b = 0; b < BLOCKS; b++) {
        uint32_t sum = 0, expected[3] = {0, 1, 0};
        bool same = true;
        for (unsigned t = 0; t < THREADS; t++) {
            const uint32_t v = before[b * THREADS + t];
            same = same && values[b * THREADS + t] == (sum += v);
            expected[0] += v % 3 == 0;
            expected[1] &= v < 1000;
            expected[2] |= v == 7;
        }
        wrong += !same;
        assert_memory_equal(&counts[b * 3], expected, sizeof expected);
    }
    return wrong;
}

TEST(blocks_meet_at_barriers)
{
    for (int order = 0; order < 12; order++)
        assert_int_equal(scan_once(order, false), 0);
}

TEST(a_barrier_that_was_forgotten_shows)
{
    unsigned wrong = 0;
    for (int order = 0; order < 4; order++)
        wrong += scan_once(order, true);
    assert_true(wrong > 0);
}

struct exit_args {
    uint32_t *sums; /* (3) */
};

/* Neither their block nor their warp waits for threads that have returned. */
static __global__ void
leave_early(struct exit_args a)
{
    const unsigned t = threadIdx.x;
    if (t % 2 == 1 && t < 32)
        return;
    if (t < 32)
        atomicAdd(&a.sums[0], __popc(__ballot_sync(0xffffffffu, 1)));
    __syncthreads();
    if (t < 64)
        return;
    atomicAdd(&a.sums[1], (uint32_t)__syncthreads_count(1));
    if (t == 64)
        a.sums[2] = blockDim.x * gridDim.y + blockIdx.y * 1000 + threadIdx.z;
}

TEST(threads_that_returned_are_not_waited_for)
{
    for (int order = 0; order < ORDERS; order++) {
        array<uint32_t> sums(3, true);
        RUN(order, launch(leave_early, dim3(1, 2), 96, exit_args{sums.p}, nullptr));
        assert_int_equal(sums[0], 2 * 16 * 16);
        assert_int_equal(sums[1], 2 * 32 * 32);
        assert_int_equal(sums[2], 96 * 2 + 1000);
    }
}

/* ---- grids ---- */

enum { ROUNDS = 9 };

struct ring_args {
    struct dev_barrier *barrier;
    uint32_t *cells; /* (2, threads of the grid) */
};

/* In each round every thread adds the values of its neighbours in the grid from the round before. */
static __global__ void
ring(struct ring_args a)
{
    const unsigned all = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    struct grid_barrier barrier = grid_barrier_of(a.barrier);
    a.cells[i] = i;
    for (unsigned round = 0; round < ROUNDS; round++) {
        grid_sync(barrier, [] {});
        const uint32_t *const from = a.cells + round % 2 * all;
        a.cells[(round + 1) % 2 * all + i] = from[(i + 1) % all] + from[(i + all - 1) % all];
    }
}

TEST(the_blocks_of_a_cooperative_grid_meet)
{
    enum { BLOCKS = 3, ALL = BLOCKS * 96 };
    static uint32_t expected[2][ALL];
    for (unsigned i = 0; i < ALL; i++)
        expected[0][i] = i;
    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < ALL; i++)
            expected[(round + 1) % 2][i] =
                expected[round % 2][(i + 1) % ALL] + expected[round % 2][(i + ALL - 1) % ALL];
    for (int order = 0; order < 12; order++) {
        array<struct dev_barrier> barrier(1, true);
        array<uint32_t> cells(2 * ALL);
        RUN(order, launch_cooperative(ring, BLOCKS, 96, ring_args{barrier.p, cells.p}, nullptr));
        assert_memory_equal(&cells[ROUNDS % 2 * ALL], expected[ROUNDS % 2], sizeof expected[0]);
        assert_int_equal(barrier[0].arrived, ROUNDS % 2 * GRID_PHASE);
    }
}

struct atomic_args {
    uint32_t *words; /* (8) */
    float *sum;
};

static __global__ void
count_up(struct atomic_args a)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&a.words[0], i);
    atomicMax(&a.words[1], i * 7 % 1000);
    atomicMin(&a.words[2], 1000000 - i);
    atomicInc(&a.words[3], 9);
    atomicOr(&a.words[4], 1u << i % 32);
    atomicAdd(a.sum, 0.5f);
    while (atomicCAS(&a.words[5], 0u, 1u) != 0) {} /* a lock */
    a.words[6]++;
    if (i % 64 == 0)
        __syncwarp(1u << threadIdx.x % 32); /* lets other threads run */
    atomicExch(&a.words[5], 0u);
}

TEST(atomics_lose_nothing)
{
    enum { ALL = 3 * 128 };
    for (int order = 0; order < ORDERS; order++) {
        array<uint32_t> words(8, true);
        array<float> sum(1, true);
        words[2] = UINT32_MAX;
        RUN(order, launch_cooperative(count_up, 3, 128, atomic_args{words.p, sum.p}, nullptr));
        uint32_t most = 0;
        for (uint32_t i = 0; i < ALL; i++)
            most = i * 7 % 1000 > most ? i * 7 % 1000 : most;
        assert_int_equal(words[0], ALL * (ALL - 1) / 2);
        assert_int_equal(words[1], most);
        assert_int_equal(words[2], 1000000 - (ALL - 1));
        assert_int_equal(words[3], ALL % 10);
        assert_int_equal(words[4], 0xffffffffu);
        assert_int_equal(words[5], 0);
        assert_int_equal(words[6], ALL);
        assert_true(sum[0] == 0.5f * ALL);
    }
}

/* ---- speed ---- */

struct sum_args {
    float *out;
    unsigned times;
};

static __global__ void
sum_and_meet(struct sum_args a)
{
    float x = (float)threadIdx.x;
    for (unsigned i = 0; i < a.times; i++) {
        for (int apart = 16; apart > 0; apart /= 2)
            x += __shfl_xor_sync(0xffffffffu, x, apart);
        x *= 0x1p-5f;
        __syncthreads();
    }
    a.out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

TEST(the_emulator_switches_threads_at_barriers_and_exchanges)
{
    enum { TIMES = 100 };
    array<float> out(3 * 512);
    const uint64_t before = emulated_cuda_switches();
    const uint64_t start = clock_ns();
    RUN(0, launch_cooperative(sum_and_meet, 3, 512, sum_args{out.p, TIMES}, nullptr));
    const double s = (double)(clock_ns() - start) * 1e-9;
    const uint64_t n = emulated_cuda_switches() - before;
    print_message("%" PRIu64 " switches, %.1f million a second\n", n, (double)n / s * 1e-6);
    assert_true(n >= 3 * 512 * TIMES * 5 * 31 / 32); /* one thread in each warp continues alone */
    for (size_t i = 0; i < 3 * 512; i++)
        assert_true(out[i] == 15.5f + (float)(i % 512 / 32 * 32));
}
