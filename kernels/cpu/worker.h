/* A thread of the team that carries out a request: its share of the work, the barrier between steps, and the
 * activations that products read, which the workers of a team prepare together. */
#ifndef KERNELS_CPU_WORKER_H
#define KERNELS_CPU_WORKER_H

#include "kernels/cpu/store.h"

struct worker {
    struct store *store;
    struct worker_buffers *own;
    uint32_t rank, size;
};

/* In a parallel region: the calling thread's. */
struct worker worker_here(struct store *);

static inline void
worker_barrier(struct worker *w)
{
    team_barrier(&w->store->team, w->size);
}

static inline struct range
worker_share(const struct worker *w, size_t n)
{
    return team_share(n, w->rank, w->size);
}

/* This worker's share of n outputs, in whole groups of Q8_GROUP. */
struct range worker_outputs(const struct worker *, size_t n);

/* Before a team begins. */
void worker_begin(struct store *);
/* All workers, before they multiply with a unit's matrices: settles it if it is its turn. `use`: the store's, of it. */
void worker_unit(struct worker *, uint32_t unit, enum use *use);
/* y (n, ld): these outputs of all rows. */
void worker_multiply(const struct worker *, enum use, const struct matrix *m, const struct acts *, size_t n,
                     struct range, float *y, size_t ld);

/* Row r of what is to be prepared: (cols). */
typedef const float *(*worker_row_fn)(const struct worker *, const void *user, size_t r);

/* Activations (n, cols) for a matmul, int8 too when `in_int8`: with a norm (not NULL, and there), row(r) normalised by it;
 * without, row(r) as it is, or x (n, cols) where `row` is NULL. Ends with everything that this worker may read ready. */
struct acts worker_activations(struct worker *, size_t n, uint32_t cols, bool in_int8, const struct norm *norm,
                               worker_row_fn row, const void *user, float *x);

#endif
