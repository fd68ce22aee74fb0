/* What the files of the context share. Nobody else includes this. */
#ifndef ENGINE_CONTEXT_CONTEXT_INTERNAL_H
#define ENGINE_CONTEXT_CONTEXT_INTERNAL_H

#include "engine/context/context.h"

/* Where a row's embedding is. Queued work may be dropped by a cancel, so it counts as done only after a wait(). */
enum embedding { EMBED_NO, EMBED_QUEUED, EMBED_DONE };

struct slot {      /* a row */
    uint32_t refs; /* trunks that hold it, or 1 while it is uncommitted; 0: free */
    token_t token;
    uint32_t pos, depth;
    uint32_t ring; /* its hidden states; RING_NONE once others took the place */
    seq_t seq;     /* of an uncommitted row; SEQ_NONE in a trunk */
    slot_t parent; /* of an uncommitted row: another one, or SLOT_NONE for the trunk's end */
    enum embedding embedding;
    bool marked; /* scratch within one call; false between calls */
    bool prompt; /* its class */
};

/* Ring places whose rows are not in flight, in a circle through places[limits.ring]: free ones first, then committed
 * rows in the order of their commit. A new row takes the first; an uncommitted row's place is in no list, so it is
 * never taken away. */
struct place {
    slot_t slot;         /* who has its hidden states here; SLOT_NONE: free */
    uint32_t prev, next; /* in the circle */
};

struct sequence {
    bool used;
    uint32_t len;
    uint32_t sent; /* trunk[0..sent) is what the backend's table holds (it may be longer than len) */
    slot_t *trunk; /* (ctx) */
};

struct context {
    const struct backend_ops *ops;
    struct store *store;
    struct context_options limits;
    uint32_t n_layers, depth, vocab, n_slots; /* depth: of committed rows */
    struct slot *slots;                       /* (n_slots) */
    slot_t *free;                             /* (n_slots) a stack of n_free */
    uint32_t n_free;                          /* */
    struct place *places;                     /* (ring + 1) */
    slot_t *open;               /* (ring) the n_open uncommitted rows, in order of append: parents before children */
    uint32_t n_open;            /* */
    struct sequence *sequences; /* (seqs) */
    slot_t *trunks;             /* (seqs, ctx) */
    struct dist_pool *pool;     /* as limits.dists */
    bool own_pool;              /* nobody else's */
    bool making;                /* distributions were queued since the last wait() */
    struct row *rows;           /* (max_rows, or prompt_rows) of the sweep being built */
    slot_t *tails;              /* (max_rows, ring) */
    slot_t *prefill;            /* (as rows) the chunk of a prompt in flight */
    struct probe *probes;       /* (max_probes) */
    struct verify_node *nodes;  /* (seqs, VERIFY_NODES) of the rounds being verified */
    struct verify_req *rounds;  /* (seqs) */
    struct loads loads;
    double trained_load; /* what a layer's trained head adds to it */
    /* Of a mixture of experts, else NULL: how many the last sweep touched, and an expert's share of a layer's load; (L + 1) */
    uint32_t *touched;
    double *expert_share;
    uint32_t experts_used; /* by a row */
    bool follows_experts;  /* sweeps ask where rows go: */
    struct route *routes;  /* (max_rows, L + 1, used) those of the sweep at hand, */
    struct route *kept;    /* (ring, L + 1, used) those of rows in the ring; EXPERT_NONE: not known */
    uint64_t calls;        /* of the head, */
    uint64_t *counted;     /* and the last one in which a layer's trained head was counted: (L + 1) */
    struct err err;
    atomic_bool never; /* stands in for a missing cancel flag */
};

/* What layers of experts count (context_forward.c). False: no memory. */
bool context_experts_open(struct context *, const struct model_desc *);

/* The place is another row's from now on. */
void context_experts_forget(struct context *, uint32_t place);

/* The slot's row, or NULL after setting the error. */
struct slot *context_row(struct context *, slot_t);
/* The sequence, or NULL after setting the error. */
struct sequence *context_trunk(struct context *, seq_t);

/* One reference less to each; what nobody holds any more is free, together with its place in the ring. */
void context_release(struct context *, slot_t);
/* Discards all uncommitted rows of a sequence that are not marked; unmarks the others. */
void context_discard_unmarked(struct context *, seq_t);

void context_place_last(struct context *, uint32_t place);

/* Queues what the backend must know before it computes: trunk tables that changed, embeddings of new rows. */
bool context_flush(struct context *);
/* wait(), and what follows from its failing: queued tables and embeddings count as lost. */
bool context_wait(struct context *);
/* A request that the backend calls malformed: waits for what is queued, then says so. Returns false. */
bool context_refused(struct context *, const char *what);
void context_clear_error(struct context *);

#endif
