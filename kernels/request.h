/* Is a request well-formed? What every backend asks before it queues one: numbers in range, lists that fit. It is no
 * more than that: whether the named places hold what the request needs is known only where they are (kernels/check). */
#ifndef KERNELS_REQUEST_H
#define KERNELS_REQUEST_H

#include "kernels/backend.h"

struct limits {
    const struct model_desc *model;
    const struct store_desc *store;
};

bool request_trunk(struct limits, seq_t, uint32_t first, const slot_t *, size_t n);
bool request_embed(struct limits, const struct row *, size_t n);
bool request_sweep(struct limits, const struct sweep *);
bool request_until(struct limits, const struct sweep *, const struct exit_rule *);
bool request_guess(struct limits, const struct probe *, size_t n);
bool request_dist(struct limits, const struct dist_req *, size_t n);
bool request_draw(struct limits, const struct draw_req *, size_t n);
bool request_verify(struct limits, const struct verify_req *);
bool request_read(struct limits, uint32_t ring, uint32_t layer);

#endif
