/* The parts of a naive model: naive_weights.c fills them in, and naive_model.c computes with them. */
#pragma once

#include "kernels/experts.h"
#include "tests/rigs/naive_model.h"

struct naive_matrix { /* (rows, cols) as stored, in double */
    double *at;
    uint32_t rows, cols;
};

struct naive_expert { /* kernels/experts.h; at NULL: absent */
    struct naive_matrix all[EXPERT_TENSORS];
};

struct naive_layer {              /* kernels/layer_tensors.h, the same */
    struct naive_expert *experts; /* or NULL */
    union {
        struct naive_matrix all[LAYER_TENSORS];
        struct {
#define FIELD(NAME, field, ...) struct naive_matrix field;
            FOR_LAYER_TENSORS(FIELD, FIELD, FIELD)
#undef FIELD
        };
    };
};

struct naive_model {
    struct model_desc desc;
    struct layer_desc *layers;   /* (n_layers) as a backend sees them */
    struct naive_layer *doubles; /* (n_layers) */
    struct naive_matrix input_embedding, input_norm;
    struct naive_matrix embedding, positions, embedding_norm, embedding_norm_bias, final_norm, final_norm_bias, head,
        head_bias;
    void *memory[2 * (6 + 16 * LAYER_TENSORS) + 1024];
    size_t n_memory;
    uint64_t seed;
    uint32_t n_tensors;
    bool failed;
    bool halves;    /* naive_model_in_halves() */
    double *routes; /* naive_model_routes(), or NULL */
};

/* Rounds the numbers that the model stores in F16, if it stores any so. */
void naive_hold(const struct naive_model *, double *x, size_t n);

/* out = W x */
void naive_multiply(const struct naive_model *, const struct naive_matrix *, double *x, double *out);
/* Returns act(gate) * up; for an MLP without a gate it returns act(up) and ignores `gate`. */
double naive_activated(enum activation, const struct xielu *, bool gated, double gate, double up);
/* Computes back (width), the output of a layer's experts for x; the router reads `routed` (naive_experts.c). Returns
 * false if there is no memory. */
bool naive_experts(const struct naive_model *, const struct naive_layer *, const struct xielu *, const double *routed,
                   double *x, double *back);

/* Computes a recurrent layer for row t of a path whose rows before t were computed. `memory` has
 * naive_recurrent_numbers() numbers for a path of n rows, which are zero before row 0 (naive_recurrent.c). */
size_t naive_recurrent_numbers(const struct model_desc *, size_t n);
void naive_recurrent(const struct naive_model *, const struct naive_layer *, double *x, size_t t, double *memory,
                     double *back);
