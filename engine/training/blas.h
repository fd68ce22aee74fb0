/* Who multiplies the matrices of training: the BLAS that the program was linked with, or a GPU where the engine's
 * backend has products (kernels/backend.h). */
#pragma once

#include "engine/session/engine.h"
#include "kernels/products.h"

/* How many of `wanted` threads may be in the BLAS at a time, each computing alone: all of them, but one of OpenBLAS's
 * sequential build (no build of it may be called by several threads unless it was made for that). OpenBLAS's builds
 * with threads of their own are set to compute on the calling thread. 0: the BLAS cannot be loaded. */
uint32_t blas_callers(uint32_t wanted, struct err *);

/* Products on the engine's device. Functions take NULL for the BLAS here. Several threads may ask at a time. */
struct blas;

/* Sets *out to NULL if the host computes the products. Returns false, with the reason in *err, if the engine's device
 * should compute them and cannot; *out is NULL then, too. */
bool blas_open(struct blas **out, const struct engine *, struct err *);
void blas_close(struct blas *);
/* A matrix (n values) that does not change from now on: it stays on the device. Where it has no room it is copied each
 * time. */
void blas_keep(struct blas *, const float *, size_t n);

/* c = A B + beta c of matrices without gaps between their stored rows: A (m, k) is a or its transpose, B (k, n) is b or
 * its transpose. */
static inline struct host_product
blas_packed(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const float *a, const float *b,
            float beta, float *c)
{
    return (struct host_product){transpose_a,
                                 transpose_b,
                                 (uint32_t)m,
                                 (uint32_t)n,
                                 (uint32_t)k,
                                 a,
                                 b,
                                 transpose_a ? m : k,
                                 transpose_b ? k : n,
                                 beta,
                                 c};
}

/* Computes a product (kernels/products.h). After a failure the device is not used again, and blas_failed() returns
 * true, so that training ends. */
void blas_multiply(struct blas *, const struct host_product *);
/* Has the device failed since it was opened? *err is why. */
bool blas_failed(struct blas *, struct err *);
