/* Distributions over the vocabulary, draws from them, and lossless verification: pure functions on F32 arrays that the
 * caller owns. A distribution is (vocab) probabilities that sum to 1 but for rounding; every use divides by the real
 * sum.
 *
 * Any logits are accepted: NaN counts as -infinity, and token 0 is the argmax if no logit is finite.
 */
#pragma once

#include "kernels/backend.h"

/* Returns the token of the largest of n >= 1 logits, the lowest id among equals. */
token_t sampling_argmax(const float *logits, uint32_t n);

/* Converts logits (n) to probabilities p (n), which must be another array. Applies in this order: the temperature; the
 * top_k largest logits (lowest ids first among equals); the smallest number of their renormalised probabilities that
 * reach top_p. With a temperature <= 0 the argmax has probability 1. `order` is scratch of n entries; it may be NULL
 * if both top_k and top_p are off (see sampling_filters). */
void sampling_dist(const float *logits, uint32_t n, const struct sampling *, float *p, uint32_t *order);

/* Returns whether this setting needs `order` for a vocabulary of n tokens. */
bool sampling_filters(const struct sampling *, uint32_t n);

/* Returns the most probable token of p (n) that is not in `without`, lowest id among equals; TOKEN_NONE if no
 * probability is left. */
token_t sampling_likeliest(const float *p, uint32_t n, const token_t *without, size_t n_without);
/* Draws a token from p (n), except those listed in `without`. The same key gives the same token. Returns TOKEN_NONE
 * if no probability is left. */
token_t sampling_draw(const float *p, uint32_t n, const struct rng_key *, const token_t *without, size_t n_without);

/* Returns the struct overlap of the distributions d and c (n) at token x < n; the sum runs from token 0 up, in
 * double. */
struct overlap sampling_overlap(const float *d, const float *c, uint32_t n, token_t x);

/* Walks the tree as struct verify_node in kernels/backend.h describes. For node i:
 *   logits[i]  the target's logits (vocab) at its row; NULL where ring is RING_NONE
 *   q[i]       the distribution (q_vocab) it was drawn from; NULL where q is DIST_NONE
 * q_vocab is at least vocab; if all q are NULL it is not used.
 * p (vocab) and order (vocab) are scratch; with temperature <= 0 neither they nor q are used.
 *
 * Fills n_path, path, next and kind of `out` and leaves `judged` unchanged. An accepted node without a row is the last
 * on the path (NEXT_CANDIDATE). Random numbers: RNG_ACCEPT at the child's pos with its index among its siblings;
 * RNG_RESIDUAL and RNG_BONUS at the pos after the node where the walk ended. A token whose q is 0 there (it cannot
 * have been drawn from q) is treated as chosen deterministically, which is lossless.
 *
 * Returns false and leaves `out` unchanged if the request is malformed: n outside 1..VERIFY_NODES, a parent that is not
 * before its child, a token outside the vocabulary of a candidate with logits, node 0 without logits. A candidate
 * without logits may be any token: outside the vocabulary it is rejected. */
bool sampling_verify(const struct verify_req *, uint32_t vocab, const float *const *logits, const float *const *q,
                     uint32_t q_vocab, float *p, uint32_t *order, struct verdict *out);
