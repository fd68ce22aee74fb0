/* The happens-before checker of the emulation (tests/cuda/emulation/races): it must
 * report nothing about kernels whose accesses are ordered, and must report the same kernels with one part
 * missing, in any order in which threads take turns. */
#include <ctime>

#include "kernels/cuda/device/grid.cuh"
#include "kernels/cuda/device/ptx.cuh"
#include "tests/rigs/emulation_rig.cuh"

enum { BLOCKS = 2, THREADS = 64 };

enum pattern {
    EXCHANGE,    /* in shared memory, over a barrier */
    REUSE,       /* of shared memory, after a barrier */
    WARP_CHANGE, /* in shared memory, over a __syncwarp */
    MESSAGE,     /* to another block, by release and acquire */
    FENCED,      /* to another block, by fences and atomics */
    LAST_BLOCK,  /* reads what all blocks have written */
    MEETING,     /* all blocks read what others wrote */
    HALVES,      /* of a word, by two threads */
    COUNTER,     /* atomics, read in the next grid */
    CONSTANT,    /* loads that take memory for constant */
    OWN_BARRIER, /* means nothing to other blocks */
    PATTERNS
};

enum missing { NOTHING, ONE, OTHER };

struct race_args {
    enum pattern pattern;
    enum missing missing;
    struct dev_barrier *barrier;
    uint32_t *data;    /* (BLOCKS * THREADS) */
    uint32_t *counter; /* 0 */
    uint32_t *out;     /* (BLOCKS * THREADS) */
};

static __device__ uint32_t
in_shared(const struct race_args &a, uint32_t *shared, unsigned t)
{
    const bool whole = a.missing == NOTHING;
    shared[t] = t;
    switch (a.pattern) {
    case EXCHANGE:
        if (whole)
            __syncthreads();
        return shared[THREADS - 1 - t];
    case REUSE: {
        __syncthreads();
        const uint32_t x = shared[(t + 32) % THREADS];
        if (whole)
            __syncthreads();
        shared[t] = x;
        return x;
    }
    default: /* a shuffle does not order what lanes do to memory */
        if (whole)
            __syncwarp();
        else
            __shfl_xor_sync(0xffffffffu, t, 1);
        return shared[t ^ 1];
    }
}

/* Block 0 writes, block 1 reads. */
static __device__ uint32_t
between_blocks(const struct race_args &a, unsigned t)
{
    const bool fenced = a.pattern == FENCED;
    if (blockIdx.x == 0) {
        a.data[t] = t;
        __syncthreads();
        if (t == 0 && !fenced && a.missing != ONE) {
            add_release(a.counter, 1);
        } else if (t == 0) {
            if (a.missing != ONE)
                __threadfence();
            atomicExch(a.counter, 1u);
        }
        return 0;
    }
    if (t == 0 && !fenced && a.missing != OTHER) {
        while (load_acquire(a.counter) == 0) {}
    } else if (t == 0) {
        while (atomicAdd(a.counter, 0u) == 0) {}
        if (a.missing != OTHER)
            __threadfence();
    }
    __syncthreads();
    return a.data[t];
}

static __device__ uint32_t
as_last(const struct race_args &a, unsigned t)
{
    __shared__ uint32_t last;
    a.data[blockIdx.x * THREADS + t] = t;
    if (a.missing != ONE)
        __syncthreads();
    if (t == 0)
        last = add_acquire_release(a.counter, 1) == BLOCKS - 1;
    if (a.missing != OTHER)
        __syncthreads();
    uint32_t sum = 0;
    for (unsigned i = 0; i < BLOCKS && last; i++)
        sum += a.data[i * THREADS + THREADS - 1 - t];
    return sum;
}

static __device__ uint32_t
all_blocks(const struct race_args &a, unsigned t)
{
    const unsigned own = blockIdx.x * THREADS + t, other = BLOCKS * THREADS - 1 - own;
    struct grid_barrier barrier = grid_barrier_of(a.barrier);
    a.data[own] = own;
    if (a.missing != ONE)
        grid_sync(barrier, [] {});
    const uint32_t x = a.data[other];
    if (a.missing != OTHER)
        grid_sync(barrier, [] {});
    a.data[own] = x;
    return x;
}

static __device__ uint32_t
in_words(const struct race_args &a, unsigned t)
{
    const unsigned own = blockIdx.x * THREADS + t;
    switch (a.pattern) {
    case HALVES: ((uint16_t *)a.data)[a.missing == NOTHING ? own : own / 2] = (uint16_t)t; return 0;
    case COUNTER:
        if (a.missing == NOTHING || own > 0)
            atomicAdd(a.counter, 1u);
        else
            ++*a.counter;
        return 0;
    case CONSTANT: {
        uint32_t x;
        if (a.missing == OTHER)
            a.data[own] = t;
        load_weights(&x, &a.data[own], true);
        if (a.missing == ONE)
            a.data[own] = x;
        return x;
    }
    default:
        if (blockIdx.x == 0 || a.missing == NOTHING)
            a.data[own] = t;
        __syncthreads();
        return a.data[a.missing == NOTHING ? blockIdx.x * THREADS + (t + 1) % THREADS : t];
    }
}

static __global__ void
race(struct race_args a)
{
    SHARED_MEMORY(uint32_t, shared);
    const unsigned t = threadIdx.x;
    uint32_t x;
    switch (a.pattern) {
    case EXCHANGE:
    case REUSE:
    case WARP_CHANGE: x = in_shared(a, shared, t); break;
    case MESSAGE:
    case FENCED: x = between_blocks(a, t); break;
    case LAST_BLOCK: x = as_last(a, t); break;
    case MEETING: x = all_blocks(a, t); break;
    default: x = in_words(a, t);
    }
    a.out[blockIdx.x * THREADS + t] = x;
}

/* What is said of it; "" if nothing. The device is lost in the other case, and replaced. */
static const char *
said_of(enum pattern pattern, enum missing missing, uint64_t order)
{
    struct race_args a = {pattern, missing, nullptr, nullptr, nullptr, nullptr};
    const size_t all = BLOCKS * THREADS * sizeof(uint32_t);
    const bool together = pattern == MESSAGE || pattern == FENCED || pattern == MEETING;
    SUCCEEDS(cudaMalloc(&a.barrier, sizeof *a.barrier));
    SUCCEEDS(cudaMalloc(&a.data, all));
    SUCCEEDS(cudaMalloc(&a.counter, sizeof *a.counter));
    SUCCEEDS(cudaMalloc(&a.out, all));
    SUCCEEDS(cudaMemset(a.barrier, 0, sizeof *a.barrier));
    SUCCEEDS(cudaMemset(a.counter, 0, sizeof *a.counter));
    emulated_cuda_seed(order);
    const size_t shared = THREADS * sizeof(uint32_t);
    for (int times = 0; times < 2; times++) { /* a grid comes behind what the one before it did */
        if (times == 1 && (pattern == MESSAGE || pattern == FENCED || pattern == LAST_BLOCK))
            SUCCEEDS(cudaMemset(a.counter, 0, sizeof *a.counter));
        SUCCEEDS(together ? launch_cooperative(race, BLOCKS, THREADS, a, nullptr, shared)
                          : launch(race, BLOCKS, THREADS, a, nullptr, shared));
        if (cudaDeviceSynchronize() != cudaSuccess) {
            emulated_cuda_fail(0, EMULATED_LOST);
            return emulated_cuda_complaint();
        }
    }
    SUCCEEDS(cudaFree(a.barrier));
    SUCCEEDS(cudaFree(a.data));
    SUCCEEDS(cudaFree(a.counter));
    SUCCEEDS(cudaFree(a.out));
    return "";
}

static void
test_accesses_that_are_in_order_are_let_pass(void **)
{
    for (int pattern = 0; pattern < PATTERNS; pattern++)
        for (uint64_t order = 0; order < 6; order++) {
            const char *said = said_of((enum pattern)pattern, NOTHING, order);
            if (said[0] != '\0')
                fail_msg("pattern %d: %s", pattern, said);
        }
}

static void
assert_finds(enum pattern pattern, enum missing missing, const char *what)
{
    for (uint64_t order = 0; order < 6; order++) {
        const char *said = said_of(pattern, missing, order);
        if (strncmp(said, "race: ", 6) != 0 || strstr(said, what) == nullptr)
            fail_msg("pattern %d, order %d: '%s' does not say '%s'", pattern, (int)order, said, what);
    }
}

static void
test_what_nothing_orders_is_found_with_both_places(void **)
{
    for (enum pattern p : {EXCHANGE, REUSE, WARP_CHANGE, HALVES, OWN_BARRIER}) {
        assert_finds(p, ONE, "nothing orders the two");
        assert_finds(p, ONE, "at tests/unit/cuda/test_races.cc:");
        assert_finds(p, ONE, " of block ");
    }
    assert_finds(COUNTER, ONE, "nothing orders the two");
    for (enum pattern p : {LAST_BLOCK, MEETING}) {
        assert_finds(p, ONE, "nothing orders the two");
        assert_finds(p, OTHER, "nothing orders the two");
    }
    for (enum pattern p : {MESSAGE, FENCED})
        assert_finds(p, ONE, "nothing orders the two");
}

static void
test_what_is_seen_to_be_written_and_not_acquired_may_be_an_old_line(void **)
{
    assert_finds(MESSAGE, OTHER, "an old line in L1");
    assert_finds(FENCED, OTHER, "an old line in L1");
}

static void
test_what_is_taken_for_constant_is_not_written(void **)
{
    assert_finds(CONSTANT, ONE, "takes it for constant");
    assert_finds(CONSTANT, OTHER, "takes it for constant");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accesses_that_are_in_order_are_let_pass),
        cmocka_unit_test(test_what_nothing_orders_is_found_with_both_places),
        cmocka_unit_test(test_what_is_seen_to_be_written_and_not_acquired_may_be_an_old_line),
        cmocka_unit_test(test_what_is_taken_for_constant_is_not_written),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
