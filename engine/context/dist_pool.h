/* Numbers of distributions in a pool of the backend's, for the contexts that share it: those of several models, whose
 * vocabularies may differ, on one backend and one thread. Each number is handed out once until all are released.
 *
 * A context only queues what it makes. One that comes to another's distribution waits for that other's queue first, so
 * that nobody has to think of it; a failure there is told by the one that came. */
#ifndef ENGINE_CONTEXT_DIST_POOL_H
#define ENGINE_CONTEXT_DIST_POOL_H

#include "kernels/backend.h"

struct context;

struct dist_pool {
    const struct backend_ops *ops;
    struct dists *dists;
    uint32_t vocab, n;
    uint32_t used;          /* numbers below it are in use */
    struct context **maker; /* (n) whose queue a distribution was put in last, or NULL */
};

/* n distributions over vocab tokens, the most that any of the models has. */
bool dist_pool_open(struct dist_pool **, const struct backend_ops *, struct backend *, uint32_t vocab, uint32_t n,
                    struct err *);
void dist_pool_close(struct dist_pool *);   /* after its contexts; NULL is none */
void dist_pool_release(struct dist_pool *); /* all of them, whoever made them, at the end of a round */

/* For contexts: one is closed. */
void dist_pool_forget(struct dist_pool *, const struct context *);

#endif
