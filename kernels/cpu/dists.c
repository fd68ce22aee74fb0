#include "kernels/cpu/dists.h"

#include <inttypes.h>

bool
cpu_dists_open(struct backend *b, uint32_t vocab, uint32_t n, struct dists **out, struct err *err)
{
    const struct pool_size size = {.vocab = vocab, .n = n};
    (void)b;
    *out = NULL;
    if (!request_pool(size, err))
        return false;
    struct dists *pool = calloc(1, sizeof *pool);
    if (pool != NULL && (pool->p = blocks_take(&pool->blocks, (size_t)n * vocab, sizeof *pool->p)) != NULL) {
        pool->size = size;
        *out = pool;
        return true;
    }
    free(pool);
    return err_set(err, ERR_WORK, "not enough memory for %" PRIu32 " distributions over %" PRIu32 " tokens", n, vocab);
}

void
cpu_dists_close(struct dists *pool)
{
    blocks_free(&pool->blocks);
    free(pool);
}
