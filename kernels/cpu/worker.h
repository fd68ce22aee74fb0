/* Steps of a request: what the team of threads shares out, and the activations that products read. */
#ifndef KERNELS_CPU_WORKER_H
#define KERNELS_CPU_WORKER_H

#include "kernels/cpu/store.h"

struct worker { /* a thread in a step */
    struct store *store;
    struct worker_buffers *own;
};

struct work {
    size_t units, grain; /* shared out `grain` at a time */
    size_t cost;         /* of a unit: about so many multiplications */
};

/* One thread's units of a step. */
typedef void (*worker_fn)(const struct worker *, const void *arg, struct range units);

/* Carries a step out; when it returns, all of it is done. */
void worker_for(struct store *, struct work, worker_fn, const void *arg);

/* n outputs of products of `rows` rows with `cols` inputs, in whole groups of Q8_GROUP. */
static inline struct work
work_of_outputs(size_t n, size_t rows, size_t cols)
{
    return (struct work){n, Q8_GROUP, rows * cols};
}

/* Rows whose preparation takes about `cost` each. */
static inline struct work
work_of_rows(size_t n, size_t cost)
{
    return (struct work){n, 1, cost};
}

/* Before a request's steps. */
void worker_begin(struct store *);
/* Before products with a unit's matrices: settles it if it is its turn. `use`: the store's, of it. */
void worker_unit(struct store *, uint32_t unit, enum use *use);
/* y (n, ld): these outputs of all rows. */
void worker_multiply(const struct worker *, enum use, const struct matrix *m, const struct acts *, size_t n,
                     struct range, float *y, size_t ld);

/* What products of the next steps read: activations (n, cols), int8 too when `in_int8`: row(r), normalised where there is
 * a norm, or x (n, cols) where `row` is NULL. */
void worker_prepare(struct store *, size_t n, uint32_t cols, bool in_int8, struct norm norm, acts_row_fn row,
                    const void *user, float *x);
/* In a step: these activations. */
const struct acts *worker_acts(const struct worker *);

#endif
