/* A Hugging Face model of one layer, small enough to be made for each test: the bytes of its safetensors file, and a
 * config that matches them. */
#pragma once

#include "kernels/layer_tensors.h"

/* The sizes of all such models; "%s" takes the rest of the object, as ,"rope_theta":500000 */
#define TINY_CONFIG(model_type, rest)                                                                                  \
    "{\"model_type\":\"" model_type "\",\"num_hidden_layers\":1,\"hidden_size\":8,\"intermediate_size\":16,"           \
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"max_position_embeddings\":64,\"rms_norm_eps\":1e-5,"        \
    "\"vocab_size\":10" rest "}"

struct tiny_weights {
    layer_set_t optional;
    bool headless;     /* no lm_head.weight */
    bool block;        /* also tensors of a DSpark drafter that reads two layers of a model of this width */
    const char *extra; /* one more tensor, of two values; or NULL */
    const char *drop;  /* one tensor that is left out; or NULL */
    const char *dtype; /* "F32" (NULL), "F16", "BF16" */
    unsigned shift;    /* spaces after the header, which misalign the data */
};

/* Returns memory that the caller frees, or NULL if there is none. */
unsigned char *tiny_weights(const struct tiny_weights *, size_t *len);
