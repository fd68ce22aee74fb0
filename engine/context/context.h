/* Rows, slots and sequences: the operations that every drafting method in this program is built from.
 *
 * A row is a token at a node of a tree of sequences. It has a slot in the KV cache, a parent row, a position (its
 * depth in the tree, which sets RoPE), a depth (the last layer that was run on it) and hidden states. A sequence is a
 * *trunk* of committed rows, from position 0 upwards, all at depth L. Uncommitted rows form a tree at the end of the
 * trunk. context_keep() commits a path of that tree and frees its other rows. A fork shares the first rows of another
 * sequence's trunk and is dropped after use.
 *
 * Hidden states (depths 0..L) are stored for a ring of recent rows. A row that lost its place in the ring can still be
 * attended to, but cannot be advanced or probed.
 *
 * Nothing is allocated after context_open() but features. context_error() returns the error of the last call, ERR_NONE
 * if it succeeded. A cancelled call changes no depth and can be repeated. */
#pragma once

#include "engine/model/trained/exit_heads.h"
#include "kernels/backend.h"

struct context;

struct context_options { /* 0 except in ctx: the default of kv_cache_defaults(), kernels/request.h */
    uint32_t ctx;        /* longest trunk, in positions; above 0 */
    uint32_t spare;      /* uncommitted rows and forked rows beyond ctx */
    uint32_t ring;       /* rows whose hidden states are stored */
    uint32_t seqs;       /* sequences alive at a time */
    /* rows in one advance; no more than ring/2. 0: also the backend's prompt_rows, with a larger ring */
    uint32_t max_rows;
    uint32_t max_probes; /* probes in one head call; context_predict() splits larger requests */
    /* Rows run up to this layer and are committed there: it takes the place of L. 0: the model's last layer. With a
     * depth below the last layer, nothing can be verified or compared with the last layer. */
    uint32_t depth;
    /* Sets of tokens besides set 0 (kernels/backend.h), and the vocabulary in the order in which their bases take it,
     * borrowed. 0: none. A backend without sets is an error. */
    uint32_t sets;
    const token_t *rank;
    struct dist_pool *dists;   /* shared with other contexts, borrowed; NULL: an own pool of KV_CACHE_DISTS */
    const atomic_bool *cancel; /* or NULL */
    enum head_kind heads;      /* the kind of trained heads in the weights, for the accounts */
    double layer_load;         /* loads that a layer counts in the accounts */
    double head_load;          /* loads that a head call counts; 0 in either: 1, as in the target's context */
    /* The context keeps the hidden states of committed rows after these layers, (n_features) from 0 to L, for feature
     * drafters; borrowed. With a depth below L they are not kept. */
    const uint32_t *features;
    uint32_t n_features;
    /* A drafter's context: loads of context_feed(), with features and without, in units of its own layers. */
    double feed_load, refeed_load;
};

/* Sublayers that an advance leaves out: (L + 1) switches indexed by layer 1..L, or NULL for none. A row may only
 * attend to rows that have keys and values in the layers that it runs itself, so use the same plan for a whole
 * uncommitted path. */
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

/* Switches the recording of the experts that each row is routed to. The routes of a row are stored as long as its
 * hidden states; prefills are not recorded. Switching off discards the recorded routes. It is off at first, and has no
 * effect in a model without experts. */
void context_follow_experts(struct context *, bool);
/* Writes at most n routes of a row at a layer to `out`, in descending order of weight. Returns their number; 0: the
 * layer has no experts, it was not run, or the routes are not recorded. */
uint32_t context_experts(const struct context *, slot_t, uint32_t layer, struct route *out, uint32_t n);
/* Returns the number of experts that the last forward pass used, averaged over its layers of experts; NAN if it had
 * none, or the backend cannot count them. */
double context_experts_touched(const struct context *);

/* ---- sequences ---- */

seq_t context_sequence(struct context *);                  /* an empty one; SEQ_NONE if all are in use */
seq_t context_fork(struct context *, seq_t, uint32_t len); /* shares trunk rows 0..len-1 */
/* Frees the sequence, and those of its rows that are not shared. Leaves context_error() unchanged if it succeeds, so
 * it can clean up after a failed call. */
void context_drop(struct context *, seq_t);
/* Cuts the trunk to len rows and frees the uncommitted rows. */
void context_truncate(struct context *, seq_t, uint32_t len);
/* Keeps the states of recurrent layers at the present end of the trunk, so that context_truncate() and context_fork()
 * to this length cost nothing; without it, and without a checkpoint of the context itself (at a prompt's end, and every
 * 256 rows), rows since the last checkpoint run again. `lasting`: it is dropped last. */
void context_checkpoint(struct context *, seq_t, bool lasting);
/* Commits a path: rows of depth L, the first a child of the trunk's end. Frees all other uncommitted rows. */
bool context_keep(struct context *, seq_t, const slot_t *path, size_t n);
uint32_t context_length(const struct context *, seq_t);         /* rows in the trunk */
slot_t context_at(const struct context *, seq_t, uint32_t pos); /* trunk row at a position */

/* ---- rows ---- */

/* Appends a row at depth 0, as the child of the trunk's last row (parent SLOT_NONE means this row, too) or of an
 * uncommitted row of the sequence. Returns SLOT_NONE if there is no free slot, position or place in the ring. */
slot_t context_append(struct context *, seq_t, slot_t parent, token_t);
void context_discard(struct context *, slot_t); /* an uncommitted row and its descendants */

uint32_t context_depth(const struct context *, slot_t);
uint32_t context_position(const struct context *, slot_t);
token_t context_token(const struct context *, slot_t);
bool context_hidden_kept(const struct context *, slot_t); /* still in the ring? */

/* Runs one forward pass up to layer `to`, layers ascending; each row joins at its own depth. Every ancestor must have
 * depth >= to or be in the call, a parent before its children. Rows already at `to` are ignored. Synchronous: the
 * depths are updated on return. */
bool context_advance(struct context *, const slot_t *, size_t n, uint32_t to, const struct plan *);

/* Makes set 1..sets of the first `base` tokens by rank and of n <= DRAFT_RECENT others. Probes, exit rules and
 * distributions name a set; it applies to those queued after the call. */
bool context_draft_set(struct context *, uint32_t set, uint32_t base, const token_t *recent, size_t n);

/* Advances layer by layer, probes, and decides by rows[n-1] where to stop. A row of depth d joins at layer d + 1
 * (SpecBound's reuse). `to` bounds the depth. */
bool context_advance_until(struct context *, const slot_t *rows, size_t n, uint32_t to, const struct exit_rule *,
                           struct exit_result *);

/* (slot, layer) pairs in one head call. */
struct context_probe {
    slot_t slot;
    uint32_t layer;
    enum head_choice head;
    float temperature;
    bool versus_final; /* with set 0 only */
    uint32_t set;
    bool kept; /* of a block drafter: as in struct probe (kernels/backend.h) */
    token_t before;
};
bool context_predict(struct context *, const struct context_probe *, size_t n, struct prediction *out);

/* Copies the row's hidden state after a layer that it has run: (width) floats, before any norm. Fails if the state has
 * left the ring. For computations on the host; to apply a head, use context_predict(). */
bool context_read_hidden(struct context *, slot_t, uint32_t layer, float *out);

/* ---- feature drafters (struct drafter_desc, kernels/backend.h) ---- */

/* The features of a committed row: (n_features, width), in the order of the options; valid while the row is committed
 * and needs them. NULL: they are not kept. */
const float *context_features(const struct context *, slot_t);
/* Declares that rows of the sequence, and of its later forks, need features from position `pos` on, which is 0 at
 * first. Those of rows before it are dropped, also for forks. A lower position holds for rows that are committed from
 * now on. */
void context_features_need(struct context *, seq_t, uint32_t pos);
/* In a drafter's context: computes the input of n <= max_rows rows at depth 0 from features (n, drafter.features). A
 * row that was not fed before it is advanced continues the row before it, whose output must be in the ring.
 *
 * In a block drafter's context rows that are fed reach depth L, and context_keep() commits them. Other rows are
 * embedded as tokens. Those of one chain in one context_advance() are a block: they attend to one another, unless the
 * drafter is causal. Blocks are not committed. */
bool context_feed(struct context *, const slot_t *, size_t n, const float *features);

/* Appends n tokens, advances them to L and commits them, in chunks. Frees the uncommitted rows of the sequence. `done`
 * (may be NULL) is called after every chunk. Stops with ERR_CANCELLED if the cancel flag is set or done() returns
 * false; complete chunks stay in the trunk. */
bool context_prefill(struct context *, seq_t, const token_t *, size_t n, progress_fn done, void *user);

/* Replaces the content of the sequence by a whole prompt. */
bool context_prompt(struct context *, seq_t, const token_t *, size_t n, progress_fn done, void *user);

/* ---- distributions and decisions ----
 * A dist_t may come from any context that shares the pool. */

/* Queues a distribution of a row at a layer; uses of it wait until it is computed. Returns DIST_NONE on failure. */
dist_t context_dist(struct context *, slot_t, uint32_t layer, enum head_choice head, const struct sampling *);
/* Queues the distributions out[i] of n rows, at most VERIFY_NODES, in one head call, each over its set; sets NULL: over
 * all tokens. */
bool context_dists(struct context *, const slot_t *, size_t n, uint32_t layer, enum head_choice head,
                   const uint32_t *sets, const struct sampling *, dist_t *out);
/* The same for rows of a block drafter, from the logits that the last context_predict() of rows that are not kept left
 * (context_probe.kept), increased by the Markov head for the token before[i]; TOKEN_NONE: not increased. */
bool context_block_dists(struct context *, const slot_t *, size_t n, const token_t *before, const struct sampling *,
                         dist_t *out);
/* Draws a token that is not in `without`. Returns TOKEN_NONE on failure, or (context_error() is ERR_NONE) if no token
 * is left. */
token_t context_draw(struct context *, dist_t, const struct rng_key *, const token_t *without, size_t n_without);
/* Draws a token from each of n distributions, at most VERIFY_NODES, with one wait for all. Returns false on failure.
 * out[i] is TOKEN_NONE if no token is left. */
bool context_draws(struct context *, const dist_t *, const struct rng_key *, size_t n, token_t *out);
/* Returns the likeliest token that is not in `without`, the lowest id among equals. TOKEN_NONE as in context_draw(). */
token_t context_likeliest(struct context *, dist_t, const token_t *without, size_t n_without);
/* Computes the overlap of two distributions for each of n drafted tokens (kernels/backend.h), with one wait for all. */
bool context_overlaps(struct context *, const struct overlap_req *, size_t n);

struct verify_row { /* as struct verify_node, with slots */
    int32_t parent;
    token_t token;
    slot_t slot; /* at depth L; SLOT_NONE: no row of its own */
    dist_t q;
};
/* rows[0] is the row of the pending token; it may be the trunk's last row (the first token after a prefill is a
 * bonus). A row with a slot is a child of its parent's slot. A candidate that is accepted without a row is the last on
 * out->path. */
bool context_verify(struct context *, seq_t, const struct verify_row *rows, size_t n, const struct sampling *,
                    uint64_t seed, struct verdict *out);

/* Rounds of several sequences, at most as many as the context has. The verdicts are those of single calls, with one
 * head call for all rounds. A round's random numbers depend on its seed only, not on the sequence. */
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

struct loads { /* running totals, in units of the target's layers and head */
    /* One load is one layer's weights read once, for any number of rows. A skipped sublayer counts one half less. A
     * layer of experts counts what one row reads; each further expert that rows of the call use adds its share. */
    double layers;
    /* Head calls; a call on several rows is one load. A layer's affine head adds its parameters' share of the LM
     * head's. A full head is a load of its own. Of a head over a set, only the set's share of the vocabulary counts.
     * A call on kept logits counts the Markov head's share of the LM head, if it adds a bias. */
    double heads;
};
struct loads context_loads(const struct context *);

/* For tests. */
bool context_read_logits(struct context *, slot_t, uint32_t layer, float *out); /* (vocab) */
bool context_read_dist(struct context *, dist_t, float *out);                   /* (the pool's vocab) */
/* Writes where the device's time was spent since the last call. Returns false and writes "" if it is not measured. */
bool context_describe_time(struct context *, char *text, size_t room);

/* A pool of numbered distributions of the backend, shared by the contexts of several models on one backend and one
 * thread. The vocabularies of the models may differ. Each number is used once until all are released.
 *
 * A context only queues the computation of a distribution. A context that uses a distribution of another one waits for
 * that context's queue first, and reports a failure there as its own. */

struct context;

struct dist_pool {
    const struct backend_ops *ops;
    struct dists *dists;
    uint32_t vocab, n;
    uint32_t used;          /* numbers below it are in use */
    struct context **maker; /* (n) the context whose queue computes each distribution, or NULL */
};

/* Opens a pool of n distributions over vocab tokens, the largest vocabulary of the models. */
bool dist_pool_open(struct dist_pool **, const struct backend_ops *, struct backend *, uint32_t vocab, uint32_t n,
                    struct err *);
void dist_pool_close(struct dist_pool *);   /* after its contexts; NULL is none */
void dist_pool_release(struct dist_pool *); /* releases all distributions, of all contexts, at the end of a round */

/* A context calls this when it is closed. */
void dist_pool_forget(struct dist_pool *, const struct context *);
