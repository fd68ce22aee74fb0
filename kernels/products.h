/* Products of matrices in the host's memory, that a backend may offer: training's. */
#ifndef KERNELS_PRODUCTS_H
#define KERNELS_PRODUCTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/base/err.h"

struct backend;

/* c (m, n) = a b + beta c, F32, row-major; a is (m, k), b (k, n), or turned as they lie: (k, m), (n, k). */
struct host_product {
    bool turn_a, turn_b;
    uint32_t m, n, k;
    const float *a, *b;
    size_t stride_a, stride_b; /* floats from a row, as it lies, to the next one; c has no gaps */
    float beta;                /* 0: c is only written; or 1 */
    float *c;
};

struct products; /* what they need on a device: a stream, memory, matrices that stay there */

/* For training, which has nothing to do with stores and their queues: all at once, results are there on return. Any number
 * of threads may ask. */
struct product_ops {
    bool (*open)(struct backend *, struct products **, struct err *);
    void (*close)(struct products *); /* before the backend */
    /* Copies n values, which do not change from now on: a `b` at that address is not copied again. */
    bool (*keep)(struct products *, const float *, size_t n, struct err *);
    bool (*multiply)(struct products *, const struct host_product *, struct err *);
};

#endif
