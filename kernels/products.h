/* Matrix products in host memory, used by training. A backend may offer them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct backend;

/* c (m, n) = a b + beta c, F32, row-major. a is (m, k) and b is (k, n), or stored transposed: (k, m), (n, k). */
struct host_product {
    bool transpose_a, transpose_b;
    uint32_t m, n, k;
    const float *a, *b;
    size_t stride_a, stride_b; /* floats between the starts of stored rows; c has no gaps */
    float beta;                /* 0 (c is only written) or 1 */
    float *c;
};

struct products; /* device resources: a stream, memory, matrices kept on the device */

/* Independent of KV caches and their queues: results are complete on return. May be called from any number of
 * threads. */
struct product_ops {
    bool (*open)(struct backend *, struct products **, struct err *);
    void (*close)(struct products *); /* call before the backend's close() */
    /* Copies n values to the device and forgets earlier ones. The caller must not change them: a `b` at that address is
     * not copied again. */
    bool (*keep)(struct products *, const float *, size_t n, struct err *);
    bool (*multiply)(struct products *, const struct host_product *, struct err *);
};
