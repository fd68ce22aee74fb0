// What a GPU can do at best, measured, as JSON: bytes a second of a copy kernel (read and written) and of a kernel that
// only reads, operations a second of the matrix instruction that the sweep uses (mma.m16n8k16, F16 with F32 sums).
// usage: gpu_floors [DEVICE]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define REPEATS 15
#define CHAINS  8 // independent accumulators a warp: enough to fill the pipeline
#define ROUNDS  4096

static void
must(cudaError_t code, const char *what)
{
    if (code == cudaSuccess)
        return;
    fprintf(stderr, "gpu_floors: %s: %s\n", what, cudaGetErrorString(code));
    exit(1);
}

__global__ void
copy(const uint4 *from, uint4 *to, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        to[i] = from[i];
}

// Writes only if a sum is what it can't be, so that nothing is optimised away.
__global__ void
read(const uint4 *from, uint4 *to, size_t n)
{
    uint32_t sum = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        const uint4 v = __ldg(&from[i]);
        sum |= v.x | v.y | v.z | v.w;
    }
    if (sum == 0xdeadbeef)
        to[0].x = sum;
}

__global__ void
multiply(uint4 *to)
{
    float c[CHAINS][4] = {};
    const uint32_t a[4] = {threadIdx.x, 1, 2, 3}, b[2] = {threadIdx.x, 5}; // subnormal halves: no overflow
    for (int r = 0; r < ROUNDS; r++)
#pragma unroll
        for (int i = 0; i < CHAINS; i++)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                         "{%0,%1,%2,%3};"
                         : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    float sum = 0;
    for (int i = 0; i < CHAINS; i++)
        sum += c[i][0] + c[i][1] + c[i][2] + c[i][3];
    if (sum < 0)
        to[0].x = 1;
}

// Median time in seconds of `launch`, one run to warm up.
template <typename F>
static double
median(F launch)
{
    float ms[REPEATS];
    cudaEvent_t start, end;
    must(cudaEventCreate(&start), "event");
    must(cudaEventCreate(&end), "event");
    launch();
    for (int i = 0; i < REPEATS; i++) {
        must(cudaEventRecord(start), "event");
        launch();
        must(cudaEventRecord(end), "event");
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
    cudaDeviceProp p;
    size_t left, total;
    must(cudaSetDevice(device), "device");
    must(cudaGetDeviceProperties(&p, device), "device");
    must(cudaMemGetInfo(&left, &total), "memory");
    const size_t bytes = std::min<size_t>(left / 4, (size_t)4 << 30) / 16 * 16, n = bytes / 16;
    uint4 *a, *b;
    must(cudaMalloc(&a, bytes), "memory");
    must(cudaMalloc(&b, bytes), "memory");
    must(cudaMemset(a, 1, bytes), "memory");
    const int blocks = p.multiProcessorCount * 4;
    const double t_copy = median([&] { copy<<<blocks, 512>>>(a, b, n); });
    const double t_read = median([&] { read<<<blocks, 512>>>(a, b, n); });
    const double t_multiply = median([&] { multiply<<<blocks, 512>>>(b); });
    const double operations = 2.0 * 16 * 8 * 16 * CHAINS * ROUNDS * (512 / 32) * blocks;
    printf("{\"device\": \"%s\", \"multiprocessors\": %d, \"copy_gb_s\": %.1f, \"read_gb_s\": %.1f, \"mma_tflop_s\": "
           "%.1f}\n",
           p.name, p.multiProcessorCount, 2 * (double)bytes / t_copy * 1e-9, (double)bytes / t_read * 1e-9,
           operations / t_multiply * 1e-12);
    cudaFree(a);
    cudaFree(b);
    return 0;
}
