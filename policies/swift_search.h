/* SWIFT's search for the sublayers to skip (METHODS §5): proposals, their matchness, the best set so far.
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
    uint32_t interval, max_steps, patience;
    double target;
}; /* interval 0: never Bayesian */

struct swift_search {
    uint32_t switches, skipped; /* 2 (L - 2), and how many of them are off */
    bool *best, *proposed;      /* (switches) */
    double best_matchness, last_matchness;
    uint32_t steps, best_step; /* sets scored; the one that gave the best */
    enum search_phase phase;
    uint64_t random;
    struct gaussian_process gp;
    double *point; /* (switches) scratch */
};

/* ratio in [0, 0.9]: floor(switches * ratio) are skipped. False: out of memory. */
bool search_open(struct swift_search *, uint32_t layers, double ratio, uint64_t seed);
void search_close(struct swift_search *);
/* Fills `proposed` with the next set to score: first the initial one (both sublayers of every second layer), then
 * random ones, every interval-th the Gaussian process's suggestion. */
void search_propose(struct swift_search *, uint32_t interval);
/* Registers the proposed set's matchness; true when it is the best so far. */
bool search_score(struct swift_search *, double matchness, const struct search_limits *);

/* The state in a text file, for the next run. Missing or for another shape: false with err->kind ERR_NONE, and nothing
 * changes. A file that cannot be read or is not one of ours: false with a line. */
bool search_load(struct swift_search *, const char *path, struct err *);
bool search_save(const struct swift_search *, const char *path, struct err *); /* written beside, then renamed */

#endif
