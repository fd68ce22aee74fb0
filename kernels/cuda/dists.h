/* A pool of distributions in device memory, which stores of several models may share. Their streams know nothing of each
 * other: kernels/backend.h says what a wait() has to lie between. */
#ifndef KERNELS_CUDA_DISTS_H
#define KERNELS_CUDA_DISTS_H

#include "kernels/cuda/device.h"
#include "kernels/request.h"

struct dists {
    struct backend *backend;
    struct pool_size size;
    float *p; /* (n, vocab), on the device */
    struct memory memory;
};

/* backend_ops.dists and drop_dists */
bool cuda_dists_open(struct backend *, uint32_t vocab, uint32_t n, struct dists **, struct err *);
void cuda_dists_close(struct dists *);

#endif
