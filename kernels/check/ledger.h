/* What a store really holds: which slots have keys and values at which layers, which ring entries have hidden states up
 * to which depth, and, in its pool, which distributions were written. Requests are compared with it, so that code which
 * relies on what was never computed fails with a sentence instead of reading whatever lay there. */
#ifndef KERNELS_CHECK_LEDGER_H
#define KERNELS_CHECK_LEDGER_H

#include "kernels/check/pool.h"

struct ledger;

/* NULL: no memory. What the limits point to must outlive it, and so must the pool, which may be NULL. */
struct ledger *ledger_open(struct request_limits, struct pool *);
void ledger_close(struct ledger *);

/* Each is true when the request may be carried out, else err says what it lacks. */
bool ledger_sweep(struct ledger *, const struct sweep *, struct err *);
bool ledger_guess(const struct ledger *, const struct probe *, size_t n, struct err *);
bool ledger_dist(const struct ledger *, const struct dist_req *, size_t n, struct err *);
bool ledger_draw(const struct ledger *, const struct draw_req *, size_t n, struct err *);
bool ledger_overlap(const struct ledger *, const struct overlap_req *, size_t n, struct err *);
bool ledger_verify(const struct ledger *, const struct verify_req *, size_t n, struct err *);
bool ledger_read(const struct ledger *, uint32_t ring, uint32_t layer, struct err *);
bool ledger_read_dist(const struct ledger *, dist_t, struct err *);

/* What was done. */
void ledger_trunk(struct ledger *, seq_t, uint32_t first, const slot_t *, size_t n);
void ledger_embedded(struct ledger *, const struct row *, size_t n);
void ledger_swept(struct ledger *, const struct sweep *, uint32_t to);
void ledger_dists(struct ledger *, const struct dist_req *, size_t n);

#endif
