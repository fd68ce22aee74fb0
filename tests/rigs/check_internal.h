/* Declarations that the files of the check backend share: copied requests (check_command.c), the record of what a KV
 * cache contains, and the pool of distributions (both check_ledger.c). */
#pragma once

#include <stdlib.h>

#include "base/blocks.h"
#include "kernels/request.h"
#include "tests/rigs/check_backend.h"

/* ---- requests ---- */

/* A request with memory of its own: command_copy() copies everything that the request points to, and the results stay
 * in this memory until command_deliver() copies them to the caller. */
enum command_kind {
    TRUNK,
    ADVANCE, /* the state `first` becomes that of `seq` after the slots */
    EMBED,
    STEP,
    UNTIL,
    PREDICT,
    DIST,
    DRAW,
    OVERLAP,
    VERIFY,
    READ_LOGITS,
    READ_HIDDEN,
    READ_DIST
};

/* Members that a kind of request does not use are zero. */
struct command {
    enum command_kind kind;
    size_t n; /* slots, rows, probes, dists, draws, overlaps, verifies */
    seq_t seq;
    uint32_t first, ring, layer;
    const slot_t *slots;
    const struct row *rows;
    struct forward_pass forward;
    struct exit_rule rule;
    const struct probe *probes;
    const struct dist_req *dists;
    const struct draw_req *draws;       /* `out` of each: in `result` */
    const struct overlap_req *overlaps; /* the same */
    const struct verify_req *verifies;  /* the same */
    dist_t dist;

    void *out, *result; /* the caller's memory, NULL if each request has its own; the copy's memory, of `bytes` */
    size_t bytes;
    void **outs;               /* DRAW, OVERLAP, VERIFY: (n) the caller's `out` of each */
    struct prediction *probed; /* UNTIL: (depths) the caller's, or NULL */
    uint32_t *touched;         /* STEP, UNTIL: the same */
    struct route *routes;      /* the same; used: entries of a row and layer */
    uint32_t used;
    size_t depths; /* L + 1 */

    struct blocks blocks; /* the copies */
    struct command *next; /* in a queue */
};

/* Copies a request that points to the caller's memory, with zeroed results. Returns NULL if there is no memory. The
 * caller frees the copy. */
struct command *command_copy(const struct command *);
void command_free(struct command *);
/* Copies the results to the caller's memory. */
void command_deliver(const struct command *);

/* ---- pools ---- */

/* A pool of distributions that records which were computed, and which KV cache has queued a request for each. So it
 * refuses two KV caches that use one distribution with no wait() in between. It is the struct dists of the backend. */
struct pool {
    struct dists *inner; /* the CPU's */
    struct pool_size size;
    bool *made;                     /* (n) */
    const struct kv_cache **queued; /* (n) the KV cache that named it since its last wait(), or NULL */
};

/* Implement backend_ops.dists and backend_ops.drop_dists. */
bool pool_open(struct backend *, uint32_t vocab, uint32_t n, struct dists **, struct err *);
void pool_close(struct dists *);

static inline struct pool *
pool_of(struct dists *d)
{
    return (struct pool *)(void *)d;
}

/* Claims a distribution for a KV cache that is about to queue a request for it. Returns false if another one has
 * claimed it. Always succeeds for DIST_NONE. */
bool pool_claim(struct pool *, dist_t, const struct kv_cache *, struct err *);
/* Releases the claims of a KV cache whose queued requests are done. The pool may be NULL. */
void pool_results_arrived(struct pool *, const struct kv_cache *);

/* ---- ledgers ---- */

/* Records what a KV cache contains: which slots have keys and values at which layers, which ring entries have hidden
 * states up to which depth, and, in its pool, which distributions were computed. A request that uses something that was
 * never computed fails with a message, instead of reading old memory. */
struct ledger;

/* Returns NULL if there is no memory. The memory that the limits point to must outlive the ledger, and so must the
 * pool, which may be NULL. */
struct ledger *ledger_open(struct request_limits, struct pool *);
void ledger_close(struct ledger *);

/* Each returns true if the request may be executed; otherwise it writes to err what is missing. */
bool ledger_forward(struct ledger *, const struct forward_pass *, struct err *);
bool ledger_predict(const struct ledger *, const struct probe *, size_t n, struct err *);
bool ledger_dist(const struct ledger *, const struct dist_req *, size_t n, struct err *);
bool ledger_draw(const struct ledger *, const struct draw_req *, size_t n, struct err *);
bool ledger_overlap(const struct ledger *, const struct overlap_req *, size_t n, struct err *);
bool ledger_verify(const struct ledger *, const struct verify_req *, size_t n, struct err *);
bool ledger_read(const struct ledger *, uint32_t ring, uint32_t layer, struct err *);
bool ledger_read_dist(const struct ledger *, dist_t, struct err *);

/* Record requests that were executed. */
void ledger_trunk(struct ledger *, seq_t, uint32_t first, const slot_t *, size_t n);
void ledger_embedded(struct ledger *, const struct row *, size_t n);
void ledger_fed(struct ledger *, const struct row *, size_t n); /* to a block drafter */
void ledger_ran(struct ledger *, const struct forward_pass *, uint32_t to);
void ledger_predicted(struct ledger *, const struct probe *, size_t n);
void ledger_dists(struct ledger *, const struct dist_req *, size_t n);
