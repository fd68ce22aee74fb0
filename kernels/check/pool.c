#include "kernels/check/pool.h"

#include <inttypes.h>
#include <stdlib.h>

bool
pool_open(struct backend *b, uint32_t vocab, uint32_t n, struct dists **out, struct err *err)
{
    *out = NULL;
    struct pool *p = calloc(1, sizeof *p);
    if (p == NULL)
        return err_set(err, ERR_WORK, "not enough memory for a pool of distributions");
    p->size = (struct pool_size){.vocab = vocab, .n = n};
    if (!cpu_backend.dists(b, vocab, n, &p->inner, err)) {
        free(p);
        return false;
    }
    p->made = calloc(n, sizeof *p->made);
    p->queued = calloc(n, sizeof *p->queued);
    *out = (struct dists *)(void *)p;
    if (p->made != NULL && p->queued != NULL)
        return true;
    pool_close(*out);
    *out = NULL;
    return err_set(err, ERR_WORK, "not enough memory for a pool of distributions");
}

void
pool_close(struct dists *d)
{
    struct pool *p = pool_of(d);
    cpu_backend.drop_dists(p->inner);
    free(p->made);
    free(p->queued);
    free(p);
}

bool
pool_claim(struct pool *p, dist_t d, const struct store *who, struct err *err)
{
    if (d == DIST_NONE)
        return true;
    if (p->queued[d] != NULL && p->queued[d] != who)
        return err_set(err, ERR_WORK, "distribution %" PRIu32 " is used by two stores with no wait() in between", d);
    p->queued[d] = who;
    return true;
}

void
pool_settle(struct pool *p, const struct store *who)
{
    for (uint32_t i = 0; p != NULL && i < p->size.n; i++)
        if (p->queued[i] == who)
            p->queued[i] = NULL;
}
