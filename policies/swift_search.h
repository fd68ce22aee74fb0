/* SWIFT's search for the sublayers to skip (docs/methods.md: SWIFT): proposals, their matchness, the best set so far.
 *
 * Switches are the attention and MLP sublayers of layers 2..L-1: switch 2i is the attention of layer 2 + i, switch
 * 2i + 1 its MLP; true means skipped. Every set has the same number of skipped switches. */
#ifndef POLICIES_SWIFT_SEARCH_H
#define POLICIES_SWIFT_SEARCH_H

#include "engine/events/policy.h"
#include "policies/gaussian_process.h"

enum search_phase {
    SEARCH_RUNNING,
    SEARCH_FOUND /* target matchness */,
    SEARCH_STALE /* patience */,
    SEARCH_SPENT /* max steps */
};

struct search_limits {
    uint32_t max_steps, patience;
    double target;
};

struct swift_search {
    uint32_t switches, skipped;            /* 2 (L - 2), and how many of them are off */
    bool *best, *proposed;                 /* (switches) both begin as the initial set */
    double best_matchness, last_matchness; /* -1: nothing is scored yet */
    uint32_t steps, best_step;             /* sets scored; the one that gave the best */
    uint64_t random;                       /* the generator's place */
    struct gaussian_process gp;
    double *point;   /* (switches) scratch */
    uint32_t *order; /* (switches) scratch */
};

uint32_t search_skipped(uint32_t layers, double ratio);                                    /* floor(2 (L - 2) ratio) */
bool search_open(struct swift_search *, uint32_t layers, uint32_t skipped, uint64_t seed); /* false: out of memory */
void search_close(struct swift_search *);
/* Whether it still runs, or why it ended: from the counts alone, so that other limits may set it going again. */
enum search_phase search_phase(const struct swift_search *, const struct search_limits *);
/* Fills `proposed` with the next set to score: first the initial one, then random ones, every interval-th the Gaussian
 * process's suggestion; interval 0: none is. */
void search_propose(struct swift_search *, uint32_t interval);
/* Registers the proposed set's matchness. */
void search_score(struct swift_search *, double matchness);

/* Copies the state into one block, which the caller frees; NULL: out of memory. */
void *search_save(const struct swift_search *);
/* Continues where the saved search stopped. A search of another shape (switches, skipped) changes nothing. */
void search_load(struct swift_search *, const void *saved);

#endif
