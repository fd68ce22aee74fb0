/* A pool of distributions that knows which were made, and which store has one queued: code that lets two stores at the
 * same distribution without a wait() in between is told so. */
#ifndef KERNELS_CHECK_POOL_H
#define KERNELS_CHECK_POOL_H

#include "kernels/request.h"

/* What the world knows as struct dists. */
struct pool {
    struct dists *inner; /* the CPU's */
    struct pool_size size;
    bool *made;                  /* (n) */
    const struct store **queued; /* (n) who named it since its last wait(), or NULL */
};

/* backend_ops.dists and drop_dists */
bool pool_open(struct backend *, uint32_t vocab, uint32_t n, struct dists **, struct err *);
void pool_close(struct dists *);

static inline struct pool *
pool_of(struct dists *d)
{
    return (struct pool *)(void *)d;
}

/* A store is about to queue a request that names the distribution; false: another one has. DIST_NONE goes well. */
bool pool_claim(struct pool *, dist_t, const struct store *, struct err *);
/* What the store queued is done. The pool may be NULL. */
void pool_settle(struct pool *, const struct store *);

#endif
