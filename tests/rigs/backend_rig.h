/* A backend with a small random model and a tree of rows, for tests that speak to kernels/backend.h directly. Node i of
 * the tree has slot and ring entry i (unless a test changes them); nodes 0, 1, 2, … are given in any order in which
 * parents come first. Functions fail the running cmocka test themselves. */
#pragma once

#include "tests/rigs/naive_model.h"

#define RIG_NODES 96
#define RIG_DEPTH 8 /* layers at most */
#define RIG_WIDTH 256
#define RIG_VOCAB 1300
#define RIG_DISTS 70
#define RIG_SETS  3 /* if the backend has sets */

#define RIG_SHAPE(layers, width_, heads_, kv, dim, ffn_, vocab_, ...)                                                  \
    {                                                                                                                  \
        .n_layers = layers, .width = width_, .heads = heads_, .kv_heads = kv, .head_dim = dim, .ffn = ffn_,            \
        .vocab = vocab_, __VA_ARGS__                                                                                   \
    }

struct rig_node {
    token_t token;
    int parent;        /* -1: position 0 */
    uint32_t position; /* filled by rig_node() */
    uint32_t depth;    /* of the last forward pass */
    slot_t slot;
    uint32_t ring;
    const bool *skip_attention, *skip_mlp; /* as of its last forward pass, for the naive model */
};

struct rig {
    const struct backend_ops *ops;
    struct naive_model *model;
    const struct model_desc *desc;
    struct backend *backend;
    struct weights *weights;
    struct dists *dists;      /* RIG_DISTS of them, over the model's vocabulary */
    const struct rig *beside; /* the rig that owns them; NULL: this one owns them */
    struct kv_cache *kv_cache;
    token_t rank[RIG_VOCAB]; /* a random order of the vocabulary, for RIG_SETS sets of tokens */
    atomic_bool cancel;
    struct rig_node nodes[RIG_NODES];
    int n;
    uint64_t random;
};

void rig_open(struct rig *, const struct backend_ops *, const struct naive_shape *, uint64_t seed,
              const struct backend_options *);
/* Opens another model on the same backend and pool. Its vocabulary must not be larger, and it must be closed first. */
void rig_open_beside(struct rig *, const struct rig *, const struct naive_shape *, uint64_t seed);
void rig_close(struct rig *);
void rig_restart(struct rig *); /* starts an empty tree in a new KV cache */

uint32_t rig_random(struct rig *, uint32_t below);

int rig_add(struct rig *, int parent, token_t);      /* a node, embedded */
void rig_chain(struct rig *, int n);                 /* n random tokens in a row, from the start */
void rig_tree(struct rig *, int n);                  /* n random nodes */
void rig_trunk(struct rig *, seq_t, int node);       /* makes the path to node the trunk of a sequence */
int rig_path(const struct rig *, int node, int *to); /* writes the nodes from position 0 to node; returns how many */

/* Returns the forward pass that takes nodes to a depth; it is valid until the next call. A path is divided after at
 * most n_trunk rows of sequence 0's trunk, which must be the path's own first rows. */
const struct forward_pass *rig_forward(struct rig *, const int *nodes, int n, uint32_t to, uint32_t n_trunk);
void rig_step(struct rig *, const int *nodes, int n, uint32_t to, uint32_t n_trunk);
void rig_step_all(struct rig *); /* takes all nodes to depth L; no node is in a trunk */
void rig_wait(struct rig *);     /* must succeed */

void rig_logits(struct rig *, int node, uint32_t layer, float *out);    /* (vocab) */
void rig_hidden(struct rig *, int node, uint32_t layer, float *out);    /* (width) */
void rig_naive(struct rig *, int node, double *hidden, double *logits); /* (L + 1, width), (vocab) of layer L */

/* Fails the test unless the node's hidden states and last logits are near the naive model's: within `embedding` at
 * depth 0 (if the embedding is not normed), within `bound` elsewhere. */
void rig_assert_near_naive(struct rig *, int node, double embedding, double bound);

double rig_distance(const float *, const double *, size_t n); /* |a - b| / |b| */
