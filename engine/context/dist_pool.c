#include "engine/context/dist_pool.h"

#include <stdlib.h>

bool
dist_pool_open(struct dist_pool **out, const struct backend_ops *ops, struct backend *backend, uint32_t vocab,
               uint32_t n, struct err *err)
{
    *out = NULL;
    struct dist_pool *p = calloc(1, sizeof *p);
    if (p == NULL)
        return err_set(err, ERR_WORK, "not enough memory for a pool of distributions");
    *p = (struct dist_pool){.ops = ops, .vocab = vocab, .n = n};
    p->maker = calloc(n, sizeof *p->maker);
    if (p->maker == NULL)
        err_set(err, ERR_WORK, "not enough memory for a pool of distributions");
    if (p->maker == NULL || !ops->dists(backend, vocab, n, &p->dists, err)) {
        p->dists = NULL;
        dist_pool_close(p);
        return false;
    }
    *out = p;
    return true;
}

void
dist_pool_close(struct dist_pool *p)
{
    if (p == NULL)
        return;
    if (p->dists != NULL)
        p->ops->drop_dists(p->dists);
    free(p->maker);
    free(p);
}

void
dist_pool_release(struct dist_pool *p)
{
    p->used = 0;
}

void
dist_pool_forget(struct dist_pool *p, const struct context *c)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->maker[i] == c)
            p->maker[i] = NULL;
}
