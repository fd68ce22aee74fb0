/* Requests about what rows say: guesses, distributions, draws, overlaps, verification, and what tests read. As in
 * kernels/backend.h: queued; false when malformed. */
#ifndef KERNELS_CUDA_DECISIONS_H
#define KERNELS_CUDA_DECISIONS_H

#include "kernels/cuda/store.h"

bool decide_guess(struct store *, const struct probe *, size_t n, struct guess *out);
bool decide_dist(struct store *, const struct dist_req *, size_t n);
bool decide_draw(struct store *, const struct draw_req *, size_t n);
bool decide_overlap(struct store *, const struct overlap_req *, size_t n);
bool decide_verify(struct store *, const struct verify_req *, size_t n);
bool decide_read_logits(struct store *, uint32_t ring, uint32_t layer, float *out);
bool decide_read_hidden(struct store *, uint32_t ring, uint32_t layer, float *out);
bool decide_read_dist(struct store *, dist_t, float *out);

#endif
