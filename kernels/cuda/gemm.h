/* The interface to NVIDIA's matrix product library. The library is half a gigabyte and not needed for decoding, so it
 * is used through a separate plug-in, specscope-cublas.so (kernels/cublas), which training loads.
 *
 * A product is y (n, m) = beta y + x (n, k) w (m, k)^T, all in F32 and row-major without gaps. Each shape has one
 * algorithm, chosen on its first use and never by measuring: the first in the library's own list that neither splits k
 * nor needs a workspace, because such algorithms add partial sums in no fixed order. */
#pragma once

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "base/err.h"

#define GEMM_ABI    3u
#define GEMM_SYMBOL "specscope_gemm" /* const struct gemm_ops *(void) */

struct gemm_shape {
    uint32_t m, n, k;
    bool transpose_w, transpose_x; /* transposed: stored as (k, m), (k, n) */
};

struct gemm;

struct gemm_ops {
    uint32_t abi;
    /* For the thread's current device, which must be current in every thread that uses it. */
    bool (*open)(struct gemm **, struct err *);
    void (*close)(struct gemm *);
    /* Queues the product on the stream; w, x and y are in device memory, aligned to 256 bytes. */
    bool (*multiply)(struct gemm *, const struct gemm_shape *, const void *w, const void *x, float *y, float beta,
                     cudaStream_t, struct err *);
};

/* Loads the plug-in from the folder of this one, once per process; defined in products.c. */
bool gemm_load(const struct gemm_ops **, struct err *);
