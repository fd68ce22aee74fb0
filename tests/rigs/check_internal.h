/* What the files of the check backend share: copied requests (check_command.c), the record of what a store contains,
 * and the pool of distributions (both check_ledger.c). */
#ifndef TESTS_RIGS_CHECK_INTERNAL_H
#define TESTS_RIGS_CHECK_INTERNAL_H

#include "kernels/cpu/blocks.h"
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

/* What its kind does not have is zero. */
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
    const struct overlap_req *overlaps; /* likewise */
    const struct verify_req *verifies;  /* likewise */
    dist_t dist;

    void *out, *result; /* the caller's memory, NULL where each has its own; ours, of `bytes` */
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

/* A copy of a request that points to the caller's memory, its results zeroed; NULL: no memory. The caller frees it. */
struct command *command_copy(const struct command *);
void command_free(struct command *);
/* The results to where the caller wants them. */
void command_deliver(const struct command *);

/* ---- pools ---- */

/* A pool of distributions that records which were computed, and which store has queued a request for one. So it refuses
 * two stores that use one distribution with no wait() in between. It is the struct dists of the backend. */
struct pool {
    struct dists *inner; /* the CPU's */
    struct pool_size size;
    bool *made;                     /* (n) */
    const struct kv_cache **queued; /* (n) who named it since its last wait(), or NULL */
};

/* backend_ops.dists and drop_dists */
bool pool_open(struct backend *, uint32_t vocab, uint32_t n, struct dists **, struct err *);
void pool_close(struct dists *);

static inline struct pool *
pool_of(struct dists *d)
{
    return (struct pool *)(void *)d;
}

/* A store is about to queue a request that names the distribution; false: another one has. DIST_NONE goes well. */
bool pool_claim(struct pool *, dist_t, const struct kv_cache *, struct err *);
/* What the store queued is done. The pool may be NULL. */
void pool_results_arrived(struct pool *, const struct kv_cache *);

/* ---- ledgers ---- */

/* Records what a store contains: which slots have keys and values at which layers, which ring entries have hidden
 * states up to which depth, and, in its pool, which distributions were computed. A request that uses something that was
 * never computed fails with a message, instead of reading old memory. */
struct ledger;

/* NULL: no memory. What the limits point to must outlive it, and so must the pool, which may be NULL. */
struct ledger *ledger_open(struct request_limits, struct pool *);
void ledger_close(struct ledger *);

/* Each is true when the request may be carried out, else err says what it lacks. */
bool ledger_forward(struct ledger *, const struct forward_pass *, struct err *);
bool ledger_predict(const struct ledger *, const struct probe *, size_t n, struct err *);
bool ledger_dist(const struct ledger *, const struct dist_req *, size_t n, struct err *);
bool ledger_draw(const struct ledger *, const struct draw_req *, size_t n, struct err *);
bool ledger_overlap(const struct ledger *, const struct overlap_req *, size_t n, struct err *);
bool ledger_verify(const struct ledger *, const struct verify_req *, size_t n, struct err *);
bool ledger_read(const struct ledger *, uint32_t ring, uint32_t layer, struct err *);
bool ledger_read_dist(const struct ledger *, dist_t, struct err *);

/* What was done. */
void ledger_trunk(struct ledger *, seq_t, uint32_t first, const slot_t *, size_t n);
void ledger_embedded(struct ledger *, const struct row *, size_t n);
void ledger_ran(struct ledger *, const struct forward_pass *, uint32_t to);
void ledger_dists(struct ledger *, const struct dist_req *, size_t n);

#endif
