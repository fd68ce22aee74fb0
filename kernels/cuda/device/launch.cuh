/* Kernel launches: a kernel takes one argument, by value. */
#ifndef KERNELS_CUDA_DEVICE_LAUNCH_CUH
#define KERNELS_CUDA_DEVICE_LAUNCH_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "kernels/cuda/device/switches.h"

#define ARGUMENT_MOST 4096 /* bytes: the limit of drivers before CUDA 12.1 */

/* Dynamic shared memory of the block. Cooperative kernels use no other shared memory. */
#define SHARED_MEMORY(type, name)                                                                                      \
    extern __shared__ __align__(16) unsigned char dynamic_shared_memory[];                                             \
    type *const name = (type *)dynamic_shared_memory

template <class A>
static cudaError_t
launch_as(bool cooperative, const char *call, void (*kernel)(A), dim3 grid, dim3 block, A arguments,
          cudaStream_t stream, size_t shared = 0)
{
    static_assert(sizeof(A) <= ARGUMENT_MOST, "a kernel's argument");
    void *list[] = {&arguments};
    const cudaError_t status =
        cooperative ? cudaLaunchCooperativeKernel((const void *)kernel, grid, block, list, shared, stream)
                    : cudaLaunchKernel((const void *)kernel, grid, block, list, shared, stream);
    return launch_result(call, status, grid.x * grid.y * grid.z, block.x, stream);
}
#define launch(...) launch_as(false, #__VA_ARGS__, __VA_ARGS__)
/* All blocks are resident at once and may wait for each other. */
#define launch_cooperative(...) launch_as(true, #__VA_ARGS__, __VA_ARGS__)

/* Allows the kernel this much dynamic shared memory. Returns how many of its blocks can be resident at once: one per
 * multiprocessor, or none. */
template <class A>
static cudaError_t
resident_blocks(void (*kernel)(A), int device, unsigned threads, size_t shared, uint32_t *blocks)
{
    int processors = 0, each = 0;
    cudaError_t status =
        cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    if (status == cudaSuccess)
        status = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (status == cudaSuccess)
        status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, (const void *)kernel, (int)threads, shared);
    if (status == cudaSuccess && each < 1)
        status = cudaErrorCooperativeLaunchTooLarge;
    *blocks = (uint32_t)processors;
    return status;
}

#endif
