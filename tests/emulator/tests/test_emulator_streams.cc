/* Tests the emulator's streams, whose work does not run before the host waits, and its faults. */
#include "tests/rigs/emulation_rig.cuh"

/* ---- waiting ---- */

struct add_args {
    uint32_t *word;
};

static __global__ void
add_one(struct add_args a)
{
    *a.word += 1;
}

struct scene {
    cudaStream_t stream, other;
    uint32_t *device, *host;
};

static struct scene
open_scene()
{
    struct scene s;
    void *p;
    SUCCEEDS(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
    SUCCEEDS(cudaStreamCreateWithFlags(&s.other, cudaStreamNonBlocking));
    SUCCEEDS(cudaMalloc(&s.device, 16));
    SUCCEEDS(cudaHostAlloc(&p, 16, cudaHostAllocDefault));
    s.host = (uint32_t *)p;
    SUCCEEDS(cudaMemset(s.device, 0, 16));
    SUCCEEDS(cudaDeviceSynchronize());
    return s;
}

static void
close_scene(struct scene *s)
{
    SUCCEEDS(cudaStreamDestroy(s->stream));
    SUCCEEDS(cudaStreamDestroy(s->other));
    SUCCEEDS(cudaFree(s->device));
    SUCCEEDS(cudaFreeHost(s->host));
    assert_int_equal(emulated_cuda_allocations(), 0);
}

TEST(a_stream_does_nothing_before_the_host_waits)
{
    struct scene s = open_scene();
    s.host[0] = 0;
    for (int i = 0; i < 5; i++)
        SUCCEEDS(launch(add_one, 1, 1, add_args{s.device}, s.stream));
    SUCCEEDS(cudaMemcpyAsync(s.host, s.device, 4, cudaMemcpyDeviceToHost, s.stream));
    assert_int_equal(s.host[0], 0);
    SUCCEEDS(cudaStreamSynchronize(s.other));
    assert_int_equal(s.device[0], 0);
    SUCCEEDS(cudaStreamSynchronize(s.stream));
    assert_int_equal(s.host[0], 5);
    close_scene(&s);
}

TEST(a_copy_reads_its_source_when_it_runs)
{
    struct scene s = open_scene();
    uint32_t pageable = 3;
    s.host[0] = 1;
    SUCCEEDS(cudaMemcpyAsync(s.device, s.host, 4, cudaMemcpyHostToDevice, s.stream));
    s.host[0] = 2; /* too early */
    SUCCEEDS(cudaStreamSynchronize(s.stream));
    assert_int_equal(s.device[0], 2);
    SUCCEEDS(cudaMemcpy(s.device, &pageable, 4, cudaMemcpyHostToDevice));
    pageable = 4; /* too late to change the copy, which was staged */
    assert_int_equal(s.device[0], 2);
    SUCCEEDS(cudaDeviceSynchronize());
    assert_int_equal(s.device[0], 3);
    close_scene(&s);
}

TEST(a_copy_of_rows_leaves_out_what_is_between_them)
{
    struct scene s = open_scene();
    uint32_t rows[5] = {1, 2, 3, 4, 5};
    SUCCEEDS(cudaMemcpy2DAsync(s.device, 4, rows, 8, 4, 3, cudaMemcpyHostToDevice, s.stream));
    memset(rows, 0, sizeof rows); /* too late to change the copy */
    SUCCEEDS(cudaMemcpy2DAsync(s.host, 8, s.device + 1, 4, 4, 2, cudaMemcpyDeviceToHost, s.stream));
    s.host[0] = s.host[1] = 9;
    SUCCEEDS(cudaStreamSynchronize(s.stream));
    assert_int_equal(s.device[0], 1);
    assert_int_equal(s.host[0], 3);
    assert_int_equal(s.host[1], 9);
    assert_int_equal(s.host[2], 5);
    close_scene(&s);
}

TEST(streams_wait_for_each_other_only_where_they_are_told)
{
    struct scene s = open_scene();
    cudaEvent_t event;
    const uint32_t seven = 7;
    SUCCEEDS(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    SUCCEEDS(cudaMemcpy(s.device, &seven, 4, cudaMemcpyHostToDevice));
    SUCCEEDS(launch(add_one, 1, 1, add_args{s.device}, s.stream)); /* does not wait for the default stream */
    SUCCEEDS(cudaStreamSynchronize(s.stream));
    assert_int_equal(s.device[0], 1);
    SUCCEEDS(cudaDeviceSynchronize());
    assert_int_equal(s.device[0], 7);

    SUCCEEDS(launch(add_one, 1, 1, add_args{s.device}, s.stream));
    SUCCEEDS(cudaEventRecord(event, s.stream));
    SUCCEEDS(launch(add_one, 1, 1, add_args{s.device + 1}, s.stream));
    SUCCEEDS(cudaStreamWaitEvent(s.other, event, 0));
    SUCCEEDS(cudaMemcpyAsync(s.host, s.device, 4, cudaMemcpyDeviceToHost, s.other));
    SUCCEEDS(cudaStreamSynchronize(s.other));
    assert_int_equal(s.host[0], 8);
    SUCCEEDS(cudaEventDestroy(event));
    close_scene(&s);
}

TEST(an_event_that_is_queried_is_reached_in_the_end)
{
    struct scene s = open_scene();
    cudaEvent_t event;
    SUCCEEDS(cudaEventCreate(&event));
    SUCCEEDS(cudaEventQuery(event)); /* never recorded, so it is complete */
    for (uint32_t round = 1; round <= 3; round++) {
        cudaError_t said;
        SUCCEEDS(launch(add_one, 1, 1, add_args{s.device}, s.stream));
        SUCCEEDS(cudaEventRecord(event, s.stream));
        SUCCEEDS(launch(add_one, 1, 1, add_args{s.device + 1}, s.other));
        const uint64_t before = emulated_cuda_calls();
        while ((said = cudaEventQuery(event)) == cudaErrorNotReady) {}
        SUCCEEDS(said);
        assert_int_equal(emulated_cuda_calls() - before, 1);
        assert_int_equal(s.device[0], round);
    }
    while (cudaStreamQuery(s.other) == cudaErrorNotReady) {}
    assert_int_equal(s.device[1], 3);
    SUCCEEDS(cudaEventDestroy(event));
    close_scene(&s);
}

/* ---- faults ---- */

/* Makes some calls of every kind up to the first that fails. */
static cudaError_t
small_program(uint32_t *result, bool *launched)
{
    cudaStream_t stream = nullptr;
    void *device = nullptr, *host = nullptr;
    int n;
    cudaError_t said = cudaGetDeviceCount(&n);
    *launched = false;
#define THEN(call)                                                                                                     \
    if (said == cudaSuccess)                                                                                           \
    said = call
    THEN(cudaSetDevice(0));
    THEN(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    THEN(cudaMalloc(&device, 4));
    THEN(cudaHostAlloc(&host, 4, cudaHostAllocDefault));
    THEN(cudaMemsetAsync(device, 0, 4, stream));
    THEN(launch(add_one, 1, 1, add_args{(uint32_t *)device}, stream));
    *launched = said == cudaSuccess;
    THEN(cudaMemcpyAsync(host, device, 4, cudaMemcpyDeviceToHost, stream));
    THEN(cudaStreamSynchronize(stream));
    if (said == cudaSuccess)
        memcpy(result, host, 4);
    if (stream != nullptr)
        (void)cudaStreamDestroy(stream);
    (void)cudaFree(device);
    (void)cudaFreeHost(host);
    return said;
}

TEST(every_call_can_fail)
{
    enum { CALLS = 9 };
    bool launched;
    for (uint64_t n = 1; n <= CALLS; n++) {
        uint32_t result = 0;
        emulated_cuda_fail(n, EMULATED_LOST);
        assert_int_equal(small_program(&result, &launched), cudaErrorIllegalAddress);
        assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress); /* the device stays lost */
        emulated_cuda_fail(0, EMULATED_LOST);
        SUCCEEDS(small_program(&result, &launched));
        assert_int_equal(result, 1);
        assert_int_equal(emulated_cuda_allocations(), 0);
    }
}

TEST(memory_runs_out_at_allocations_and_the_device_goes_on)
{
    bool launched;
    uint32_t result = 0;
    char *p;
    for (uint64_t n = 1; n <= 5; n++) { /* the fourth call and the fifth allocate */
        emulated_cuda_fail(n, EMULATED_OUT_OF_MEMORY);
        assert_int_equal(small_program(&result, &launched), cudaErrorMemoryAllocation);
        assert_int_equal(emulated_cuda_allocations(), 0);
        SUCCEEDS(small_program(&result, &launched));
    }
    size_t left, total;
    SUCCEEDS(cudaMemGetInfo(&left, &total));
    assert_int_equal(left, total);
    assert_int_equal(cudaMalloc(&p, total + 1), cudaErrorMemoryAllocation);
    SUCCEEDS(cudaMalloc(&p, 1000));
    SUCCEEDS(cudaMemGetInfo(&left, &total));
    assert_int_equal(left, total - 1000);
    SUCCEEDS(cudaFree(p));
}

TEST(a_kernel_that_fails_is_noticed_when_somebody_waits)
{
    bool launched;
    uint32_t result = 0;
    emulated_cuda_fail(1, EMULATED_LAUNCH);
    assert_int_equal(small_program(&result, &launched), cudaErrorLaunchFailure);
    assert_true(launched);
    assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure);
    emulated_cuda_fail(0, EMULATED_LOST);
    SUCCEEDS(small_program(&result, &launched));
}

TEST(machines_without_a_usable_gpu)
{
    int n = 5;
    struct cudaDeviceProp p;
    setenv("EMULATED_CUDA_DEVICES", "0", 1);
    assert_int_equal(cudaGetDeviceCount(&n), cudaErrorNoDevice);
    assert_int_equal(n, 0);
    assert_int_equal(cudaSetDevice(0), cudaErrorInvalidDevice);
    setenv("EMULATED_CUDA_DEVICES", "2", 1);
    SUCCEEDS(cudaGetDeviceCount(&n));
    assert_int_equal(n, 2);
    assert_int_equal(cudaSetDevice(2), cudaErrorInvalidDevice);
    setenv("EMULATED_CUDA_DRIVER", "11080", 1);
    assert_int_equal(cudaGetDeviceCount(&n), cudaErrorInsufficientDriver);
    unsetenv("EMULATED_CUDA_DRIVER");
    unsetenv("EMULATED_CUDA_DEVICES");
    setenv("EMULATED_CUDA_CAPABILITY", "75", 1);
    SUCCEEDS(cudaGetDeviceProperties(&p, 0));
    assert_int_equal(p.major * 10 + p.minor, 75);
    unsetenv("EMULATED_CUDA_CAPABILITY");
}
