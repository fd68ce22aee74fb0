/* The requests of the backend (kernels/backend.h). Each is queued and returns false if it is malformed; if the store
 * fails, wait() gives the reason. */
#pragma once

#include "kernels/cuda/device.h"
#include "kernels/cuda/kv_cache.h"

/* ---- rows: trunk tables, embeddings, forward passes (rows.c) ---- */

bool rows_trunk(struct kv_cache *, seq_t, uint32_t first, const slot_t *slots, size_t n);
bool rows_embed(struct kv_cache *, const struct row *, size_t n);
bool rows_feed(struct kv_cache *, const struct row *, size_t n, const float *features, const uint32_t *before);
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

/* ---- sets of tokens (draft_rows.c) ---- */

bool cuda_draft_open(struct kv_cache *, struct err *);
void cuda_draft_close(struct kv_cache *);
/* backend_ops.draft_set */
bool cuda_draft_set(struct kv_cache *, uint32_t set, uint32_t base, const token_t *recent, size_t n);
struct dev_set cuda_draft_outputs(const struct kv_cache *, uint32_t set);
/* Returns the product of a forward pass's probes for a set, on the device; NULL: set 0. */
const struct dev_product *cuda_draft_probe(struct kv_cache *, const struct dev_set *);
/* Sets the parts of a head call if some of the n rows that are being prepared have sets. */
void cuda_draft_parts(struct kv_cache *, struct head_args *);

/* ---- products of the host's matrices, for training (products.c) ---- */

/* backend_ops.products */
extern const struct product_ops cuda_products;
