/* The requests of the backend (kernels/backend.h). Each is queued and returns false if it is malformed; if the store fails, wait() gives
 * the reason. */
#ifndef KERNELS_CUDA_REQUESTS_H
#define KERNELS_CUDA_REQUESTS_H

#include "kernels/cuda/device.h"
#include "kernels/cuda/kv_cache.h"

/* ---- rows: trunk tables, embeddings, forward passes (rows.c) ---- */

bool rows_trunk(struct kv_cache *, seq_t, uint32_t first, const slot_t *slots, size_t n);
bool rows_embed(struct kv_cache *, const struct row *, size_t n);
bool rows_step(struct kv_cache *, const struct forward_pass *);
bool rows_until(struct kv_cache *, const struct forward_pass *, const struct exit_rule *, struct exit_result *out);

/* ---- logits: predictions, distributions, draws, overlaps, verification, and what tests read (decisions.c) ---- */

bool decide_predict(struct kv_cache *, const struct probe *, size_t n, struct prediction *out);
bool decide_dist(struct kv_cache *, const struct dist_req *, size_t n);
bool decide_draw(struct kv_cache *, const struct draw_req *, size_t n);
bool decide_overlap(struct kv_cache *, const struct overlap_req *, size_t n);
bool decide_verify(struct kv_cache *, const struct verify_req *, size_t n);
bool decide_read_logits(struct kv_cache *, uint32_t ring, uint32_t layer, float *out);
bool decide_read_hidden(struct kv_cache *, uint32_t ring, uint32_t layer, float *out);
bool decide_read_dist(struct kv_cache *, dist_t, float *out);

/* ---- prefill by a library (prefill.c) ----
 *
 * The plug-in of gemm.h computes a chunk's products, slab by slab. The steps of the forward pass do everything else. */

#define PREFILL_SLAB ((size_t)64 << 20) /* approximate bytes of plain weights at a time */

/* Allocates memory and chooses the algorithm of every shape of the model, for a KV cache with prompt_rows, which owns
 * the memory. */
bool prefill_open(struct kv_cache *, struct err *);
void prefill_close(struct kv_cache *);
/* Returns the approximate bytes of device memory that it needs. */
size_t prefill_estimate(const struct model_desc *, uint32_t rows);

/* backend_ops.prompts */
const char *prefill_describe(const struct kv_cache *);

/* Queues the chunk. Returns false if the KV cache failed. */
bool prefill_run(struct kv_cache *, const struct forward_args *);

/* ---- products of the host's matrices, for training (products.c) ---- */

/* backend_ops.products */
extern const struct product_ops cuda_products;

#endif
