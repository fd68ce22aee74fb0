/* Rows, slots, sequences: what every method in this program is built from.
 *
 * A row is a token at a place in a tree of sequences: a slot in the KV store, a parent row, a position (its depth in
 * the tree, which sets RoPE), a depth (last layer run on it) and hidden states. A sequence is a *trunk* of committed
 * rows, position 0 upwards, all at depth L; uncommitted rows hang off its end as a tree. keep() commits a path of that
 * tree and frees the rest. A fork shares the first rows of another sequence's trunk and is dropped when done.
 *
 * Hidden states (depths 0..L) are stored for a ring of recent rows. A row that lost its place in the ring can still be
 * attended to, but not advanced or probed.
 *
 * Nothing is allocated after context_open(). Everything that can fail says why in context_error(), which is about the
 * last call: ERR_NONE when that went well. A cancelled call changes no depth; it can be repeated.
 */
#ifndef ENGINE_CONTEXT_CONTEXT_H
#define ENGINE_CONTEXT_CONTEXT_H

#include "engine/trained/exit_heads.h"
#include "kernels/backend.h"

struct context;

struct context_options {  /* 0 but in ctx: as kernels/request.h, store_defaults() */
    uint32_t ctx;         /* longest trunk, in positions; above 0 */
    uint32_t spare;       /* uncommitted rows and forked rows beyond ctx */
    uint32_t ring;        /* rows whose hidden states are stored, beside prompt_rows more */
    uint32_t seqs;        /* sequences alive at a time */
    uint32_t max_rows;    /* rows in one advance; no more than ring/2 */
    uint32_t max_probes;  /* probes in one guess call; larger calls are split */
    uint32_t prompt_rows; /* rows of a prompt's chunk (context_prompt()); 0: prompts are rows like others */
    /* Rows go to that layer and are committed there: L is to be read as it; 0: the model's last. Nothing can be verified
     * then, nor compared with the last layer. */
    uint32_t depth;
    struct dist_pool *dists;   /* shared with other contexts, borrowed; NULL: STORE_DISTS of its own */
    const atomic_bool *cancel; /* or NULL */
    enum head_kind heads;      /* the trained heads that the weights have, for the accounts */
    double layer_load;         /* what a layer counts in the accounts, */
    double head_load;          /* and a head call; 0: 1, as in the target's own context */
};

/* Sublayers left out of an advance: (L + 1) switches indexed by layer 1..L, or NULL for none. A row may only attend to
 * rows that have keys and values in the layers it runs itself: give one plan to a whole uncommitted path. */
struct plan {
    const bool *skip_attention, *skip_mlp;
};

/* Backend and weights are borrowed. */
bool context_open(struct context **, const struct backend_ops *, struct backend *, struct weights *,
                  const struct model_desc *, const struct context_options *, struct err *);
void context_close(struct context *);
const struct err *context_error(const struct context *);
const struct context_options *context_limits(const struct context *); /* with the defaults filled in */

/* ---- experts (kernels/experts.h) ---- */

/* From now on: where rows of a mixture go is asked for and kept as long as their hidden states are; prompts and other reading aside.
 * False: not any more, and what was kept is forgotten. At first it isn't; a model without experts never has any. */
void context_follow_experts(struct context *, bool);
/* Where a row went at a layer, by descending weights: at most n of them into out. Returns how many; 0: the layer has no experts,
 * has not run, or nobody knows. */
uint32_t context_experts(const struct context *, slot_t, uint32_t layer, struct route *out, uint32_t n);
/* Experts that the last sweep touched at its layers of experts, on average over these; NAN: it had none, or the backend can't tell. */
double context_experts_touched(const struct context *);

/* ---- sequences ---- */

seq_t context_sequence(struct context *);                  /* an empty one; SEQ_NONE when all are in use */
seq_t context_fork(struct context *, seq_t, uint32_t len); /* shares trunk rows 0..len-1 */
/* Frees its rows that nobody shares. It cleans up after others: what context_error() says of them stays. */
void context_drop(struct context *, seq_t);
void context_truncate(struct context *, seq_t, uint32_t len);             /* trunk to len rows; uncommitted rows go */
bool context_keep(struct context *, seq_t, const slot_t *path, size_t n); /* path: rows of depth L, the first a child of
                                                                      the trunk's end; all other uncommitted rows go */
uint32_t context_length(const struct context *, seq_t);                   /* rows in the trunk */
slot_t context_at(const struct context *, seq_t, uint32_t pos);           /* trunk row at a position */

/* ---- rows ---- */

/* A row at depth 0, child of the trunk's last row (parent SLOT_NONE means that too) or of an uncommitted row of the
 * sequence. SLOT_NONE when slots, positions or places in the ring run out. */
slot_t context_append(struct context *, seq_t, slot_t parent, token_t);
void context_discard(struct context *, slot_t); /* an uncommitted row and its descendants */

uint32_t context_depth(const struct context *, slot_t);
uint32_t context_position(const struct context *, slot_t);
token_t context_token(const struct context *, slot_t);
bool context_hidden_kept(const struct context *, slot_t); /* still in the ring? */

/* One sweep, layers ascending; rows join at their own depth. Every ancestor has depth >= to or is in the call; a
 * parent comes before its children. Rows already at `to` are ignored. Synchronous: on return the depths are true. */
bool context_advance(struct context *, const slot_t *, size_t n, uint32_t to, const struct plan *);

/* Layer by layer with probing, deciding on rows[n-1]; earlier rows are carried along: a row of depth d joins at layer
 * d + 1 (SpecBound's reuse). `to` bounds the depth. */
bool context_advance_until(struct context *, const slot_t *rows, size_t n, uint32_t to, const struct exit_rule *,
                           struct exit_result *);

/* (slot, layer) pairs in one head call. */
struct context_probe {
    slot_t slot;
    uint32_t layer;
    enum head_choice head;
    float temperature;
    bool versus_final;
};
bool context_guess(struct context *, const struct context_probe *, size_t n, struct guess *out);

/* The row's hidden state after a layer that it has run, while the ring keeps it: (width) floats, before any norm. For what
 * the host computes from it; whatever only asks heads asks context_guess(). */
bool context_read_hidden(struct context *, slot_t, uint32_t layer, float *out);

/* Reads: append, advance to L and keep, in chunks; uncommitted rows of the sequence go. `done` may be NULL; it is
 * called after every chunk. Stops with ERR_CANCELLED when the cancel flag is set or done() says so; whole chunks stay
 * in the trunk. */
bool context_prefill(struct context *, seq_t, const token_t *, size_t n, progress_fn done, void *user);

/* The same of a whole prompt, in place of all that the sequence holds. Where the context has prompt_rows and the prompt
 * at least as many tokens, its rows are of class `prompt` (kernels/backend.h), in chunks of prompt_rows from position 0.
 * Only this makes such rows, so a prompt's rows have the same bits whenever it is read. Forks share them. */
bool context_prompt(struct context *, seq_t, const token_t *, size_t n, progress_fn done, void *user);
bool context_is_prompt(const struct context *, slot_t); /* a row of that class, which no other call can run again */
const char *context_prompts(const struct context *);    /* what multiplies them, for people; NULL: nothing of its own */

/* ---- distributions and decisions ----
 * A dist_t may come from any context that shares the pool. */

/* Only queued: it is made by the time it is used. DIST_NONE: error. */
dist_t context_dist(struct context *, slot_t, uint32_t layer, enum head_choice head, const struct sampling *);
/* The same at n rows, at most VERIFY_NODES, in one head call: their distributions are out[i]. */
bool context_dists(struct context *, const slot_t *, size_t n, uint32_t layer, enum head_choice head,
                   const struct sampling *, dist_t *out);
/* TOKEN_NONE: an error, or (context_error() is ERR_NONE) nothing is left to draw. */
token_t context_draw(struct context *, dist_t, const struct rng_key *, const token_t *without, size_t n_without);
/* A token from each of n distributions, at most VERIFY_NODES, with one wait for all. False: an error; else out[i] is
 * TOKEN_NONE where nothing is left. */
bool context_draws(struct context *, const dist_t *, const struct rng_key *, size_t n, token_t *out);
/* The likeliest token that is not in `without`, lowest id among equals. TOKEN_NONE as above. */
token_t context_likeliest(struct context *, dist_t, const token_t *without, size_t n_without);
/* Of drafted tokens, and two distributions over each (kernels/backend.h), with one wait for all. */
bool context_overlaps(struct context *, const struct overlap_req *, size_t n);
/* All of them, at the end of a round; nothing where the pool is shared: dist_pool_release(). */
void context_release_dists(struct context *);

struct verify_row { /* as struct verify_node, with slots */
    int32_t parent;
    token_t token;
    slot_t slot; /* at depth L; SLOT_NONE: no row of its own */
    dist_t q;
};
/* rows[0] is the pending token's row; it may be the trunk's last one (a first token after prefill is a bonus). A row
 * with a slot is a child of its parent's slot. A candidate accepted without a row is the last on out->path. */
bool context_verify(struct context *, seq_t, const struct verify_row *rows, size_t n, const struct sampling *,
                    uint64_t seed, struct verdict *out);

/* Rounds of several sequences, at most as many as the context has: the same verdicts as one by one, with one head call
 * for all of them. The seed alone names a round's random numbers, not the sequence. */
struct verify_round {
    seq_t seq;
    const struct verify_row *rows;
    size_t n;
    struct sampling sampling;
    uint64_t seed;
    struct verdict *out;
};
bool context_verify_all(struct context *, const struct verify_round *, size_t n);

/* ---- accounts ---- */

struct loads {     /* running totals, in units of the target's layers and head */
    double layers; /* one load = one layer's weights read once, however many rows pass; a skipped sublayer
                             counts one half less. Of a layer of experts: what one row reads; experts that rows of
                             the call go to beyond so many count by their share */
    double heads;  /* head calls; a call on several rows is one load. A layer's affine head adds its parameters'
                      share of the LM head's; a full one is a load of its own */
};
struct loads context_loads(const struct context *);

/* For tests. */
bool context_read_logits(struct context *, slot_t, uint32_t layer, float *out); /* (vocab) */
bool context_read_dist(struct context *, dist_t, float *out);                   /* (the pool's vocab) */
uint32_t context_free_slots(const struct context *);
/* Where the device's time went since this was last asked, in words. False, and "": it is not measured. */
bool context_describe_time(struct context *, char *text, size_t room);

/* Numbers of distributions in a pool of the backend's, for the contexts that share it: those of several models, whose
 * vocabularies may differ, on one backend and one thread. Each number is handed out once until all are released.
 *
 * A context only queues what it makes. One that comes to another's distribution waits for that other's queue first, so
 * that nobody has to think of it; a failure there is told by the one that came. */

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
