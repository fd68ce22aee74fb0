/* Errors that the emulator (tests/emulator) finds: kernels that would hang or be undefined on a GPU, reads of memory
 * that was never written, copies to wrong addresses. */
#include "kernels/cuda/device/grid.cuh"
#include "kernels/cuda/device/ptx.cuh"
#include "tests/rigs/emulation_rig.cuh"

/* ---- kernels that are wrong ---- */

struct wrong_args {
    int what;
    struct dev_barrier *barrier;
    uint32_t *out;
};

enum {
    MISSING_AT_BARRIER,
    TWO_BARRIERS,
    ARRIVED_ALONE,
    WAITS_ALONE,
    TWO_COUNTS,
    MISSING_AT_SHUFFLE,
    TWO_SHUFFLES,
    OUTSIDE_THE_MASK,
    HALF_A_MATRIX,
    ANOTHER_MASK,
    MISSING_AT_GRID,
    FETCHED_ASKEW,
    FETCHED_BEHIND,
    MISALIGNED
};

static __global__ void
go_wrong(struct wrong_args a)
{
    const unsigned t = threadIdx.x;
    float d[4] = {};
    const uint32_t zeros[4] = {};
    uint4 loaded = {};
    switch (a.what) {
    case MISSING_AT_BARRIER:
        if (t == 40) {
            while (load_acquire(a.out) == 0) {} /* no thread writes it */
        }
        __syncthreads();
        break;
    case TWO_BARRIERS:
        if (t < 32)
            __syncthreads();
        else
            __syncthreads();
        break;
    case ARRIVED_ALONE:
        if (t < 32)
            barrier_arrive(1, 64);
        break;
    case WAITS_ALONE:
        if (t < 32)
            barrier_sync(1, 64);
        break;
    case TWO_COUNTS: barrier_sync(1, t < 32 ? 64 : 32); break;
    case MISSING_AT_SHUFFLE:
        if (t % 32 != 5)
            a.out[t] = __shfl_sync(0xffffffffu, t, 5);
        __syncthreads();
        break;
    case TWO_SHUFFLES:
        if (t % 32 < 16)
            a.out[t] = __shfl_sync(0xffffffffu, t, 0);
        else
            a.out[t] = __shfl_sync(0xffffffffu, t, 1);
        break;
    case OUTSIDE_THE_MASK: __syncwarp(0xfffffffeu); break;
    case HALF_A_MATRIX:
        if (t % 32 < 16)
            return;
        mma_f16(d, zeros, 0, 0);
        break;
    case ANOTHER_MASK: a.out[t] = __ballot_sync(t % 2 ? 0xffffffffu : 0xffffff7fu, 1); break;
    case MISSING_AT_GRID:
        if (blockIdx.x != 1) {
            struct grid_barrier barrier = grid_barrier_of(a.barrier);
            grid_sync(barrier, [] {});
        }
        break;
    case FETCHED_ASKEW: prefetch_l2((const char *)a.out + 8, 32, 0, 1); break;
    case FETCHED_BEHIND: prefetch_l2(a.out + 48, 128, 0, 1); break;
    default: load_weights(&loaded, (const char *)a.out + 4, true); a.out[t] = loaded.x;
    }
    a.out[0] = (uint32_t)d[0] + 1;
}

/* Returns the emulator's message. The device is then lost and replaced. */
static const char *
complaint_of(int what, uint64_t order)
{
    struct dev_barrier *barrier;
    uint32_t *out;
    SUCCEEDS(cudaMalloc(&barrier, sizeof *barrier));
    SUCCEEDS(cudaMalloc(&out, 64 * sizeof *out));
    SUCCEEDS(cudaMemset(barrier, 0, sizeof *barrier));
    SUCCEEDS(cudaMemset(out, 0, 64 * sizeof *out));
    emulated_cuda_seed(order);
    SUCCEEDS(launch_cooperative(go_wrong, 3, 64, wrong_args{what, barrier, out}, nullptr));
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    assert_int_equal(cudaMalloc(&out, 1), cudaErrorLaunchFailure);
    assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure);
    emulated_cuda_fail(0, EMULATED_LOST);
    assert_int_equal(emulated_cuda_allocations(), 0);
    return emulated_cuda_complaint();
}

static void
assert_complains(int what, const char *of, const char *where)
{
    for (uint64_t order = 0; order < 4; order++) {
        const char *said = complaint_of(what, order);
        if (strncmp(said, "go_wrong: ", 10) != 0 || strstr(said, of) == nullptr || strstr(said, where) == nullptr)
            fail_msg("'%s' does not say '%s' and '%s'", said, of, where);
    }
}

TEST(a_barrier_that_not_all_reach_is_an_error)
{
    assert_complains(MISSING_AT_BARRIER, "waits for a barrier of the block", "test_emulator_errors.cc:");
    assert_complains(TWO_BARRIERS, "is at another barrier than threads of its block", "test_emulator_errors.cc:");
}

TEST(a_named_barrier_that_too_few_threads_reach_is_an_error)
{
    assert_complains(ARRIVED_ALONE, "barrier 1: only 32 of 64", "threads arrived");
    assert_complains(WAITS_ALONE, "waits for a barrier of the block", "test_emulator_errors.cc:");
    assert_complains(TWO_COUNTS, "arrives at a barrier of", "test_emulator_errors.cc:");
}

TEST(lanes_that_part_ways_are_an_error)
{
    assert_complains(MISSING_AT_SHUFFLE, "waits for a shuffle", "no thread can run");
    assert_complains(TWO_SHUFFLES, "diverges from lanes", "test_emulator_errors.cc:");
    assert_complains(OUTSIDE_THE_MASK, "is not in its own mask", "thread 0 ");
    assert_complains(ANOTHER_MASK, "diverges from lanes", "ffffff7f");
}

TEST(a_matrix_instruction_needs_its_whole_warp)
{
    assert_complains(HALF_A_MATRIX, "matrix instruction", "test_emulator_errors.cc:");
}

TEST(a_grid_that_waits_for_a_block_that_has_left_is_an_error)
{
    assert_complains(MISSING_AT_GRID, "waits for memory to change", "grid.cuh:");
}

TEST(a_misaligned_load_is_an_error)
{
    assert_complains(MISALIGNED, "not a multiple of this size", "test_emulator_errors.cc:");
    assert_complains(FETCHED_ASKEW, "not a multiple of 32", "test_emulator_errors.cc:");
    assert_complains(FETCHED_BEHIND, "not device memory", "test_emulator_errors.cc:");
}

/* ---- a barrier that waits for too long ---- */

struct late_args {
    struct dev_barrier *barrier;
    const uint32_t *note; /* block 1 waits for this word before it arrives; NULL: it never arrives */
};

static __global__ void
come_late(struct late_args a)
{
    struct grid_barrier barrier = grid_barrier_of(a.barrier);
    barrier.place = 77 + blockIdx.x;
    while (blockIdx.x == 1 && a.note != nullptr && threadIdx.x == 0 && load_acquire(a.note) == 0) {}
    if (blockIdx.x != 1 || a.note != nullptr)
        grid_sync(barrier, [] {});
}

TEST(a_thread_that_waits_too_long_reports_its_place_before_the_kernel_ends)
{
    for (uint64_t order = 0; order < 4; order++) {
        uint32_t notes[3] = {};
        const struct dev_barrier rest = {0, {}, {}, 1, notes};
        struct dev_barrier *barrier;
        emulated_cuda_seed(order);
        for (int late = 1; late >= 0; late--) { /* a late block is waited for; a missing block ends the kernel */
            SUCCEEDS(cudaMalloc(&barrier, sizeof *barrier));
            SUCCEEDS(cudaMemcpy(barrier, &rest, sizeof rest, cudaMemcpyHostToDevice));
            SUCCEEDS(launch_cooperative(come_late, 3, 64, late_args{barrier, late ? &notes[2] : nullptr}, nullptr));
            assert_int_equal(cudaDeviceSynchronize(), late ? cudaSuccess : cudaErrorLaunchFailure);
            for (uint32_t i = 0; i < 3; i++)
                assert_int_equal(notes[i], late || i == 1 ? 0 : 77 + i);
            if (late)
                SUCCEEDS(cudaFree(barrier));
        }
        assert_non_null(strstr(emulated_cuda_complaint(), "ends the kernel"));
        (void)cudaGetLastError();
        emulated_cuda_fail(0, EMULATED_LOST);
    }
}

TEST(kernels_get_the_shared_memory_that_a_gpu_has)
{
    uint32_t blocks = 0;
    for (const char *capability : {"80", "86", "90"}) {
        setenv("EMULATED_CUDA_CAPABILITY", capability, 1);
        const bool fits = strcmp(capability, "86") != 0;
        SUCCEEDS(resident_blocks(go_wrong, 0, 64, 99 << 10, &blocks));
        assert_int_equal(blocks, 3);
        assert_int_equal(resident_blocks(go_wrong, 0, 64, 160 << 10, &blocks) == cudaSuccess, fits);
    }
    unsetenv("EMULATED_CUDA_CAPABILITY");
}

static __global__ void wants_much(struct wrong_args)
{
}

TEST(more_than_48_kib_is_for_kernels_that_asked)
{
    uint32_t blocks = 0;
    SUCCEEDS(launch(wants_much, 1, 32, wrong_args{}, nullptr, 48 << 10));
    assert_int_equal(launch(wants_much, 1, 32, wrong_args{}, nullptr, 64 << 10), cudaErrorInvalidValue);
    SUCCEEDS(resident_blocks(wants_much, 0, 32, 64 << 10, &blocks));
    SUCCEEDS(launch(wants_much, 1, 32, wrong_args{}, nullptr, 64 << 10));
    assert_int_equal(launch(wants_much, 1, 32, wrong_args{}, nullptr, 65 << 10), cudaErrorInvalidValue);
    SUCCEEDS(cudaDeviceSynchronize());
    (void)cudaGetLastError();
}

struct own_args {
    uint32_t *out;
};

static __global__ void
has_static_memory(struct own_args a)
{
    __shared__ uint32_t own;
    if (threadIdx.x == 0)
        own = blockIdx.x;
    __syncthreads();
    a.out[blockIdx.x] = own;
}

TEST(static_shared_memory_in_a_cooperative_kernel_is_an_error)
{
    uint32_t *out;
    SUCCEEDS(cudaMalloc(&out, 2 * sizeof *out));
    SUCCEEDS(launch(has_static_memory, 2, 32, own_args{out}, nullptr));
    SUCCEEDS(cudaDeviceSynchronize());
    assert_int_equal(out[1], 1);
    SUCCEEDS(launch_cooperative(has_static_memory, 2, 32, own_args{out}, nullptr));
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    assert_non_null(strstr(emulated_cuda_complaint(), "has_static_memory: "));
    emulated_cuda_fail(0, EMULATED_LOST);
}

TEST(launches_that_no_gpu_takes_are_refused)
{
    const own_args none = {nullptr};
    assert_int_equal(launch(has_static_memory, 0, 32, none, nullptr), cudaErrorInvalidConfiguration);
    assert_int_equal(launch(has_static_memory, 1, 1025, none, nullptr), cudaErrorInvalidConfiguration);
    assert_int_equal(launch(has_static_memory, 1, 1, none, nullptr, (size_t)1 << 20), cudaErrorInvalidValue);
    assert_int_equal(launch_cooperative(has_static_memory, 4, 32, none, nullptr), cudaErrorCooperativeLaunchTooLarge);
    assert_int_equal(cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

/* ---- memory ---- */

struct copy_args {
    const unsigned char *from;
    unsigned char *to;
};

static __global__ void
copy_shared(struct copy_args a)
{
    __shared__ unsigned char own[64];
    SHARED_MEMORY(unsigned char, dynamic);
    a.to[threadIdx.x] = own[threadIdx.x];
    a.to[64 + threadIdx.x] = dynamic[threadIdx.x];
    a.to[128 + threadIdx.x] = a.from[threadIdx.x];
    __syncthreads();
    own[threadIdx.x] = dynamic[threadIdx.x] = 1; /* the next block must not find this value */
}

TEST(memory_that_nobody_wrote_is_poison)
{
    unsigned char *from, *to, host[192], expected[192];
    SUCCEEDS(cudaMalloc(&from, 64));
    SUCCEEDS(cudaMalloc(&to, 192));
    SUCCEEDS(launch(copy_shared, 3, 64, copy_args{from, to}, nullptr, 64));
    SUCCEEDS(cudaMemcpy(host, to, 192, cudaMemcpyDeviceToHost));
    memset(expected, emulation::POISON, sizeof expected);
    assert_memory_equal(host, expected, sizeof host);
    SUCCEEDS(cudaFree(from));
    SUCCEEDS(cudaFree(to));
}

TEST(copies_stay_where_they_may_go)
{
    char *device, host[8] = "";
    SUCCEEDS(cudaMalloc(&device, 8));
    assert_int_equal(cudaMemcpy(device, host, 9, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(device + 4, host, 5, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(host, device, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(host, host, 8, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    assert_int_equal(cudaMemset(device, 0, 9), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy2DAsync(device, 4, host, 3, 4, 1, cudaMemcpyHostToDevice, nullptr),
                     cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy2DAsync(device, 4, host, 4, 3, 3, cudaMemcpyHostToDevice, nullptr),
                     cudaErrorInvalidValue);
    assert_int_equal(cudaFree(device + 1), cudaErrorInvalidValue);
    SUCCEEDS(cudaFree(device));
    assert_int_equal(cudaFree(device), cudaErrorInvalidValue);
}
