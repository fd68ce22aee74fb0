/* Environment variables of the backend, for debugging and measuring (docs/cuda.md). */
#pragma once

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns whether the variable has this value. */
static inline bool
switched(const char *variable, const char *to)
{
    const char *const status = getenv(variable);
    return status != NULL && strcmp(status, to) == 0;
}

/* SPECSCOPE_CUDA_SYNC=1: waits after every launch, so that an error is reported for the launch that caused it; stderr
 * names the launch. */
static inline bool
switched_to_sync(void)
{
    return switched("SPECSCOPE_CUDA_SYNC", "1");
}

/* SPECSCOPE_CUDA_PREFETCH=0: disables prefetching between the steps of a forward pass. */
static inline bool
switched_to_prefetch(void)
{
    return !switched("SPECSCOPE_CUDA_PREFETCH", "0");
}

/* SPECSCOPE_CUDA_BLOCKS=N: maximum number of blocks of a cooperative launch. */
static inline uint32_t
switched_blocks(uint32_t fit)
{
    const char *const status = getenv("SPECSCOPE_CUDA_BLOCKS");
    const unsigned long most = status != NULL ? strtoul(status, NULL, 10) : 0;
    return most > 0 && most < fit ? (uint32_t)most : fit;
}

/* Returns the result of a launch. `call`: the kernel's name, followed by its arguments. */
static inline cudaError_t
launch_result(const char *call, cudaError_t status, unsigned blocks, unsigned threads, cudaStream_t stream)
{
    size_t name = 0;
    if (!switched_to_sync())
        return status;
    if (status == cudaSuccess)
        status = cudaStreamSynchronize(stream);
    if (status == cudaSuccess)
        return status;
    for (int depth = 0; call[name] != '\0' && (call[name] != ',' || depth > 0); name++)
        depth += (call[name] == '<') - (call[name] == '>'); /* template arguments contain commas, too */
    fprintf(stderr, "specscope-cuda: the launch that failed is %.*s, %u blocks of %u threads: %s\n", (int)name, call,
            blocks, threads, cudaGetErrorString(status));
    return status;
}
