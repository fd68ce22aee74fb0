/* The forward pass: rows through layers. */
#ifndef KERNELS_CPU_SWEEP_H
#define KERNELS_CPU_SWEEP_H

#include "kernels/cpu/store.h"

/* A thread in a parallel region. */
struct worker {
    struct store *store;
    struct worker_buffers *own;
    uint32_t rank, size;
};

struct worker worker_here(struct store *);

static inline void
meet(struct worker *w)
{
    team_wait(&w->store->team, w->size);
}

static inline struct range
share(const struct worker *w, size_t n)
{
    return team_share(n, w->rank, w->size);
}

/* Activations (n, cols) for a matmul, int8 too when `in_int8`. With a norm, rows[r] are normalised by it; without,
 * x holds the rows as they are. Ends with everything that this worker may read ready. */
struct acts prepare(struct worker *, size_t n, uint32_t cols, bool in_int8, const float *norm,
                    const float *(*row)(const struct worker *, const void *, size_t), const void *user, float *x);

/* until()'s part of a sweep: when to stop, and what to say then. */
struct exit_watch {
    const struct exit_rule *rule;
    struct exit_result *out;
    struct guess *probed; /* (L + 1) or NULL */
};

/* All rows to depth sweep.to, or with a watch until the last row leaves. The store is marked cancelled when the cancel
 * flag stopped it. */
void sweep_run(struct store *, const struct sweep *, const struct exit_watch *);

#endif
