/* A request with memory of its own: everything that it points to is copied, and its results lie here until they are
 * handed out. */
#ifndef KERNELS_CHECK_COMMAND_H
#define KERNELS_CHECK_COMMAND_H

#include "kernels/backend.h"
#include "kernels/cpu/blocks.h"

enum command_kind {
    TRUNK,
    EMBED,
    STEP,
    UNTIL,
    GUESS,
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
    struct sweep sweep;
    struct exit_rule rule;
    const struct probe *probes;
    const struct dist_req *dists;
    const struct draw_req *draws;       /* `out` of each: in `result` */
    const struct overlap_req *overlaps; /* likewise */
    const struct verify_req *verifies;  /* likewise */
    dist_t dist;

    void *out, *result; /* the caller's memory, NULL where each has its own; ours, of `bytes` */
    size_t bytes;
    void **outs;          /* DRAW, OVERLAP, VERIFY: (n) the caller's `out` of each */
    struct guess *probed; /* UNTIL: (depths) the caller's, or NULL */
    uint32_t *touched;    /* STEP, UNTIL: the same */
    struct route *routes; /* the same; used: entries of a row and layer */
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

#endif
