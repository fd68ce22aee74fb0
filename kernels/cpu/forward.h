/* Steps of a request: what the team of threads shares out, and the activations that products read. */
#ifndef KERNELS_CPU_FORWARD_H
#define KERNELS_CPU_FORWARD_H

#include "kernels/cpu/kv_cache.h"

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

/* The MLP of a layer of experts. The rows of a call are put in order by the expert that they go to, so that each expert that
 * any of them goes to is read once; what it says of a row is added to the row in the order of the experts' indices. So a
 * row's bits hang on nothing but the row. */

/* What the parts of a store for layers of experts take, of `rows` rows; nothing where the model has none. False: no memory. */
bool mixture_take(struct store *, size_t rows);

/* The store's y (n, width) = the sum over a row's experts of weight * expert(x), x as prepared. `rows` (n): which of the sweep's they are. */
void mixture(struct store *, uint32_t l, size_t n, const uint32_t *rows);

/* Attention of one row, and the rotations that tell it where everything is. */

/* The places a row sees, in position order: a piece of a trunk, then a tail that ends with itself. */
struct path {
    const slot_t *trunk, *tail;
    size_t n_trunk, n;
    size_t first; /* position: those before it are not seen */
};

#define ATTEND_ROWS 8 /* that go over a trunk together */

/* What a thread widens keys and values into: (ATTEND_BLOCK, head_dim) each. */
struct widened {
    float *keys, *values;
};

/* What heads have of their own, the first of some at [0]; or NULL. */
struct of_heads {
    const float *sinks;  /* scores of a place before all, whose value is 0 (Xiao et al. 2023, as gpt-oss has it) */
    const float *slopes; /* form.alibi */
};

/* Some query heads of n <= ATTEND_ROWS rows, all on key-value head `kv_head` of layer l (1..L), each row over its own
 * path. Row i's heads are at q + i * ld and go to out + i * ld, (n_heads, head_dim); q is scaled (form.attention_scale). */
void attend(const struct store *, struct widened, uint32_t l, uint32_t kv_head, const struct path *, size_t n,
            size_t n_heads, const float *q, struct of_heads, float *out, size_t ld);

/* Keys and values of one head into the store. k, v: (head_dim) */
void remember(const struct store *, uint32_t l, uint32_t kv_head, slot_t, void *keys_or_values, const float *kv);

/* turns (rope_dims/2, 2): cosine and sine of every pair's angle at a position, with these radians per position, times a gain. */
void rope_turns(const struct weights *, const double *rope, float gain, uint32_t position, float *turns);
/* Rotates one head's first rope_dims dimensions. */
void rope(const struct model_desc *, const float *turns, float *x);

/* The forward pass: rows through layers. */

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
