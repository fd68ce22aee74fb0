/* Devices, errors, faults. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/emulator/runtime/world.h"

using emulation::all;

namespace emulation
{

uint64_t
setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != nullptr && text[0] != '\0' ? strtoull(text, nullptr, 10) : otherwise;
}

unsigned
multiprocessors()
{
    return (unsigned)setting("EMULATED_CUDA_BLOCKS", 3);
}

static int
capability()
{
    return (int)setting("EMULATED_CUDA_CAPABILITY", 90);
}

/* Numbers from the programming guide, technical specifications per compute capability. */
size_t
shared_memory()
{
    switch (capability()) {
    case 80:
    case 87: return (size_t)163 << 10;
    case 86:
    case 89:
    case 120:
    case 121: return (size_t)99 << 10;
    default: return (size_t)227 << 10;
    }
}

size_t
memory_size()
{
    return setting("EMULATED_CUDA_MEMORY_MIB", 4096) << 20;
}

world::world() : fail_at(setting("EMULATED_CUDA_FAIL", 0)), seed(setting("EMULATED_CUDA_SEED", 0))
{
    const char *name = getenv("EMULATED_CUDA_FAIL_KIND");
    kind = name != nullptr && strcmp(name, "oom") == 0      ? EMULATED_OUT_OF_MEMORY
           : name != nullptr && strcmp(name, "launch") == 0 ? EMULATED_LAUNCH
                                                            : EMULATED_LOST;
}

world &
all()
{
    static world *const w = new world;
    return *w;
}

cudaError_t
enter(std::unique_lock<std::mutex> &hold, call what, bool *later)
{
    world &w = all();
    hold = std::unique_lock<std::mutex>(w.lock);
    w.calls++;
    if (w.lost != cudaSuccess)
        return w.last = w.lost;
    if (w.fail_at == 0 || w.calls < w.fail_at)
        return cudaSuccess;
    /* If this call cannot fail in the requested way, the next one that can fails: for example only allocations run out
     * of memory. */
    if ((w.kind == EMULATED_OUT_OF_MEMORY && what != ALLOCATES) || (w.kind == EMULATED_LAUNCH && what != LAUNCHES))
        return cudaSuccess;
    w.fail_at = 0;
    if (w.kind == EMULATED_OUT_OF_MEMORY)
        return w.last = cudaErrorMemoryAllocation;
    if (w.kind == EMULATED_LAUNCH) {
        *later = true;
        return cudaSuccess;
    }
    return w.last = w.lost = cudaErrorIllegalAddress;
}

} // namespace emulation

static int
devices()
{
    return (int)emulation::setting("EMULATED_CUDA_DEVICES", 1);
}

static int
driver()
{
    return (int)emulation::setting("EMULATED_CUDA_DRIVER", CUDART_VERSION);
}

extern "C" {

/* ---- devices ---- */

cudaError_t
cudaGetDeviceCount(int *n)
{
    *n = 0;
    ENTER(emulation::ANY);
    /* 0: there is no driver; minor versions are compatible with each other */
    if (driver() < CUDART_VERSION / 1000 * 1000)
        return all().last = cudaErrorInsufficientDriver;
    *n = devices();
    return *n > 0 ? cudaSuccess : all().last = cudaErrorNoDevice;
}

cudaError_t
cudaDriverGetVersion(int *v)
{
    ENTER(emulation::ANY);
    *v = driver();
    return cudaSuccess;
}

cudaError_t
cudaRuntimeGetVersion(int *v)
{
    ENTER(emulation::ANY);
    *v = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t
cudaSetDevice(int device)
{
    ENTER(emulation::ANY);
    return device >= 0 && device < devices() ? cudaSuccess : all().last = cudaErrorInvalidDevice;
}

cudaError_t
cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    ENTER(emulation::ANY);
    if (device < 0 || device >= devices())
        return all().last = cudaErrorInvalidDevice;
    const int capability = emulation::capability();
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "Emulated GPU");
    p->totalGlobalMem = emulation::memory_size();
    p->major = capability / 10;
    p->minor = capability % 10;
    p->multiProcessorCount = (int)emulation::multiprocessors();
    p->cooperativeLaunch = 1;
    p->l2CacheSize = 1 << 20;
    p->sharedMemPerBlockOptin = emulation::shared_memory();
    return cudaSuccess;
}

cudaError_t
cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr what, int device)
{
    struct cudaDeviceProp p;
    const cudaError_t status = cudaGetDeviceProperties(&p, device);
    if (status != cudaSuccess)
        return status;
    switch (what) {
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; return cudaSuccess;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; return cudaSuccess;
    case cudaDevAttrCooperativeLaunch: *value = p.cooperativeLaunch; return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)p.sharedMemPerBlockOptin; return cudaSuccess;
    }
    return cudaErrorInvalidValue;
}

/* ---- errors ---- */

cudaError_t
cudaGetLastError(void)
{
    std::lock_guard<std::mutex> hold(all().lock);
    const cudaError_t was = all().last;
    all().last = all().lost;
    return was;
}

cudaError_t
cudaPeekAtLastError(void)
{
    std::lock_guard<std::mutex> hold(all().lock);
    return all().last;
}

const char *
cudaGetErrorName(cudaError_t e)
{
    switch (e) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorInvalidDeviceFunction: return "cudaErrorInvalidDeviceFunction";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorNoKernelImageForDevice: return "cudaErrorNoKernelImageForDevice";
    case cudaErrorUnsupportedPtxVersion: return "cudaErrorUnsupportedPtxVersion";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorLaunchOutOfResources: return "cudaErrorLaunchOutOfResources";
    case cudaErrorLaunchTimeout: return "cudaErrorLaunchTimeout";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    case cudaErrorCooperativeLaunchTooLarge: return "cudaErrorCooperativeLaunchTooLarge";
    case cudaErrorNotSupported: return "cudaErrorNotSupported";
    case cudaErrorUnknown: break;
    }
    return "cudaErrorUnknown";
}

const char *
cudaGetErrorString(cudaError_t e)
{
    return cudaGetErrorName(e);
}

/* ---- of the emulation alone ---- */

void
emulated_cuda_fail(uint64_t nth, enum emulated_failure kind)
{
    std::unique_lock<std::mutex> hold(all().lock);
    all().fail_at = nth == 0 ? 0 : all().calls + nth;
    all().kind = kind;
    if (all().lost == cudaSuccess)
        return;
    emulation::wait_for(hold, nullptr);
    emulation::forget_allocations();
    all().lost = all().last = cudaSuccess;
}

uint64_t
emulated_cuda_calls(void)
{
    std::lock_guard<std::mutex> hold(all().lock);
    return all().calls;
}

uint64_t
emulated_cuda_allocations(void)
{
    std::lock_guard<std::mutex> hold(all().lock);
    return all().device.size() + all().pinned.size();
}

const char *
emulated_cuda_complaint(void)
{
    return all().complaint;
}

void
emulated_cuda_seed(uint64_t seed)
{
    std::lock_guard<std::mutex> hold(all().lock);
    all().seed = seed;
}

uint64_t
emulated_cuda_switches(void)
{
    return emulation::switches_so_far();
}
}
