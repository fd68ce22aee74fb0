/* The head: final norm, LM head, softmax statistics. Works on store.head, a table of (ring entry, layer) rows. */
#ifndef KERNELS_CPU_HEAD_H
#define KERNELS_CPU_HEAD_H

#include "kernels/cpu/forward.h"

/* Computations on the filled table. */
void head_logits(struct store *); /* rows ready..n-1 */
void head_pieces(struct store *); /* computes the summaries of pieces */

/* Computes logits and summaries together for all rows of the table (up to HEAD_ROWS) if the logits are not needed
 * later. A worker takes one piece after the other and computes all rows while the piece's weights are in its cache.
 * Weights are read once, and logits stay in that cache. */
void head_stream(struct store *);

/* Returns the work of all pieces of all rows; `cost` is per logit. */
static inline struct work
work_of_pieces(const struct store *s, size_t cost)
{
    return (struct work){s->head.n * s->head.n_pieces, 1, cost * PIECE};
}

/* Combines a row's pieces to its prediction and the terms of its softmax: max, sum exp(z - max). */
void head_combine(const struct store *, size_t row, struct guess *, double *max, double *sum);

/* Computes the logits of the table, and with `guesses` the predictions. */
void head_run(struct store *, bool guesses);

/* Carries out guess() for any number of probes, filling the table several times if needed. Marks the KV cache if it was
 * cancelled. */
void head_guess(struct store *, const struct probe *, size_t n, struct guess *out);

/* Marks the KV cache as failed: the logits of a layer are not numbers (NaN). */
void head_broken(struct store *, uint32_t layer);

#endif
