#include "kernels/cuda/dists.h"

#include <stdlib.h>

bool
cuda_dists_open(struct backend *b, uint32_t vocab, uint32_t n, struct dists **out, struct err *err)
{
    const struct pool_size size = {.vocab = vocab, .n = n};
    *out = NULL;
    if (!request_pool(size, err))
        return false;
    struct dists *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return err_set(err, ERR_WORK, "not enough memory for a pool of distributions");
    void *p = NULL;
    pool->backend = b;
    pool->size = size;
    if (!device_here(b, err) || !memory_take(&pool->memory, b, (size_t)n * vocab * sizeof *pool->p, false,
                                             "distributions over the vocabulary", &p, err)) {
        cuda_dists_close(pool);
        return false;
    }
    pool->p = p;
    *out = pool;
    return true;
}

void
cuda_dists_close(struct dists *pool)
{
    (void)device_here(pool->backend, NULL);
    memory_free(&pool->memory);
    free(pool);
}
