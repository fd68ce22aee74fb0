/* What the CUDA plug-in asks of NVIDIA's library of products. The library is half a gigabyte that decoding does without, so
 * it is behind a plug-in of its own, specscope-cublas.so (kernels/cublas), loaded when a product is needed.
 *
 * A product is y (n, m) = beta y + x (n, k) w (m, k)^T, all row-major without gaps, sums in F32. For each shape there is one
 * algorithm, chosen when it is first asked for and never by measuring: of the library's own list the first that neither
 * splits k nor needs a workspace, because those that do add parts in no fixed order. So a row of y has
 * the same bits whenever it is computed, from the same place of x. */
#ifndef KERNELS_CUDA_GEMM_H
#define KERNELS_CUDA_GEMM_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "kernels/base/err.h"

#define GEMM_ABI    1u
#define GEMM_SYMBOL "specscope_gemm" /* const struct gemm_ops *(void) */
#define GEMM_ALIGN  256              /* bytes that w, x and y begin at multiples of */

enum gemm_type { GEMM_F16, GEMM_BF16, GEMM_F32 }; /* of w and x; y is F32 */

struct gemm_shape {
    uint32_t m, n, k;
    enum gemm_type type;
    bool transpose_w, transpose_x; /* transposed: stored as (k, m), (k, n) */
};

struct gemm;
struct gemm_plan; /* a shape, and the algorithm for it; the gemm's */

struct gemm_ops {
    uint32_t abi;
    /* On the device that is the thread's now, as must be the thread's whenever it is asked for products. */
    bool (*open)(struct gemm **, struct err *);
    void (*close)(struct gemm *);
    const char *(*version)(const struct gemm *); /* "cuBLASLt 13.1.0" */
    /* The same plan for the same shape, always. */
    bool (*plan)(struct gemm *, const struct gemm_shape *, const struct gemm_plan **, struct err *);
    const char *(*chosen)(const struct gemm_plan *); /* "256x4096x4096 F16: 66/20/36/0/0/0/2": the algorithm */
    /* Queued on the stream; w, x and y are the device's. */
    bool (*multiply)(struct gemm *, const struct gemm_plan *, const void *w, const void *x, float *y, float beta,
                     cudaStream_t, struct err *);
};

/* products.c: loads the plug-in from the folder of this one, once for the process. */
bool gemm_load(const struct gemm_ops **, struct err *);

#endif
