/* A pool of distributions, which KV caches of several models may share. Each distribution is (vocab) probabilities,
 * with 0 outside the vocabulary of the KV cache that wrote it. */
#pragma once

#include "base/blocks.h"
#include "kernels/cpu/recurrent.h"
#include "kernels/cpu/route.h"
#include "kernels/cpu/weights.h"
#include "kernels/experts.h"
#include "kernels/request.h"
#include "kernels/team.h"

struct dists {
    struct pool_size size;
    float *p; /* (n, vocab) */
    struct blocks blocks;
};

/* backend_ops.dists and drop_dists */
bool cpu_dists_open(struct backend *, uint32_t vocab, uint32_t n, struct dists **, struct err *);
void cpu_dists_close(struct dists *);

static inline struct pool_size
cpu_dists_size(const struct dists *pool) /* NULL: 0 */
{
    return pool != NULL ? pool->size : (struct pool_size){0, 0};
}

static inline float *
cpu_dists_at(const struct dists *pool, dist_t d)
{
    return pool->p + (size_t)d * pool->size.vocab;
}

/* The CPU's state of a context: keys and values, the ring of hidden states, trunk tables, the buffers of a forward pass
 * or head call, and results that wait() has not yet delivered. */

#define HEAD_TILE VERIFY_NODES /* rows in one pass of the head */
#define HEAD_ROWS 256          /* rows in one pass whose logits are not stored */
#define PIECE     512          /* logits that one thread summarises at a time */
#define FEW_ROWS  2            /* up to this number of rows each thread prepares activations itself, which is cheaper */
                               /* than another step */

/* ---- the head's worktable ---- */

struct head_row {
    uint32_t ring, layer, set;
    enum head_choice head;
    float temperature;
    int32_t final;   /* row of this table with layer L of the same ring entry, or -1 */
    int32_t request; /* index of the caller's probe that receives the prediction, or -1 */
    bool kept;       /* this and `before` as in struct probe; the same in all rows of a table */
    token_t before;
};

struct summary { /* statistics of one piece of one row's logits */
    struct piece piece;
    token_t top[PREDICTION_RANKS]; /* without logits that earlier pieces show to be of a later rank */
    float top_z[PREDICTION_RANKS];
    float kl_term;
    uint32_t above; /* number of logits ranked before the final layer's argmax */
};

struct head_table {
    size_t n;     /* rows in use */
    size_t ready; /* number of rows whose logits are already computed */
    struct head_row rows[HEAD_ROWS];
    struct prediction predictions[HEAD_ROWS];
    double max[HEAD_ROWS], sum[HEAD_ROWS]; /* softmax of each row: sum exp(z - max) */
    float *logits;                         /* (HEAD_TILE, n_pieces * PIECE): a row begins every head_stride() numbers */
    float *shifted;                        /* (HEAD_ROWS, width): h + A h + b of rows with an affine head */
    struct summary *pieces;                /* (HEAD_ROWS, n_pieces) */
    /* Block drafters: the logits of the last predict() with rows that are not kept, (max_rows) rows as in `logits`, and
     * the n_kept ring entries that they are of. */
    float *kept_logits;
    uint32_t *kept, n_kept;
    size_t n_pieces; /* most pieces of a row of any set */
    size_t used;     /* most pieces of the rows in use */
};

/* ---- sets of tokens (draft_rows.c) ---- */

struct draft_rows {
    struct matrix base;     /* interleaved: the first rows by rank, as many as the largest base needed */
    struct blocks packed;   /* its memory */
    struct draft_set *sets; /* (desc.sets), from set 1 on */
    unsigned char *raw;     /* (Q8_GROUP rows) in the format of the file */
};

/* ---- layers of experts (moe.c); n is max_rows ---- */

struct expert_row { /* a row that an expert processes */
    uint32_t row;
    float weight;
};

struct moe_table {
    float *logits;            /* (n, experts): the router's outputs */
    struct route *routes;     /* (n, used + 1), by row; the last one is the shared expert */
    float *gate, *up;         /* (n, used * ffn + shared_ffn): hidden units of rows, in the order of their experts */
    struct act_block *q;      /* `gate` in int8, as input of the down matrix */
    float *y;                 /* (n, width): output of one expert */
    uint32_t *touched;        /* (L + 1): forward.touched of the current pass, */
    struct route *routes_out; /* (n, L + 1, used): and its forward.routes, */
    bool wants_routes;        /* if requested */

    uint32_t *starts;               /* (experts + 3): index of each expert's first row */
    struct expert_row *expert_rows; /* (n, used + 1) */
};

/* ---- a thread's own ---- */

struct worker_buffers {
    struct acts acts;     /* a thread's own activations of FEW_ROWS rows */
    struct acts now;      /* the same, as last prepared */
    uint32_t prepared;    /* preparation.number at that time */
    float *keys, *values; /* (ATTEND_BLOCK, head_dim): a block in F32 */
    float *input;         /* (form.per_layer): a token's per-layer embedding */
    uint32_t *order;      /* (vocab): scratch of the sampler */
    float *p;             /* (vocab): scratch of the verifier */
    struct group_buffer group;
    struct acts gathered; /* activations of an expert's rows */
};

/* ---- results that wait ---- */

struct delivery {
    void *out;
    size_t at, bytes; /* range in kv_cache.staged */
};

/* ---- activations that the steps at hand read ---- */

/* Returns row r of the input to prepare: (cols). */
typedef const float *(*acts_row_fn)(const struct kv_cache *, const void *user, size_t r);

struct preparation {
    struct acts to; /* destination if prepared once for all threads */
    size_t n;
    bool in_int8;
    struct norm norm; /* or no norm */
    acts_row_fn row;
    const void *user;
    uint32_t number;
};

struct kv_cache {
    struct weights *weights;
    const struct cpu_isa *isa;
    struct kv_cache_desc desc;
    struct request_limits limits;
    struct blocks blocks;

    float *hidden;       /* (ring, L + 1, width) */
    void *keys, *values; /* of each layer (slots, its kv_heads * head_dim), F16, or F32 when exact, */
    size_t *kv_start; /* (L + 1): from this element on; a layer that reads another one's starts where that one does */
    slot_t *trunk;    /* (seqs, trunk) */
    struct dists *dists; /* shared, or NULL */

    /* Buffers of a forward pass; n is max_rows. */
    struct acts acts; /* (n, widest input) */
    struct preparation preparation;
    float *q, *k, *v,
        *attended;    /* (n, heads * head_dim), (n, kv_heads * head_dim) twice, (n, heads * head_dim), of the */
                      /* layer at hand */
    float *gated;     /* (n, heads, 2, head_dim): queries and their gates; or NULL */
    float *gate, *up; /* (n, ffn), of the layer at hand */
    float *y;         /* (n, width): output of a sublayer */
    float *beside;    /* (n, width): output of the MLP beside experts */
    float *inputs;    /* (n, form.per_layer): the layer's per-layer inputs */
    float *pairs;     /* (n or HEAD_TILE, widest input of a drafter), NULL in other models */
    float *rotations; /* (n, rope_dims/2, 2), then (n, local_dims/2, 2): cosine and sine; local_dims are those */
                      /* of the layers with local rotation */
    uint32_t *active; /* (n): indices of the rows that take part in a layer */
    struct worker_buffers *workers; /* (backend.threads) */
    bool not_repacked;              /* some weights have not been repacked */
    enum use layer_use, head_use;   /* in that case: how to use the current layer and the head */

    struct head_table head;
    struct draft_rows draft;
    struct moe_table moe;
    struct state_cache state;

    char *staged;
    size_t staged_bytes, staged_room;
    struct delivery *deliveries;
    size_t n_deliveries, deliveries_room;
    bool cancelled, failed;
    struct err err; /* the error if `failed` */
};

/* backend_ops.store and backend_ops.drop */
bool cpu_kv_cache_open(struct weights *, const struct kv_cache_desc *, struct kv_cache **, struct err *);
void cpu_kv_cache_close(struct kv_cache *);

/* Takes memory for the activations of rows. */
void cpu_kv_cache_acts(struct kv_cache *, struct acts *, size_t rows, size_t cols);
/* Returns zeroed memory for a result of `bytes` bytes, which cpu_kv_cache_deliver() copies to `out`; valid until the
 * next call. Returns NULL, and marks the KV cache as failed, if there is no memory. */
void *cpu_kv_cache_stage(struct kv_cache *, void *out, size_t bytes);
/* wait(): copies results to the caller, or returns false with an error. */
bool cpu_kv_cache_deliver(struct kv_cache *, struct err *);
/* Returns whether the next work must be dropped; reads the cancel flag. */
bool cpu_kv_cache_stopped(struct kv_cache *);

/* Returns the numbers of layer 1..L. */
static inline struct layer_sizes
cpu_layer_sizes(const struct kv_cache *s, uint32_t l)
{
    return layer_sizes(&s->weights->desc, &s->weights->layer_forms[l]);
}

/* Returns the distance of two rows of head.logits. */
static inline size_t
head_stride(const struct kv_cache *s)
{
    return s->head.n_pieces * PIECE;
}

static inline float *
cpu_kv_cache_hidden(const struct kv_cache *s, uint32_t ring, uint32_t depth)
{
    const struct model_desc *d = &s->weights->desc;
    return s->hidden + ((size_t)ring * (d->n_layers + 1) + depth) * d->width;
}
