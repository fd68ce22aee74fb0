/* The head: final norm, LM head, softmax statistics. Works on store.head, a table of (ring entry, layer) rows. */
#ifndef KERNELS_CPU_HEAD_H
#define KERNELS_CPU_HEAD_H

#include "kernels/cpu/forward.h"

/* Of the table, which is filled. */
void head_logits(struct store *); /* rows ready..n-1 */
void head_pieces(struct store *); /* summaries */

/* Both at once, for all rows of the table (up to HEAD_ROWS), whose logits nobody will ask for: a worker takes its pieces one
 * after the other, all rows while the piece's weights are in its cache. So weights are read once, and logits come no
 * further than that cache. */
void head_stream(struct store *);

/* All pieces of all rows, each of whose logits costs so much. */
static inline struct work
work_of_pieces(const struct store *s, size_t cost)
{
    return (struct work){s->head.n * s->head.n_pieces, 1, cost * PIECE};
}

/* A row's guess from its pieces, and its softmax: max, sum exp(z - max). */
void head_combine(const struct store *, size_t row, struct guess *, double *max, double *sum);

/* The table in store.head: logits, and with `guesses` the guesses too. */
void head_run(struct store *, bool guesses);

/* guess(): any number of probes, the table filled again and again. Marks the store when it was cancelled. */
void head_guess(struct store *, const struct probe *, size_t n, struct guess *out);

/* Marks the store failed: the logits of a layer are not numbers. */
void head_broken(struct store *, uint32_t layer);

#endif
