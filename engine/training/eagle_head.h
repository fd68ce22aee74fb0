/* An EAGLE-3 head in training (Li et al. 2025, arXiv:2503.01840; docs/policies/eagle.md): its sizes and its weights in
 * F32. eagle_training.h trains it, and eagle_file.h writes it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/blocks.h"
#include "base/err.h"
#include "engine/model/model.h"

/* Tensors in the order of their values. Q, K and V follow one another, and so do gate and up. */
enum eagle_part {
    EAGLE_FC,           /* (width, features) g of the target's features */
    EAGLE_TOKEN_NORM,   /* (width) of the token's embedding */
    EAGLE_FEATURE_NORM, /* (width) of g */
    EAGLE_Q,            /* (heads * head_dim, 2 width) read both norms */
    EAGLE_K,            /* (kv_heads * head_dim, 2 width) */
    EAGLE_V,
    EAGLE_O,          /* (width, heads * head_dim) */
    EAGLE_FFN_NORM,   /* (width) */
    EAGLE_GATE,       /* (ffn, width) */
    EAGLE_UP,         /* (ffn, width) */
    EAGLE_DOWN,       /* (width, ffn) */
    EAGLE_FINAL_NORM, /* (width) */
    EAGLE_HEAD,       /* (vocab, width) */
    EAGLE_PARTS
};

struct eagle_head {
    struct blocks blocks; /* the memory of all the following */
    uint32_t width, heads, kv_heads, head_dim, ffn;
    uint32_t n_features, layers[MODEL_FEATURES]; /* the target's layers whose outputs are read; 0 is the embedding */
    uint32_t features;                           /* n_features * width */
    uint32_t vocab;                              /* outputs */
    uint32_t target_vocab, ctx;
    float eps, rope_base;
    token_t *tokens; /* (vocab) ids of the outputs, ascending */
    float *values;   /* (n_values) all tensors */
    size_t n_values;
    size_t at[EAGLE_PARTS]; /* where each begins */
};

/* Sets the layers whose outputs a head reads, which are the format's usual ones: after 2, L/2 and L - 3. Fails with one
 * line if the model has fewer than three. */
#define EAGLE_FEATURES 3
bool eagle_target_layers(const struct model *, uint32_t layers[EAGLE_FEATURES], struct err *);

/* Makes a head with initial weights for a target. `tokens` lists the ids of its outputs, ascending. Fails on lack of
 * memory, or as above. The caller calls eagle_head_free(). */
bool eagle_head_new(struct eagle_head **, const struct model *target, const token_t *tokens, uint32_t n, uint64_t seed,
                    struct err *);
void eagle_head_free(struct eagle_head *);

/* Sets a tensor's shape; a vector has rows 1. */
void eagle_part_shape(const struct eagle_head *, enum eagle_part, uint32_t *rows, uint32_t *cols);

/* The row of a part that GGUF files store as `row`: the two rows of Q and K that RoPE rotates together are adjacent
 * there, and half a head apart here. */
uint32_t eagle_stored_row(const struct eagle_head *, enum eagle_part, uint32_t row);

static inline float *
eagle_part(const struct eagle_head *h, enum eagle_part part)
{
    return h->values + h->at[part];
}
