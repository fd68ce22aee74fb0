/* Types and functions that the files of engine/context share. Private to that folder. */
#pragma once

#include "base/blocks.h"
#include "engine/context/context.h"

/* State of a row's embedding. A cancel may drop queued work, so an embedding counts as done only after a wait(). */
enum embedding {
    EMBED_NO,
    EMBED_QUEUED,
    EMBED_DONE,
    EMBED_NONE /* of a block drafter: the row was fed, so it has keys and values and no hidden states */
};

struct slot {      /* a row */
    uint32_t refs; /* number of trunks that hold it, or 1 while it is uncommitted; 0: free */
    token_t token;
    uint32_t pos, depth;
    uint32_t ring; /* place of its hidden states; RING_NONE after another row took the place */
    seq_t seq;     /* of an uncommitted row; SEQ_NONE in a trunk */
    slot_t parent; /* of an uncommitted row: its parent if uncommitted, SLOT_NONE for the trunk's end */
    enum embedding embedding;
    uint32_t features; /* place of its features; FEATURES_NONE: they are not kept */
    bool marked;       /* scratch within one call; false between calls */
    bool planned;      /* a pass left out sublayers of it */
};

/* Ring places whose rows are committed or freed, in a circle through places[limits.ring]: free places first, then
 * committed rows in the order of their commit. A new row takes the first. The place of an uncommitted row is in no
 * list, so it is never reused. */
struct place {
    slot_t slot;         /* the row whose hidden states are here; SLOT_NONE: free */
    uint32_t prev, next; /* in the circle */
};

/* The state after a committed row. */
struct checkpoint {
    slot_t slot;
    uint32_t state, number; /* number: in the order of their making */
    bool lasting;           /* at the end of a prompt: dropped after those within a text */
};

#define CONTEXT_CHECKPOINTS 4

struct trunk {
    bool used;
    uint32_t len;
    uint32_t unneeded;        /* its rows before this position need no features */
    uint32_t state, in_state; /* recurrent layers: the state after in_state of its rows; STATE_NONE: none, in_state 0 */
    uint32_t sent;            /* the backend's table holds trunk[0..sent) (it may be longer than len) */
    slot_t *trunk;            /* (ctx) */
};

#define FEATURES_NONE  UINT32_MAX
#define FEATURES_CHUNK 64 /* rows */

/* Places for features, in chunks of rows; a stack of free places. Zeros: none are kept. */
struct features {
    float **chunk;
    uint32_t n_chunks, *free, n_free;
};

struct context_set { /* sizes of a set of tokens */
    uint32_t base, recent;
    uint64_t counted; /* the last head call in which its recent tokens were counted */
};

struct context {
    struct blocks blocks; /* the memory of all that the context points to */
    const struct backend_ops *ops;
    struct kv_cache *kv_cache;
    struct context_options limits;
    uint32_t n_layers, depth, vocab, n_slots; /* depth: the layer at which rows are committed */
    struct slot *slots;                       /* (n_slots) */
    slot_t *free;                             /* (n_slots) a stack of n_free free slots */
    uint32_t n_free;
    struct place *places; /* (ring + 1) */
    slot_t *open;         /* (ring) the n_open uncommitted rows, in order of append: parents before children */
    uint32_t n_open;
    struct trunk *sequences;   /* (seqs) */
    slot_t *trunks;            /* (seqs, ctx) */
    struct dist_pool *pool;    /* limits.dists */
    bool own_pool;             /* the pool is closed with this context */
    bool making;               /* distributions were queued since the last wait() */
    struct row *rows;          /* (max_rows) rows of the forward pass being built */
    slot_t *tails;             /* (max_rows, ring) the tails of these rows */
    slot_t *prefill;           /* (same size as rows) slots of the chunk of a prompt in flight */
    struct probe *probes;      /* (max_probes) */
    struct verify_node *nodes; /* (seqs, VERIFY_NODES) of the rounds being verified */
    struct verify_req *rounds; /* (seqs) */
    struct features features;
    uint32_t width;
    bool feeds;         /* a drafter's: rows can be fed, */
    bool continues;     /* and other rows continue the row before them; */
    bool drafts_blocks; /* a block drafter's: fed rows are complete; */
    bool attends_after; /* and rows of a block attend to later ones */
    uint32_t *before;   /* (max_rows) ring entries of the parents of rows that continue them */
    double markov_load; /* loads of a head call that reads the Markov head only */
    struct loads loads;
    double trained_load;      /* loads that a layer's trained head adds */
    struct context_set *sets; /* (limits.sets), from set 1 on */
    /* (L + 1) each, NULL without experts: experts that the last forward pass used, and an expert's share of a layer's
     * load */
    uint32_t *touched;
    double *expert_share;
    uint32_t experts_used; /* experts that one row is routed to */
    bool follows_experts;  /* forward passes record routes */
    struct route *routes;  /* (max_rows, L + 1, used) routes of the current forward pass */
    struct route *kept;    /* (ring, L + 1, used) routes of the rows in the ring; EXPERT_NONE: not recorded */
    /* Recurrent layers: states in use (n_states), the number of references to each; NULL: there are no such layers. */
    uint32_t *states, n_states, n_checkpoints, n_made;
    struct checkpoint checkpoints[CONTEXT_CHECKPOINTS];
    uint64_t calls;    /* number of head calls */
    uint64_t *counted; /* (L + 1) the last head call in which a layer's trained head was counted */
    struct err err;
    atomic_bool never; /* replaces a missing cancel flag */
};

/* Takes the tables of experts and computes their shares of a layer's load (context_forward.c). */
void context_experts_open(struct context *, const struct model_desc *);

/* Discards the routes of a ring place, which a new row takes. */
void context_experts_forget(struct context *, uint32_t place);

/* Returns the row in a slot, or NULL after setting the error. */
struct slot *context_row(struct context *, slot_t);
/* Returns the sequence, or NULL after setting the error. */
struct trunk *context_trunk(struct context *, seq_t);

/* Drops one reference to the row. At 0, frees the slot and its place in the ring. */
void context_release(struct context *, slot_t);
/* Discards all uncommitted rows of a sequence that are not marked; unmarks the others. */
void context_discard_unmarked(struct context *, seq_t);

void context_place_last(struct context *, uint32_t place);
/* Takes a place for a row that runs again, which loses the hidden states there; and returns it. */
uint32_t context_place_take(struct context *);
void context_place_return(struct context *, uint32_t place);
uint32_t context_places(const struct context *); /* number of places that can be taken */

/* ---- states of recurrent layers (context_states.c); without such layers these do nothing and succeed ---- */

void context_states_open(struct context *, const struct model_desc *);
/* Advances the sequence's state by committed rows at its end, whose inputs are in the ring. */
bool context_state_advance(struct context *, struct trunk *, const slot_t *, size_t n);
/* Makes a checkpoint after rows were committed, if it is time for one. */
void context_state_committed(struct context *, seq_t, uint32_t before);
void context_state_release(struct context *, struct trunk *);
/* Goes back to a state before the trunk's present end; context_state_settle() runs the missing rows. */
void context_state_rewind(struct context *, struct trunk *);
/* Lets a fork of the whole trunk share its state; returns false if it must be rewound instead. */
bool context_state_share(struct context *, struct trunk *fork, const struct trunk *from);
/* Makes the state the one after all rows of the trunk; the trunk tables must have been sent. */
bool context_state_settle(struct context *, seq_t);
void context_checkpoint_drop(struct context *, slot_t);

/* ---- features (context_features.c) ---- */

void context_features_open(struct context *);
/* Copies the features of rows at the end of the sequence whose hidden states are in the ring. */
bool context_features_keep(struct context *, const struct trunk *, const slot_t *path, size_t n);
void context_features_drop(struct context *, struct slot *);

/* Adds the loads of an exit rule's probe at a layer (context_decide.c). */
void context_count_probe(struct context *, uint32_t layer, const struct exit_rule *);

/* Queues what the backend needs before it computes: changed trunk tables, embeddings of new rows. */
bool context_flush(struct context *);
/* Calls wait(). If it fails, queued tables and embeddings count as lost. */
bool context_wait(struct context *);
/* Handles a request that the backend refused: waits for queued work, then sets the error. Returns false. */
bool context_refused(struct context *, const char *what);
void context_clear_error(struct context *);
