/* The part of the CUDA runtime that the backend uses, for the emulation, with the same names and values, in C and
 * C++. */
#ifndef EMULATION_CUDA_RUNTIME_API_H
#define EMULATION_CUDA_RUNTIME_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDART_VERSION 13000

enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorUnsupportedPtxVersion = 222,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchOutOfResources = 701,
    cudaErrorLaunchTimeout = 702,
    cudaErrorLaunchFailure = 719,
    cudaErrorCooperativeLaunchTooLarge = 720,
    cudaErrorNotSupported = 801,
    cudaErrorUnknown = 999
};
typedef enum cudaError cudaError_t;

typedef struct emulated_stream *cudaStream_t;
typedef struct emulated_event *cudaEvent_t;

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3
};

enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};

enum cudaDeviceAttr {
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrCooperativeLaunch = 95,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    int major, minor;
    int multiProcessorCount;
    int cooperativeLaunch;
    int l2CacheSize;
    size_t sharedMemPerBlockOptin;
};

#define cudaHostAllocDefault   0u
#define cudaStreamNonBlocking  1u
#define cudaEventDisableTiming 2u

cudaError_t cudaGetDeviceCount(int *);
cudaError_t cudaDriverGetVersion(int *);
cudaError_t cudaRuntimeGetVersion(int *);
cudaError_t cudaSetDevice(int);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *, int);
cudaError_t cudaDeviceGetAttribute(int *, enum cudaDeviceAttr, int);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaMemGetInfo(size_t *left, size_t *total);

cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t);
const char *cudaGetErrorString(cudaError_t);

cudaError_t cudaMalloc(void **, size_t);
cudaError_t cudaFree(void *);
cudaError_t cudaHostAlloc(void **, size_t, unsigned flags);
cudaError_t cudaFreeHost(void *);
cudaError_t cudaMemcpy(void *to, const void *from, size_t, enum cudaMemcpyKind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t, enum cudaMemcpyKind, cudaStream_t);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind, cudaStream_t);
cudaError_t cudaMemset(void *, int, size_t);
cudaError_t cudaMemsetAsync(void *, int, size_t, cudaStream_t);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaStreamQuery(cudaStream_t);
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned flags);

cudaError_t cudaEventCreate(cudaEvent_t *);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t);
cudaError_t cudaEventQuery(cudaEvent_t);
cudaError_t cudaEventSynchronize(cudaEvent_t);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);

/* ---- functions of the emulator itself ---- */

/* Environment variables do the same; README.md lists them. */

enum emulated_failure {
    EMULATED_OUT_OF_MEMORY, /* the next allocation fails */
    EMULATED_LOST,          /* the call and all later calls fail */
    EMULATED_LAUNCH         /* the next kernel fails while it runs, and the device is lost */
};

#pragma GCC visibility push(default)
/* Makes the nth call from now on fail, or the first later call that can fail in this way; 0: no call. If the device was
 * lost, it works again without its memory. */
void emulated_cuda_fail(uint64_t nth, enum emulated_failure);
uint64_t emulated_cuda_calls(void);        /* calls so far; queries of an event count once for each record */
uint64_t emulated_cuda_allocations(void);  /* of device and pinned memory that were not freed */
const char *emulated_cuda_complaint(void); /* the last error of a kernel, or "" */
void emulated_cuda_seed(uint64_t);         /* selects the order of threads; 0: by number */
uint64_t emulated_cuda_switches(void);     /* switches between threads so far */
/* Queues a library's own work, and declares the device memory that the work reads and writes. It counts as a launch.
 * The default stream is refused. */
struct emulated_range {
    const void *p;
    size_t bytes;
    bool writes;
};
cudaError_t emulated_cuda_enqueue(cudaStream_t, cudaError_t (*work)(void *), void *what, const struct emulated_range *,
                                  size_t n);
bool emulated_cuda_on_device(const void *, size_t n); /* the whole range, in one allocation */
void emulated_cuda_place(const char *file, int line); /* where the calling thread makes its next call */
#pragma GCC visibility pop

#ifdef __cplusplus
}
template <class T>
static inline cudaError_t
cudaMalloc(T **out, size_t bytes)
{
    return cudaMalloc((void **)out, bytes);
}
#endif

/* Calls that queue work or wait for it record where they are made. */
#ifndef EMULATION_WORLD_H
#define EMULATED_CALL(call)        (emulated_cuda_place(__FILE__, __LINE__), call)
#define cudaFree(...)              EMULATED_CALL(cudaFree(__VA_ARGS__))
#define cudaFreeHost(...)          EMULATED_CALL(cudaFreeHost(__VA_ARGS__))
#define cudaMemcpy(...)            EMULATED_CALL(cudaMemcpy(__VA_ARGS__))
#define cudaMemcpyAsync(...)       EMULATED_CALL(cudaMemcpyAsync(__VA_ARGS__))
#define cudaMemcpy2DAsync(...)     EMULATED_CALL(cudaMemcpy2DAsync(__VA_ARGS__))
#define cudaMemset(...)            EMULATED_CALL(cudaMemset(__VA_ARGS__))
#define cudaMemsetAsync(...)       EMULATED_CALL(cudaMemsetAsync(__VA_ARGS__))
#define cudaDeviceSynchronize()    EMULATED_CALL(cudaDeviceSynchronize())
#define cudaStreamSynchronize(...) EMULATED_CALL(cudaStreamSynchronize(__VA_ARGS__))
#define cudaStreamQuery(...)       EMULATED_CALL(cudaStreamQuery(__VA_ARGS__))
#define cudaStreamWaitEvent(...)   EMULATED_CALL(cudaStreamWaitEvent(__VA_ARGS__))
#define cudaEventRecord(...)       EMULATED_CALL(cudaEventRecord(__VA_ARGS__))
#define cudaEventQuery(...)        EMULATED_CALL(cudaEventQuery(__VA_ARGS__))
#define cudaEventSynchronize(...)  EMULATED_CALL(cudaEventSynchronize(__VA_ARGS__))
#define emulated_cuda_enqueue(...) EMULATED_CALL(emulated_cuda_enqueue(__VA_ARGS__))
#endif

#endif
