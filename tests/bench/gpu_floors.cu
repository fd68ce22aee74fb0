// Measures the floors of a GPU and prints JSON: bytes per second of a copy kernel (read and written) and of a kernel that
// only reads, operations per second of the forward pass's matrix instruction (mma.m16n8k16, F16 with F32 sums).
// usage: gpu_floors [DEVICE [MIB [ROUNDS]]]: the size of the buffers, at most 4096 and a quarter of the free memory
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/ptx.cuh"

#define REPEATS 15
#define CHAINS  8 // independent accumulators per warp, enough to fill the pipeline
#define ROUNDS  4096
#define THREADS 512

struct floor_args {
    const uint4 *from;
    uint4 *to;
    size_t n;
    int rounds;
};

static void
must(cudaError_t code, const char *what)
{
    if (code == cudaSuccess)
        return;
    fprintf(stderr, "gpu_floors: %s: %s\n", what, cudaGetErrorString(code));
    exit(1);
}

static __global__ void
__launch_bounds__(THREADS) copy_all(struct floor_args a)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < a.n; i += (size_t)gridDim.x * blockDim.x)
        a.to[i] = a.from[i];
}

// Writes only if the sum has an impossible value, so that the compiler removes no load.
static __global__ void
__launch_bounds__(THREADS) read_all(struct floor_args a)
{
    uint32_t sum = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < a.n; i += (size_t)gridDim.x * blockDim.x) {
        const uint4 v = __ldg(&a.from[i]);
        sum |= v.x | v.y | v.z | v.w;
    }
    if (sum == 0xdeadbeef)
        a.to[0].x = sum;
}

static __global__ void
__launch_bounds__(THREADS) multiply(struct floor_args p)
{
    float c[CHAINS][4] = {};
    const uint32_t a[4] = {threadIdx.x, 1, 2, 3}; // subnormal halves: no overflow
    for (int r = 0; r < p.rounds; r++)
#pragma unroll
        for (int i = 0; i < CHAINS; i++)
            mma_f16(c[i], a, threadIdx.x, 5);
    float sum = 0;
    for (int i = 0; i < CHAINS; i++)
        sum += c[i][0] + c[i][1] + c[i][2] + c[i][3];
    if (sum < 0)
        p.to[0].x = 1;
}

// Returns the median time of `launch` in seconds, after one run to warm up.
template <typename F>
static double
median(F run)
{
    float ms[REPEATS];
    cudaEvent_t start, end;
    must(cudaEventCreate(&start), "event");
    must(cudaEventCreate(&end), "event");
    run();
    for (int i = 0; i < REPEATS; i++) {
        must(cudaEventRecord(start, nullptr), "event");
        run();
        must(cudaEventRecord(end, nullptr), "event");
        must(cudaEventSynchronize(end), "kernel");
        must(cudaEventElapsedTime(&ms[i], start, end), "event");
    }
    must(cudaGetLastError(), "launch");
    std::sort(ms, ms + REPEATS);
    return ms[REPEATS / 2] * 1e-3;
}

int
main(int argc, char **argv)
{
    const int device = argc > 1 ? (int)strtol(argv[1], nullptr, 10) : 0;
    const size_t most = argc > 2 ? strtoul(argv[2], nullptr, 10) << 20 : (size_t)4 << 30;
    const int rounds = argc > 3 ? (int)strtol(argv[3], nullptr, 10) : ROUNDS;
    cudaDeviceProp p;
    size_t left, total;
    must(cudaSetDevice(device), "device");
    must(cudaGetDeviceProperties(&p, device), "device");
    must(cudaMemGetInfo(&left, &total), "memory");
    const size_t bytes = std::min<size_t>(left / 4, most) / 16 * 16, n = bytes / 16;
    uint4 *a, *b;
    must(cudaMalloc(&a, bytes), "memory");
    must(cudaMalloc(&b, bytes), "memory");
    must(cudaMemset(a, 1, bytes), "memory");
    const int blocks = p.multiProcessorCount * 4;
    const struct floor_args args = {a, b, n, rounds};
    const double t_copy =
        median([&] { must(launch(copy_all, blocks, THREADS, args, (cudaStream_t) nullptr), "copy"); });
    const double t_read =
        median([&] { must(launch(read_all, blocks, THREADS, args, (cudaStream_t) nullptr), "read"); });
    const double t_multiply =
        median([&] { must(launch(multiply, blocks, THREADS, args, (cudaStream_t) nullptr), "multiply"); });
    const double operations = 2.0 * 16 * 8 * 16 * CHAINS * rounds * (THREADS / 32) * blocks;
    printf("{\"device\": \"%s\", \"multiprocessors\": %d, \"copy_gb_s\": %.1f, \"read_gb_s\": %.1f, \"mma_tflop_s\": "
           "%.1f}\n",
           p.name, p.multiProcessorCount, 2 * (double)bytes / t_copy * 1e-9, (double)bytes / t_read * 1e-9,
           operations / t_multiply * 1e-12);
    cudaFree(a);
    cudaFree(b);
    return 0;
}
