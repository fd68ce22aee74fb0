/* A transformer without caches, in double precision, which computes every row from its whole path. It is slow but
 * simple: the reference for the context and the backends. Its weights are random and in memory. */
#pragma once

#include "kernels/backend.h"

struct naive_shape {
    uint32_t n_layers, width, heads, kv_heads, head_dim, ffn, vocab;
    enum rope_layout rope;
    enum weight_type type;   /* of the matrices; norms are F32. Types with blocks need widths of whole blocks */
    enum weight_type second; /* of values, down and head, where not F32: files mix types */
    layer_set_t optional;    /* tensors of a layer */
    layer_set_t lacks;       /* usual tensors that the model does not have */
    uint32_t window;         /* positions that a row attends to; 0: all */
    uint32_t rope_dims;      /* dimensions of a head that RoPE rotates; 0: all */
    struct model_form form;
    uint32_t attention_every; /* every nth layer is attention, the others recurrent (form.recurrent); 0: all are */
    uint32_t every;           /* layers 1 + every, 1 + 2 every, … have layer_form; 0: none */
    struct layer_form layer_form;
    uint32_t shared;    /* the last layers, which read keys and values of the last one before with the same rotation */
    struct xielu xielu; /* of all layers */
    bool end_biases;    /* of the final norm and the head */
    bool early_norm;    /* of the embedding */
    uint32_t positions; /* learned position embeddings; 0: none */
    uint32_t dense;     /* with form.experts: number of first layers without experts */
    bool expert_biases;
};

/* A token of a path, and the sublayers that were skipped for it: (L + 1) switches, or NULL. */
struct naive_token {
    token_t token;
    const bool *skip_attention, *skip_mlp;
};

struct naive_model;

struct naive_model *naive_model_random(const struct naive_shape *, uint64_t seed); /* NULL: no memory */
void naive_model_free(struct naive_model *);
const struct model_desc *naive_model_desc(const struct naive_model *); /* for a backend's load() */

/* From now on the model computes like a device that stores operands of products, keys, values, and matrices of types
 * that the device does not have in F16: it rounds these to the nearest half, ties to even, and nothing else. A device's
 * difference from this model is small; its difference from the model in double comes mostly from the model itself. */
void naive_model_in_halves(struct naive_model *);

/* From now on naive_hidden() also writes the routing of the path's last token: the weight of every expert
 * (depth + 1, experts), 0 for experts that are not chosen. Entries that it does not compute keep their values.
 * NULL: no routing is written. */
void naive_model_routes(struct naive_model *, double *);

/* Hidden states of the path's last token at depths 0..depth: out (depth + 1, width). False: no memory. */
bool naive_hidden(const struct naive_model *, const struct naive_token *path, size_t n, uint32_t depth, double *out);
/* Applies the final norm and the head to a hidden state (width): out (vocab). */
void naive_logits(const struct naive_model *, const double *hidden, double *out);
/* The parts of naive_logits() before and after the head's product: the norm, out (width); bias, scale and cap of
 * (vocab) logits. */
void naive_final_norm(const struct naive_model *, const double *hidden, double *out);
void naive_shape_logits(const struct naive_model *, double *logits);
