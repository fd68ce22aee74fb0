/* The requests of the backend (kernels/backend.h). Each is queued and returns false if it is malformed; if the store fails, wait() gives
 * the reason. */
#ifndef KERNELS_CUDA_REQUESTS_H
#define KERNELS_CUDA_REQUESTS_H

#include "kernels/cuda/device.h"
#include "kernels/cuda/store.h"

/* ---- rows: trunk tables, embeddings, forward passes (rows.c) ---- */

bool rows_trunk(struct store *, seq_t, uint32_t first, const slot_t *slots, size_t n);
bool rows_embed(struct store *, const struct row *, size_t n);
bool rows_step(struct store *, const struct sweep *);
bool rows_until(struct store *, const struct sweep *, const struct exit_rule *, struct exit_result *out);

/* ---- logits: predictions, distributions, draws, overlaps, verification, and what tests read (decisions.c) ---- */

bool decide_guess(struct store *, const struct probe *, size_t n, struct guess *out);
bool decide_dist(struct store *, const struct dist_req *, size_t n);
bool decide_draw(struct store *, const struct draw_req *, size_t n);
bool decide_overlap(struct store *, const struct overlap_req *, size_t n);
bool decide_verify(struct store *, const struct verify_req *, size_t n);
bool decide_read_logits(struct store *, uint32_t ring, uint32_t layer, float *out);
bool decide_read_hidden(struct store *, uint32_t ring, uint32_t layer, float *out);
bool decide_read_dist(struct store *, dist_t, float *out);

/* ---- prefill by a library (prefill.c) ----
 *
 * The plug-in of gemm.h computes a chunk's products, slab by slab. The steps of the forward pass do everything else. */

#define PREFILL_SLAB ((size_t)64 << 20) /* approximate bytes of plain weights at a time */

/* Allocates memory and chooses the algorithm of every shape of the model, for a KV cache with prompt_rows, which owns
 * the memory. */
bool prefill_open(struct store *, struct err *);
void prefill_close(struct store *);
/* Returns the approximate bytes of device memory that it needs. */
size_t prefill_estimate(const struct model_desc *, uint32_t rows);

/* backend_ops.prompts */
const char *prefill_describe(const struct store *);

/* Queues the chunk. Returns false if the KV cache failed. */
bool prefill_run(struct store *, const struct forward_args *);

/* ---- products of the host's matrices, for training (products.c) ---- */

/* backend_ops.products */
extern const struct product_ops cuda_products;

#endif
