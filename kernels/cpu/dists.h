/* A pool of distributions, which stores of several models may share: each is (vocab) probabilities, 0 beyond the
 * vocabulary of the store that wrote it. */
#ifndef KERNELS_CPU_DISTS_H
#define KERNELS_CPU_DISTS_H

#include "kernels/cpu/blocks.h"
#include "kernels/request.h"

struct dists {
    struct pool_size size;
    float *p; /* (n, vocab) */
    struct blocks blocks;
};

/* backend_ops.dists and drop_dists */
bool cpu_dists_open(struct backend *, uint32_t vocab, uint32_t n, struct dists **, struct err *);
void cpu_dists_close(struct dists *);

static inline struct pool_size
cpu_dists_size(const struct dists *pool) /* which may be NULL */
{
    return pool != NULL ? pool->size : (struct pool_size){0, 0};
}

static inline float *
cpu_dists_at(const struct dists *pool, dist_t d)
{
    return pool->p + (size_t)d * pool->size.vocab;
}

#endif
