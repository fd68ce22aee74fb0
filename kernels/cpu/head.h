/* The head: final norm, LM head, softmax statistics. Works on kv_cache.head, a table of (ring entry, layer) rows. */
#pragma once

#include "kernels/cpu/forward.h"

/* Computations on the filled table. */
void head_logits(struct kv_cache *); /* rows ready..n-1 */
void head_pieces(struct kv_cache *); /* computes the summaries of pieces */

/* Computes logits and summaries together for all rows of the table (up to HEAD_ROWS) if the logits are not needed
 * later. A worker takes one piece after the other and computes all rows while the piece's weights are in its cache.
 * Weights are read once, and logits stay in that cache. */
void head_stream(struct kv_cache *);

/* Returns whether each thread has a whole piece in a call with all tokens, so that head_stream() is as fast. */
static inline bool
head_streams(const struct kv_cache *s)
{
    return s->head.n_pieces >= s->weights->backend->threads;
}

/* Returns the work of all pieces of all rows; `cost` is per logit. */
static inline struct work
work_of_pieces(const struct kv_cache *s, size_t cost)
{
    return (struct work){s->head.n * s->head.used, 1, cost * PIECE};
}

/* Combines a row's pieces to its prediction and the terms of its softmax: max, sum exp(z - max). */
void head_combine(const struct kv_cache *, size_t row, struct prediction *, double *max, double *sum);

/* Computes the logits of the table, and with `predictions` the predictions. */
void head_run(struct kv_cache *, bool predictions);

/* Returns the kept logits of a ring entry; NULL: there are none. */
const float *head_kept(const struct kv_cache *, uint32_t ring);

/* Carries out predict() for any number of probes, filling the table several times if needed. Marks the KV cache if it
 * was cancelled. */
void head_predict(struct kv_cache *, const struct probe *, size_t n, struct prediction *out);

/* Returns a prediction of the table with token ids in place of the outputs of a set or of a drafter
 * (drafter_desc.tokens). */
struct prediction head_named(const struct kv_cache *, uint32_t set, const struct prediction *);

/* Marks the KV cache as failed: the logits of a layer are not numbers (NaN). */
void head_broken(struct kv_cache *, uint32_t layer);
