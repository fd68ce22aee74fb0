/* Launches for the emulation, as kernels/cuda/device/launch.cuh declares them. Messages name a kernel as its launch
 * does. */
#ifndef KERNELS_CUDA_DEVICE_LAUNCH_CUH
#define KERNELS_CUDA_DEVICE_LAUNCH_CUH

#include <cuda_runtime.h>

#include "kernels/cuda/device/switches.h"

#define ARGUMENT_MOST 4096 /* bytes */

#define SHARED_MEMORY(type, name) type *const name = (type *)emulation::here->shared

template <class A>
static inline cudaError_t
emulated_launch_as(bool cooperative, const char *name, void (*kernel)(A), dim3 grid, dim3 block, A arguments,
                   cudaStream_t stream, size_t shared = 0)
{
    static_assert(sizeof(A) <= ARGUMENT_MOST, "a kernel's argument");
    const auto thread = [](const void *called, const void *argument) { ((void (*)(A))called)(*(const A *)argument); };
    const cudaError_t status = emulated_launch(
        {thread, (const void *)kernel, &arguments, name, grid, block, shared, cooperative, 0, 0}, sizeof(A), stream);
    return launch_result(name, status, grid.x * grid.y * grid.z, block.x, stream);
}
#define launch(...)             EMULATED_CALL(emulated_launch_as(false, #__VA_ARGS__, __VA_ARGS__))
#define launch_cooperative(...) EMULATED_CALL(emulated_launch_as(true, #__VA_ARGS__, __VA_ARGS__))

/* Returns one block a multiprocessor if there is enough shared memory, and allows the kernel to have it. */
template <class A>
static inline cudaError_t
resident_blocks(void (*kernel)(A), int device, unsigned, size_t shared, uint32_t *blocks)
{
    int n = 0, most = 0;
    cudaError_t status = cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device);
    if (status == cudaSuccess)
        status = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (status == cudaSuccess && shared > (size_t)most)
        status = cudaErrorInvalidValue;
    if (status == cudaSuccess)
        emulated_allow_shared((const void *)kernel, shared);
    *blocks = (uint32_t)n;
    return status;
}

#endif
