/* What the host and the kernels agree on about chunks of prompts, whose products a library computes (prompts.h). */
#ifndef KERNELS_CUDA_DEVICE_PROMPT_ARGS_H
#define KERNELS_CUDA_DEVICE_PROMPT_ARGS_H

#include "kernels/cuda/device/layout.h"

/* A step of a layer of a chunk, one launch; what the sweep's steps of these names do. */
enum prompt_step {
    PROMPT_NORM_ATTENTION,
    PROMPT_QKV,
    PROMPT_NORM_HEADS,
    PROMPT_ATTEND,
    PROMPT_OUT,
    PROMPT_POST_ATTENTION,
    PROMPT_NORM_MLP,
    PROMPT_GATE_UP,
    PROMPT_DOWN,
    PROMPT_POST_MLP
};

struct prompt_args {
    struct sweep_args sweep;
    uint32_t layer;
    enum prompt_step step;
    const uint32_t *stop; /* the chunk was cancelled: nothing is done */
    /* Of a product: the sums of strips [first, first + strips) of a matrix, number `part` of wq, wk, wv. */
    uint32_t part, first, strips;
    const float *y; /* (chunk, strips * STRIP) */
};

struct unpack_args { /* strips [first, first + strips) of a matrix to plain rows of units * UNIT halves */
    struct dev_matrix m;
    uint32_t first, strips;
    uint16_t *to; /* F16, or BF16 where the matrix is */
};

struct gather_args { /* packed activations of n rows to `rows` plain ones, those behind the n-th zero */
    const void *packed;
    uint32_t units, n, rows;
    uint16_t *to;  /* (rows, units * UNIT) F16 */
    uint16_t *low; /* not NULL: the same in BF16, of which `low` is what `to` leaves */
};

#endif
