/* Facts about the machine that the other checks depend on. */
#include <cstring>

#include "tests/cuda/smoke/smoke.h"

#include "kernels/cuda/device/launch.h"
extern "C" {
#include "kernels/cuda/device.h"
}

#ifndef CUDA_CODE /* the GPUs that the kernels were compiled for, defined by the Makefile */
#error "CUDA_CODE is not defined"
#endif

static int
attribute(enum cudaDeviceAttr what, int device)
{
    int value = 0;
    SUCCEEDS(cudaDeviceGetAttribute(&value, what, device));
    return value;
}

static void fact(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void
fact(const char *name, const char *format, ...)
{
    va_list args;
    printf("    %-26s ", name);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
}

bool
smoke_facts(int device)
{
    int driver = 0, runtime = 0, devices = 0;
    size_t left = 0, total = 0;
    struct cudaDeviceProp p;
    char sums[128];
    uint32_t blocks = 0;
    SUCCEEDS(cudaDriverGetVersion(&driver));
    SUCCEEDS(cudaRuntimeGetVersion(&runtime));
    fact("driver, runtime", "for CUDA %d.%d, %d.%d", driver / 1000, driver % 1000 / 10, runtime / 1000,
         runtime % 1000 / 10);
    SUCCEEDS(cudaGetDeviceCount(&devices));
    if (device >= devices) {
        printf("there is no GPU %d, there are %d\n", device, devices);
        return false;
    }
    SUCCEEDS(cudaSetDevice(device));
    SUCCEEDS(cudaGetDeviceProperties(&p, device));
    SUCCEEDS(cudaMemGetInfo(&left, &total));
    fact("GPU", "%s, number %d of %d, sm_%d%d", p.name, device, devices, p.major, p.minor);
    fact("memory", "%.1f GiB, %.1f GiB of them free", (double)total / 0x1p30, (double)left / 0x1p30);
    fact("multiprocessors", "%d", attribute(cudaDevAttrMultiProcessorCount, device));
    fact("L2 cache", "%.1f MiB", attribute(cudaDevAttrL2CacheSize, device) / 0x1p20);
    fact("shared memory of a block", "%.0f KiB at most",
         attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device) / 1024.0);
    fact("cooperative launches", "%s", attribute(cudaDevAttrCooperativeLaunch, device) != 0 ? "yes" : "no");
    const bool native = device_has_code(CUDA_CODE, p.major, p.minor);
    fact("machine code", native ? "there is some for it" : "none: the driver translates now, for a minute or more");
    cudaError_t status = forward_prepare(device, &blocks);
    if (status == cudaSuccess)
        status = head_prepare(device);
    if (status != cudaSuccess) {
        printf("the kernels can't be prepared: %s\n", cudaGetErrorString(status));
        return false;
    }
    fact("blocks of a sweep", "%u, all resident", blocks);
    smoke_matrix_sums(sums, sizeof sums);
    fact("matrix instructions", "%s", sums);
    fact("the global timer", "steps of %u ns", smoke_tick());
    return attribute(cudaDevAttrCooperativeLaunch, device) != 0;
}
