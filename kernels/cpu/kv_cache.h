/* A pool of distributions, which stores of several models may share: each is (vocab) probabilities, 0 beyond the
 * vocabulary of the store that wrote it. */
#ifndef KERNELS_CPU_KV_CACHE_H
#define KERNELS_CPU_KV_CACHE_H

#include "kernels/cpu/blocks.h"
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
cpu_dists_size(const struct dists *pool) /* which may be NULL */
{
    return pool != NULL ? pool->size : (struct pool_size){0, 0};
}

static inline float *
cpu_dists_at(const struct dists *pool, dist_t d)
{
    return pool->p + (size_t)d * pool->size.vocab;
}

/* What a context keeps on the CPU: keys and values, the ring of hidden states, trunk tables; the buffers that a sweep or a
 * head call works in; and results that wait to be handed out. */

#define HEAD_TILE VERIFY_NODES /* rows in one pass of the head */
#define HEAD_ROWS 256          /* rows in one pass whose logits are not kept */
#define PIECE     512          /* logits that one thread summarises at a time */
#define FEW_ROWS  2            /* up to here threads prepare activations for themselves: cheaper than another step */

/* ---- the head's worktable ---- */

struct head_row {
    uint32_t ring, layer;
    enum head_choice head;
    float temperature;
    int32_t final;   /* the row of this table with layer L of the same ring entry, or -1 */
    int32_t request; /* whose guess this is: an index into the caller's, or -1 */
};

struct summary { /* of one piece of one row's logits */
    struct piece piece;
    token_t top[GUESS_TOP];
    float top_z[GUESS_TOP];
    float kl_term;
    uint32_t above; /* logits before the final layer's argmax, in rank */
};

struct head_table {
    size_t n;     /* rows in use */
    size_t ready; /* rows whose logits are there already */
    struct head_row rows[HEAD_ROWS];
    struct guess guesses[HEAD_ROWS];
    double max[HEAD_ROWS], sum[HEAD_ROWS]; /* softmax of each row: sum exp(z - max) */
    float *logits;                         /* (HEAD_TILE, vocab) */
    float *shifted;                        /* (HEAD_ROWS, width) h + A h + b of rows with an affine head */
    struct summary *pieces;                /* (HEAD_ROWS, n_pieces) */
    size_t n_pieces;
};

/* ---- layers of experts (moe.c); n is max_rows ---- */

struct visitor { /* of an expert */
    uint32_t row;
    float weight;
};

struct mixture_table {
    float *logits;        /* (n, experts): what the router says */
    struct route *routes; /* (n, used + 1), by row; the last one of a row is where all rows go */
    float *gate, *up;     /* (n, used * ffn + shared_ffn): hidden units of visitors, in the order of their experts */
    struct act_block *q;  /* gate, as down reads it */
    float *y;             /* (n, width): what one expert says */
    uint32_t *touched;    /* (L + 1): of the sweep at hand, sweep.touched, */
    struct route *told;   /* (n, L + 1, used): and sweep.routes; */
    bool tells;           /* if that is asked for */

    uint32_t *starts;         /* (experts + 3): where visitors of each expert begin */
    struct visitor *visitors; /* (n, used + 1) */
};

/* ---- a thread's own ---- */

struct worker_buffers {
    struct acts acts;     /* FEW_ROWS rows */
    struct acts now;      /* … as they were prepared */
    uint32_t prepared;    /* the last time: preparation.number */
    float *keys, *values; /* (ATTEND_BLOCK, head_dim): a block in F32 */
    uint32_t *order;      /* (vocab) scratch of the sampler */
    float *p;             /* (vocab) and of the verifier */
    struct group_buffer group;
    struct acts gathered; /* of an expert's visitors */
};

/* ---- results that wait ---- */

struct delivery {
    void *out;
    size_t at, bytes; /* in store.staged */
};

/* ---- activations that the steps at hand read ---- */

/* Row r of what is to be prepared: (cols). */
typedef const float *(*acts_row_fn)(const struct store *, const void *user, size_t r);

struct preparation {
    struct acts to; /* where they are prepared once for all */
    size_t n;
    bool in_int8;
    struct norm norm; /* or none */
    acts_row_fn row;
    const void *user;
    uint32_t number;
};

struct store {
    struct weights *weights;
    const struct cpu_isa *isa;
    struct store_desc desc;
    struct request_limits limits;
    struct blocks blocks;

    float *hidden;       /* (ring, L + 1, width) */
    void *keys, *values; /* (L, slots, kv_heads * head_dim), F16, or F32 when exact */
    slot_t *trunk;       /* (seqs, trunk) */
    struct dists *dists; /* shared, or NULL */

    /* a sweep's; n is max_rows */
    struct acts acts; /* (n, widest input) */
    struct preparation preparation;
    float *q, *k, *v, *attended; /* (n, heads * head_dim), (n, kv_heads * head_dim) twice, as q */
    float *gate, *up;            /* (n, ffn) */
    float *y;                    /* (n, width): what a sublayer adds */
    float *turns;                /* (2, n, rope_dims/2, 2): cosine and sine; those of local layers behind the others */
    uint32_t *active;            /* (n) rows that take part in a layer */
    struct worker_buffers *workers; /* (backend.threads) */
    bool unsettled;                 /* are there weights that have not settled? */
    enum use layer_use, head_use;   /* if so, of the layer at hand and of the head */

    struct head_table head;
    struct mixture_table mixture;

    char *staged;
    size_t staged_bytes, staged_room;
    struct delivery *deliveries;
    size_t n_deliveries, deliveries_room;
    bool cancelled, failed;
    struct err err; /* when failed */
};

/* backend_ops.store and .drop. */
bool cpu_store_open(struct weights *, const struct store_desc *, struct store **, struct err *);
void cpu_store_close(struct store *);

/* Zeroed memory for a result of `bytes`, to be copied to `out` by cpu_store_deliver; valid until the next call. NULL, and
 * the store failed, when there is no memory. */
void *cpu_store_stage(struct store *, void *out, size_t bytes);
/* wait(): hands results out, or says why there are none. */
bool cpu_store_deliver(struct store *, struct err *);
/* Is the work that comes now to be dropped? Looks at the cancel flag. */
bool cpu_store_stopped(struct store *);

static inline float *
cpu_store_hidden(const struct store *s, uint32_t ring, uint32_t depth)
{
    const struct model_desc *d = &s->weights->desc;
    return s->hidden + ((size_t)ring * (d->n_layers + 1) + depth) * d->width;
}

#endif
