/* The steps of a request: distribution of work to the team's threads, and activations for products. */
#pragma once

#include "kernels/cpu/kv_cache.h"

struct worker { /* a thread that works on a step */
    struct kv_cache *kv_cache;
    struct worker_buffers *own;
};

struct work {
    size_t units, grain; /* units are distributed `grain` at a time */
    size_t cost;         /* approximate number of multiplications per unit */
};

/* Carries out one thread's units of a step. */
typedef void (*worker_fn)(const struct worker *, const void *arg, struct range units);

/* Carries out a step and returns when it is complete. */
void worker_for(struct kv_cache *, struct work, worker_fn, const void *arg);

/* Returns the work of n outputs of products of `rows` rows with `cols` inputs, in whole groups of Q8_GROUP. */
static inline struct work
work_of_outputs(size_t n, size_t rows, size_t cols)
{
    return (struct work){n, Q8_GROUP, rows * cols};
}

/* Returns the work of n rows whose preparation costs about `cost` multiplications each. */
static inline struct work
work_of_rows(size_t n, size_t cost)
{
    return (struct work){n, 1, cost};
}

/* Call before the steps of a request. */
void worker_begin(struct kv_cache *);
/* Call before products with a unit's matrices: repacks the unit if it is due. `use` is the KV cache's field for this
 * unit. */
void worker_unit(struct kv_cache *, uint32_t unit, enum use *use);
/* Writes these outputs of all rows to y (n, ld). */
void worker_multiply(const struct worker *, enum use, const struct matrix *m, const struct acts *, size_t n,
                     struct range, float *y, size_t ld);

/* Sets the activations for the products of the next steps: (n, cols), also in int8 if `in_int8`. They are row(r),
 * normalised if there is a norm, or x (n, cols) if `row` is NULL. */
void worker_prepare(struct kv_cache *, size_t n, uint32_t cols, bool in_int8, struct norm norm, acts_row_fn row,
                    const void *user, float *x);
/* Returns the activations during a step. */
const struct acts *worker_acts(const struct worker *);

/* The MLP of a layer with experts. The rows of a call are sorted by expert, so that the weights of each expert are read
 * once. The outputs of a row's experts are added in the order of the experts' indices, so the bits of a row depend only
 * on the row itself. */

/* Allocates the buffers of a KV cache for layers with experts, for `rows` rows; nothing if the model has none. Returns
 * false if there is no memory. */
bool moe_open(struct kv_cache *, size_t rows);

/* Chooses the experts of each row by the router's outputs for the prepared activations. `rows` (n) are indices of rows
 * of the forward pass. */
void moe_route(struct kv_cache *, uint32_t l, size_t n, const uint32_t *rows);
/* Computes y (n, width) = the sum over a row's experts of weight * expert(x), from the prepared activations x. */
void moe(struct kv_cache *, uint32_t l, size_t n);

/* Attention of single rows, and rotary position embeddings. */

/* The slots that a row sees, in position order: a part of a trunk, then a tail that ends with the row itself, or with
 * later rows of its block. */
struct path {
    const slot_t *trunk, *tail;
    size_t n_trunk, n;
    size_t own;   /* position of the row */
    size_t first; /* positions below it are not visible */
};

#define ATTEND_ROWS 8 /* rows that are processed together on one trunk */

/* A thread's buffers for keys and values in F32: (ATTEND_BLOCK, head_dim) each. */
struct widened {
    float *keys, *values;
};

/* Parameters per head, with the first head of the call at [0]; or NULL. */
struct of_heads {
    const float *sinks;  /* score of a virtual first position with value 0 (Xiao et al. 2023, as in gpt-oss) */
    const float *slopes; /* form.alibi */
};

/* Computes attention for some query heads of n <= ATTEND_ROWS rows, all on key-value head `kv_head` of layer l (1..L),
 * each row over its own path. Reads row i's heads from q + i * ld and writes to out + i * ld, (n_heads, head_dim); q is
 * already scaled (form.attention_scale). */
void attend(const struct kv_cache *, struct widened, uint32_t l, uint32_t kv_head, const struct path *, size_t n,
            size_t n_heads, const float *q, struct of_heads, float *out, size_t ld);

/* Stores the keys and values of one head in the KV cache. k, v: (head_dim) */
void remember(const struct kv_cache *, uint32_t l, uint32_t kv_head, slot_t, void *keys_or_values, const float *kv);

/* Writes cosine and sine of every pair's angle at a position to rotations (dims/2, 2), for these radians per position
 * (dims/2), multiplied by `gain`. */
void rope_rotations(const double *rope, uint32_t dims, float gain, uint32_t position, float *rotations);
/* Rotates the first `dims` dimensions of one head. */
void rope(enum rope_layout, uint32_t dims, const float *rotations, float *x);

/* Writes a token's embedding, scaled as the form has it, to e (width). */
void embed_token(const struct kv_cache *, token_t, float *e);
/* pair (2 width) = [norm(e); norm(g)] for a drafter's token and g; `normed`: g is normed already. */
void drafter_pair(const struct kv_cache *, token_t, const float *g, bool normed, float *pair);
/* In a block drafter: computes and stores the keys and values of n rows in every layer from their g (n, width). */
void forward_keys(struct kv_cache *, const struct row *, size_t n, float *g);
/* backend_ops.feed, for requests that request_feed() has checked. */
void forward_feed(struct kv_cache *, const struct row *, size_t n, const float *features, const uint32_t *before);

/* The forward pass: runs rows through layers. */

/* Early exit in until(): the rule, and where to write the results. */
struct exit_watch {
    const struct exit_rule *rule;
    struct exit_result *out;
    struct prediction *probed; /* (L + 1) or NULL */
};

/* Runs all rows to depth forward.to, or with a watch until the last row exits. Marks the KV cache as cancelled if the
 * cancel flag was set. */
void forward_run(struct kv_cache *, const struct forward_pass *, const struct exit_watch *);
