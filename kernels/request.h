/* What all backends ask and say alike. Above all: is a request well-formed, that is, are its numbers in range and do its
 * lists fit? No more than that: whether the places that it names hold what it needs is known only where they are. */
#ifndef KERNELS_REQUEST_H
#define KERNELS_REQUEST_H

#include "kernels/backend.h"

/* What a store is opened with where nobody wants it otherwise: for a trunk of ctx positions, and so many slots beyond. */
#define STORE_SPARE (2 * VERIFY_NODES)
#define PROMPT_ROWS 256                         /* of a prompt's chunk, where prompts are asked to go by chunks */
#define STORE_DISTS 64                          /* in the pool of a context that has one to itself */
struct store_desc store_defaults(uint32_t ctx); /* without a pool */
/* The same for n trunks of ctx positions, with the slots and places in the ring that a round of each may need. */
struct store_desc store_for_sequences(uint32_t ctx, uint32_t n);

struct pool_size { /* n distributions over vocab tokens; no pool: 0, 0 */
    uint32_t vocab, n;
};

struct request_limits { /* the pointers are the store's, or live as long */
    const struct model_desc *model;
    const struct store_desc *store;
    struct pool_size dists;
};

/* How deep a store's rows may go. */
uint32_t request_depth(const struct model_desc *, const struct store_desc *);

/* Can a pool, or a store with these limits, be like that? */
bool request_pool(struct pool_size, struct err *);
bool request_store(struct request_limits, struct err *);

bool request_trunk(struct request_limits, seq_t, uint32_t first, const slot_t *, size_t n);
bool request_embed(struct request_limits, const struct row *, size_t n);
bool request_sweep(struct request_limits, const struct sweep *);
bool request_until(struct request_limits, const struct sweep *, const struct exit_rule *);
bool request_guess(struct request_limits, const struct probe *, size_t n);
bool request_dist(struct request_limits, const struct dist_req *, size_t n);
bool request_draw(struct request_limits, const struct draw_req *, size_t n);
bool request_overlap(struct request_limits, const struct overlap_req *, size_t n);
bool request_verify(struct request_limits, const struct verify_req *, size_t n);
bool request_read(struct request_limits, uint32_t ring, uint32_t layer);
bool request_read_dist(struct request_limits, dist_t);

/* The first layer that any row of a sweep has to go through; above w->to: none. */
uint32_t request_first_layer(const struct sweep *w);

/* The failure of a request whose numbers are none: returns false. */
bool request_not_numbers(uint32_t layer, struct err *);

#endif
