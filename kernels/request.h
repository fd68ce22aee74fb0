/* Checks and defaults that all backends share. The checks cover whether a request is well-formed: numbers are in range
 * and lists are consistent. They do not cover whether the entries that it names contain valid data; only the backend
 * can check that. */
#pragma once

#include "kernels/backend.h"

/* Default parameters of a KV cache: for a trunk of ctx positions, with KV_CACHE_SPARE additional slots. */
#define KV_CACHE_SPARE (2 * VERIFY_NODES)
#define KV_CACHE_DISTS 64 /* distributions in the pool of a context that shares it with no */
                          /* other */
struct kv_cache_desc kv_cache_defaults(uint32_t ctx); /* without a pool */
/* The same for n trunks of ctx positions, with the slots and ring entries that a round of each may need. */
struct kv_cache_desc kv_cache_for_sequences(uint32_t ctx, uint32_t n);

struct pool_size { /* n distributions over vocab tokens; no pool: 0, 0 */
    uint32_t vocab, n;
};

struct request_limits { /* the pointers are borrowed and must outlive the KV cache */
    const struct model_desc *model;
    const struct kv_cache_desc *kv_cache;
    struct pool_size dists;
};

/* Returns the largest depth of a row of the KV cache. */
uint32_t request_depth(const struct model_desc *, const struct kv_cache_desc *);

/* Check the parameters of a pool and of a KV cache. Return false with an error if they are out of range. */
bool request_pool(struct pool_size, struct err *);
bool request_kv_cache(struct request_limits, struct err *);

bool request_trunk(struct request_limits, seq_t, uint32_t first, const slot_t *, size_t n);
bool request_advance(struct request_limits, uint32_t to, uint32_t from, const slot_t *, size_t n);
bool request_embed(struct request_limits, const struct row *, size_t n);
bool request_feed(struct request_limits, const struct row *, size_t n, const float *features, const uint32_t *before);
bool request_draft_set(struct request_limits, uint32_t set, uint32_t base, const token_t *recent, size_t n);
bool request_forward(struct request_limits, const struct forward_pass *);
bool request_until(struct request_limits, const struct forward_pass *, const struct exit_rule *);
bool request_predict(struct request_limits, const struct probe *, size_t n);
bool request_dist(struct request_limits, const struct dist_req *, size_t n);
bool request_draw(struct request_limits, const struct draw_req *, size_t n);
bool request_overlap(struct request_limits, const struct overlap_req *, size_t n);
bool request_verify(struct request_limits, const struct verify_req *, size_t n);
bool request_read(struct request_limits, uint32_t ring, uint32_t layer);
bool request_read_dist(struct request_limits, dist_t);

/* Returns the first layer that any row of a forward pass runs through; more than w->to: none. */
uint32_t request_first_layer(const struct forward_pass *w);

/* Sets the error of a request that computed values that are not numbers (NaN). Returns false. */
bool request_not_numbers(uint32_t layer, struct err *);
/* Returns whether an error is the one that request_not_numbers() sets. */
bool request_is_not_numbers(const struct err *);
