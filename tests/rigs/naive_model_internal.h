/* What a naive model is made of: naive_weights.c fills it in, naive_model.c computes with it. */
#ifndef TESTS_RIGS_NAIVE_MODEL_INTERNAL_H
#define TESTS_RIGS_NAIVE_MODEL_INTERNAL_H

#include "tests/rigs/naive_model.h"

struct naive_matrix { /* (rows, cols) as stored, in double */
    double *at;
    uint32_t rows, cols;
};

struct naive_layer { /* kernels/layer_tensors.h; at NULL: absent */
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
    struct naive_matrix embedding, positions, final_norm, final_norm_bias, head, head_bias;
    void *memory[2 * (6 + 16 * LAYER_TENSORS)];
    size_t n_memory;
    uint64_t seed;
    uint32_t n_tensors;
    bool failed;
    bool halves; /* naive_model_in_halves() */
};

/* Rounds what is held in F16, where something is. */
void naive_hold(const struct naive_model *, double *x, size_t n);

#endif
