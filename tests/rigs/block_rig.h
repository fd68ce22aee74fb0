/* Small random block drafters (struct drafter_desc) for tests of backends and contexts, and the same computation in
 * double precision without caches. */
#pragma once

#include "base/blocks.h"
#include "kernels/backend.h"

#define BLOCK_WIDTH   64u
#define BLOCK_VOCAB   90u
#define BLOCK_OUTPUTS 41u /* of a reduced vocabulary */
#define BLOCK_LAYERS  3u  /* at most */
#define BLOCK_MOST    8u  /* rows of a block at most */
#define BLOCK_RANK    32u

struct block_form {
    const char *name;
    uint32_t layers, block, window;
    enum weight_type type; /* of matrices */
    bool causal, from_anchor, markov, named;
    bool of_file; /* matrices are in memory as in a file, so backends repack them later */
    bool mixed;   /* the first layer is causal and has the window, the others are not and see all */
    bool plain;   /* no norms of q and k, biases instead; features are not projected, and have a norm */
};

struct block_model {
    struct blocks blocks; /* the memory of all that the description points to */
    struct drafter_desc drafter;
    struct layer_desc layers[BLOCK_LAYERS];
    struct model_desc desc;
    uint64_t seed;
    uint32_t n; /* synthetic tensors */
};

/* Makes a model; fails the running cmocka test if there is no memory. */
void block_model_open(struct block_model *, const struct block_form *, uint64_t seed);
void block_model_close(struct block_model *);

/* Writes features (n, drafter.features) of rows that are fed. */
void block_features(const struct block_model *, uint64_t seed, uint32_t n, float *features);

/* Computes a block of n rows with these tokens after n_context rows with these features, at positions n_context, …:
 * hidden (n, layers + 1, width) and logits (n, head.rows) without a bias. */
void block_naive(const struct block_model *, const float *features, uint32_t n_context, const token_t *, uint32_t n,
                 double *hidden, double *logits);
/* Adds the Markov head's outputs for the token before to logits (head.rows). */
void block_naive_bias(const struct block_model *, token_t before, double *logits);
