/* SWIFT's search for the sublayers to skip (docs/policies/swift.md): proposals, their matchness, the best set so far.
 *
 * Switches are the attention and MLP sublayers of layers 2..L-1: switch 2i is the attention of layer 2 + i, switch
 * 2i + 1 its MLP; true means skipped. Every set has the same number of skipped switches. */
#pragma once

#include "base/blocks.h"
#include "engine/events/policy.h"

/* A Gaussian process on [0, 1]^d with a Matérn 5/2 kernel, for Bayesian optimisation with an upper confidence bound.
 *
 *   k(x, y) = (1 + √5 r + 5 r²/3) exp(−√5 r),  r = |x − y| / ℓ     (Rasmussen & Williams 2006, eq. 4.17)
 *
 * Targets are normalised to mean 0 and deviation 1; noise is added to the diagonal; ℓ is the one of a fixed grid with
 * the largest marginal likelihood. The number of points is bounded: when full, the
 * worst of the older half goes. */
#define GP_POINTS 64

struct gaussian_process {
    uint32_t d, n;
    double *x;                 /* (GP_POINTS, d) */
    double y[GP_POINTS];       /* before normalising */
    double *factor;            /* (GP_POINTS, GP_POINTS) lower Cholesky factor of K + noise I, row-major */
    double weights[GP_POINTS]; /* (K + noise I)⁻¹ y */
    double mean, deviation;    /* of y */
    double length;             /* ℓ, in units of √d */
    bool fitted;
};

void gp_open(struct gaussian_process *, uint32_t d, struct blocks *); /* its memory is in the blocks */
void gp_add(struct gaussian_process *, const double *x, double y);    /* x: (d), copied */
/* Fits ℓ and the factor. False when there are fewer than two points or the matrix has no factor; gp_predict() and
 * gp_suggest() are then invalid. */
bool gp_fit(struct gaussian_process *);
/* Posterior mean and deviation at x, in the units of y. */
void gp_predict(const struct gaussian_process *, const double *x, double *mean, double *deviation);
/* Maximises mean + kappa · deviation over random points and a local search from the best of them, into x (d). */
void gp_suggest(const struct gaussian_process *, double kappa, uint64_t *random, double *x);

enum search_phase {
    SEARCH_RUNNING,
    SEARCH_FOUND, /* reached the target */
    SEARCH_STALE, /* no better set within the patience */
    SEARCH_SPENT  /* reached the limit of steps */
};

struct search_limits {
    uint32_t max_steps, patience;
    double target;
};

struct swift_search {
    struct blocks blocks;                  /* the memory of all the following */
    uint32_t switches, skipped;            /* 2 (L - 2), and how many of them are skipped */
    bool *best, *proposed;                 /* (switches) both begin as the initial set */
    double best_matchness, last_matchness; /* -1: nothing is scored yet */
    uint32_t steps, best_step;             /* sets scored; the one that gave the best */
    uint64_t random;                       /* state of the generator */
    struct gaussian_process gp;
    double *point;   /* (switches) scratch */
    uint32_t *order; /* (switches) scratch */
};

uint32_t search_skipped(uint32_t layers, double ratio);                                    /* floor(2 (L - 2) ratio) */
bool search_open(struct swift_search *, uint32_t layers, uint32_t skipped, uint64_t seed); /* false: out of memory */
void search_close(struct swift_search *);
/* Whether it runs, or why it ended. Other limits may resume it. */
enum search_phase search_phase(const struct swift_search *, const struct search_limits *);
/* Fills `proposed` with the next set to score: first the initial one, then random sets, and every interval-th time the
 * Gaussian process's suggestion (interval 0: never). */
void search_propose(struct swift_search *, uint32_t interval);
/* Adds the matchness of the proposed set. */
void search_score(struct swift_search *, double matchness);

/* Copies the state into one block, which the caller frees; NULL: out of memory. */
void *search_save(const struct swift_search *);
/* Continues where the saved search stopped. A search of another shape (switches, skipped) changes nothing. */
void search_load(struct swift_search *, const void *saved);
