/* Memory of the (emulated) device for tests that launch kernels themselves. Functions fail the running cmocka test. */
#pragma once

#include <cuda_runtime_api.h>

#include "tests/rigs/test.h"

static inline void
must(cudaError_t code)
{
    if (code != cudaSuccess)
        fail_msg("%s", cudaGetErrorString(code));
}

/* Allocates device memory. The caller frees it with cudaFree(). */
static inline void *
take(size_t bytes)
{
    void *p = NULL;
    must(cudaMalloc(&p, bytes > 0 ? bytes : 1));
    return p;
}

static inline void
send(void *to, const void *from, size_t bytes)
{
    must(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
}

static inline void
fetch(void *to, const void *from, size_t bytes)
{
    must(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
}

/* Copies the bytes to the device. The caller frees them. */
static inline void *
on_device(const void *from, size_t bytes)
{
    void *p = take(bytes);
    send(p, from, bytes);
    return p;
}
