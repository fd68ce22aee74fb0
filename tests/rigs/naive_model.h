/* A transformer without caches, in double precision: every row is computed from its whole path, from scratch. Slow and
 * obvious, so it is what the context and the backends are compared with. Comes with random weights in memory. */
#ifndef TESTS_RIGS_NAIVE_MODEL_H
#define TESTS_RIGS_NAIVE_MODEL_H

#include "kernels/backend.h"

struct naive_shape {
    uint32_t n_layers, width, heads, kv_heads, head_dim, ffn, vocab;
    enum rope_layout rope;
    enum weight_type type;   /* of the matrices; norms are F32. Types with blocks need widths of whole blocks */
    enum weight_type second; /* of values, down and head, where not F32: files mix types */
    uint32_t optional;       /* tensors of a layer: 1 << enum layer_tensor */
    uint32_t lacks;          /* usual ones that it has not */
    uint32_t window;         /* positions that a row sees; 0: all */
    uint32_t rope_dims;      /* of a head that turn; 0: all */
    struct model_form form;
    uint32_t every; /* layers 1 + every, 1 + 2 every, … have layer_form; 0: none */
    struct layer_form layer_form;
    struct xielu xielu; /* of all layers */
    bool end_biases;    /* of the final norm and the head */
    bool early_norm;    /* of the embedding */
    uint32_t positions; /* that are learned; 0: none */
    uint32_t dense;     /* with form.experts: so many layers at the beginning have none */
    bool expert_biases;
};

/* A place on a path: a token and the sublayers that were skipped for it: (L + 1) switches, or NULL. */
struct naive_token {
    token_t token;
    const bool *skip_attention, *skip_mlp;
    bool prompt; /* of that class, which symbolic_backend.h alone tells from the other */
};

struct naive_model;

struct naive_model *naive_model_random(const struct naive_shape *, uint64_t seed); /* NULL: no memory */
void naive_model_free(struct naive_model *);
const struct model_desc *naive_model_desc(const struct naive_model *); /* for a backend's load() */

/* From now on it computes as a device that holds in F16 what goes into products, keys and values, and matrices of types that
 * the device does not have: it rounds those to the nearest half, ties to even, and nothing else. What such a device differs
 * by from the model in double is then the model's own doing; from this one, little. */
void naive_model_in_halves(struct naive_model *);

/* From now on naive_hidden() also says where the path's last token goes: the weight of every expert (depth + 1, experts), 0 of those
 * that it does not go to. What it does not come to stays. NULL: not any more. */
void naive_model_tell_routes(struct naive_model *, double *);

/* Hidden states of the path's last token at depths 0..depth: out (depth + 1, width). False: no memory. */
bool naive_hidden(const struct naive_model *, const struct naive_token *path, size_t n, uint32_t depth, double *out);
/* Final norm and head on a hidden state (width): out (vocab). */
void naive_logits(const struct naive_model *, const double *hidden, double *out);
/* Its parts before and behind the head's product: the norm, out (width); bias, scale and cap of (vocab) logits. */
void naive_final_norm(const struct naive_model *, const double *hidden, double *out);
void naive_shape_logits(const struct naive_model *, double *logits);

#endif
