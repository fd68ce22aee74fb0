/* Launches of kernels as nvcc compiled them (tests/cuda/ptx): of the host's kernel only the address is used. */
#ifndef KERNELS_CUDA_DEVICE_LAUNCH_CUH
#define KERNELS_CUDA_DEVICE_LAUNCH_CUH

#include <cuda_runtime.h>

#include "kernels/cuda/device/switches.h"
#include "tests/cuda/ptx/machine/beside.h"
#include "tests/cuda/ptx/machine/registry.h"

#define ARGUMENT_MOST 4096 /* bytes */

#define SHARED_MEMORY(type, name) type *const name = (type *)emulation::here->shared

template <class A>
static inline cudaError_t
translated_launch(const char *call, void (*kernel)(A), dim3 grid, dim3 block, A arguments, cudaStream_t stream,
                  size_t dynamic, bool cooperative)
{
    static_assert(sizeof(A) <= ARGUMENT_MOST, "a kernel's argument");
    const ptx::kernel *const k = ptx::kernel_of((const void *)kernel, sizeof arguments, call);
    if (k == nullptr)
        return cudaErrorInvalidDeviceFunction;
    if (k->threads != 0 && block.x * block.y * block.z > k->threads)
        return cudaErrorLaunchOutOfResources;
    const size_t room = k->shared + dynamic;
    std::shared_ptr<ptx::beside> beside;
    if (ptx::wants_comparison())
        beside = ptx::run_as_host(
            call, [=] { kernel(arguments); }, grid, block, dynamic, cooperative, stream);
    const cudaError_t said = emulated_launch(
        call, (const void *)kernel, [=] { k->run((const unsigned char *)&arguments, (uint32_t)room); }, grid, block,
        room, cooperative, stream);
    if (beside != nullptr && said == cudaSuccess)
        ptx::compare_with_host(beside, stream);
    return said;
}

template <class A>
static inline cudaError_t
translated_launch_as(const char *call, void (*kernel)(A), dim3 grid, dim3 block, A arguments, cudaStream_t stream,
                     size_t shared = 0)
{
    const cudaError_t said = translated_launch(call, kernel, grid, block, arguments, stream, shared, false);
    return launch_result(call, said, grid.x * grid.y * grid.z, block.x, stream);
}
#define launch(...) translated_launch_as(#__VA_ARGS__, __VA_ARGS__)

template <class A>
static inline cudaError_t
translated_launch_cooperative_as(const char *call, void (*kernel)(A), dim3 grid, dim3 block, A arguments,
                                 cudaStream_t stream, size_t shared = 0)
{
    const cudaError_t said = translated_launch(call, kernel, grid, block, arguments, stream, shared, true);
    return launch_result(call, said, grid.x, block.x, stream);
}
#define launch_cooperative(...) translated_launch_cooperative_as(#__VA_ARGS__, __VA_ARGS__)

/* One block a multiprocessor, if its shared memory is there; the kernel may have so much then. */
template <class A>
static inline cudaError_t
resident_blocks(void (*kernel)(A), int device, unsigned, size_t shared, uint32_t *blocks)
{
    const ptx::kernel *const k = ptx::kernel_of((const void *)kernel, sizeof(A), "resident_blocks");
    int n = 0, most = 0;
    cudaError_t said = k == nullptr ? cudaErrorInvalidDeviceFunction
                                    : cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device);
    if (said == cudaSuccess)
        said = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (said == cudaSuccess && k->shared + shared > (size_t)most)
        said = cudaErrorInvalidValue;
    if (said == cudaSuccess)
        emulated_allow_shared((const void *)kernel, k->shared + shared);
    *blocks = (uint32_t)n;
    return said;
}

#endif
