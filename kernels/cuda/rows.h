/* Requests about rows: trunk tables, embeddings, sweeps. As in kernels/backend.h: queued; false when malformed. */
#ifndef KERNELS_CUDA_ROWS_H
#define KERNELS_CUDA_ROWS_H

#include "kernels/cuda/store.h"

bool rows_trunk(struct store *, seq_t, uint32_t first, const slot_t *slots, size_t n);
bool rows_embed(struct store *, const struct row *, size_t n);
bool rows_step(struct store *, const struct sweep *);
bool rows_until(struct store *, const struct sweep *, const struct exit_rule *, struct exit_result *out);

#endif
