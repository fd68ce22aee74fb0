/* Recurrent layers (docs/methods.md 4), and the state cache beside the KV cache.
 *
 * A state is the one after the last committed row of a sequence: for each recurrent layer and value head a matrix S
 * (key_dim, value_dim), and the inputs of the convolution at the last taps - 1 positions. A row that is not committed
 * has only the inputs of its own update, at its place in the ring. A forward pass applies the updates along each row's
 * path to a copy of S, sixteen columns at a time, so that it reads S once. Short convolutions have no S.
 *
 * cpu_state_advance() only notes the committed rows. Each layer applies their updates when a forward pass reads the
 * state next, or before the inputs are overwritten. */
#pragma once

#include "kernels/backend.h"
#include "kernels/cpu/isa.h"

struct blocks;

/* An update of the tree of a pass's rows: from one copy of the state to another. */
struct recurrent_step {
    uint32_t ring; /* place of the inputs */
    int32_t row;   /* the row of the pass whose output it gives, among those of the layer; -1: an earlier pass ran it */
    int32_t from, to; /* copies; from -1: the state itself */
};

/* A node of that tree: the last row of a path. */
struct recurrent_node {
    uint32_t ring;
    int32_t row, parent, child, next; /* parent -1: the trunk; child: the first one, next: its sibling, or -1 */
    int32_t heavy;                    /* the child with the largest subtree, which comes last, or -1 */
    uint32_t size;                    /* rows of the subtree */
};

/* The rows of a pass that continue the same state. */
struct recurrent_group {
    uint32_t state, n_steps;
    const struct recurrent_step *steps;
};

struct state_cache {             /* all sizes are 0 if the model has no recurrent layers */
    uint32_t layers;             /* recurrent layers, up to kv_cache_desc.depth */
    uint32_t *index;             /* (L + 1): number of a recurrent layer among them */
    uint32_t key_dim, value_dim; /* padded: to STATE_ROWS and STATE_COLS */
    size_t state, window, input; /* floats of a layer: S of all heads; inputs of the convolution; inputs of an update */

    float *states;       /* (kv_cache_desc.states, layers, state): S as (value_heads, value_dim/16, key_dim, 16) */
    float *windows;      /* (states, layers, taps - 1, channels): position p at p mod (taps - 1) */
    float *inputs;       /* (ring, layers, input): channels; with states k and v of all heads, decays, betas */
    uint32_t *ring_of;   /* (slots): place of a row that is not committed */
    uint32_t *length;    /* (states): committed rows, those of `pending` included */
    uint32_t *pending;   /* (states, ring): places of committed rows whose updates some layers have not applied */
    uint32_t *n_pending; /* (states) */
    uint32_t *applied;   /* (states, layers): number of them that a layer has applied */

    /* Buffers of a layer; n is max_rows. */
    float *x, *z;                              /* (n, channels), (n, value_heads * value_dim unpadded) */
    float *a, *b;                              /* (n, value_heads), (n, outputs of b's matrix) */
    float *q, *o;                              /* (n, key_heads, key_dim), (n, value_heads, value_dim) */
    float *q_scale, *k_scale;                  /* (key_dim): 1 / d_k and 1 / sqrt(d_k), as weights of a norm */
    uint32_t levels;                           /* copies of the state at a time */
    float *copies;                             /* (threads, levels, key_dim, 16) */
    const float *(*taps)[RECURRENT_TAPS_MOST]; /* (n): inputs of a row's convolution */

    /* The plan of a pass's updates. */
    struct recurrent_node *nodes;   /* (ring) */
    int32_t *node_of;               /* (ring): a place's node, or -1 */
    struct recurrent_step *steps;   /* (ring) */
    struct recurrent_step *waiting; /* (ring): stack of the walk, with the node as `row` */
    struct recurrent_group *groups; /* (n_groups), at most n */
    size_t n_groups, planned;       /* planned: rows that the plan is for; 0 at the start of a pass */
};

/* Allocates the state cache of a KV cache; nothing if the model has no recurrent layers. Returns false if there is no
 * memory. */
bool recurrent_open(struct kv_cache *);
/* backend_ops.advance */
bool cpu_state_advance(struct kv_cache *, uint32_t to, uint32_t from, const slot_t *slots, size_t n);
/* Call before a row takes a place in the ring: applies pending updates whose inputs are there. */
void recurrent_place(struct kv_cache *, slot_t, uint32_t ring);
/* Returns false if a row's state is not that of its trunk. */
bool recurrent_continues(const struct kv_cache *, const struct row *, size_t n);

/* Computes what a recurrent layer's last matrix reads, (n, value_heads * value_dim), from the prepared activations.
 * `active` (n) are indices of rows of the pass, ancestors first. Returns the result, valid until the next call. */
float *recurrent_layer(struct kv_cache *, const struct forward_pass *, uint32_t l, size_t n, const uint32_t *active);
