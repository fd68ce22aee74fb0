/* What rows of logits say: struct guess for each, from statistics of pieces (struct head_piece). */
#ifndef KERNELS_CUDA_DEVICE_GUESS_H
#define KERNELS_CUDA_DEVICE_GUESS_H

#include <cuda_runtime_api.h>

#include "kernels/cuda/device/layout.h"

struct guess_args {
    const float *logits; /* (n, vocab) */
    uint32_t vocab, n;
    struct head_piece *pieces; /* (n, head_pieces_of(vocab)) */

    /* Rows of a head call: what is asked and where the answers go; or, `rows` being NULL, */
    const struct head_row *rows; /* (n) */
    struct guess *guesses;       /* (n) */

    /* the layers that a sweep probed, at most n of them, in order. */
    const struct until_state *until;
    const float *temperature; /* by layer */
    struct guess *by_layer;   /* by layer, or NULL */
    struct guess *last;
};

#ifdef __cplusplus
extern "C"
#endif
    cudaError_t launch_guesses(struct guess_args, cudaStream_t);

#endif
