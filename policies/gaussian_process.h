/* A Gaussian process on [0, 1]^d with a Matérn 5/2 kernel, for Bayesian optimisation with an upper confidence bound.
 *
 *   k(x, y) = (1 + √5 r + 5 r²/3) exp(−√5 r),  r = |x − y| / ℓ     (Rasmussen & Williams 2006, eq. 4.17)
 *
 * Targets are normalised to mean 0 and deviation 1; noise is added to the diagonal; ℓ is the one of a fixed grid with
 * the largest marginal likelihood. The number of points is bounded: when full, the
 * worst of the older half goes. */
#ifndef POLICIES_GAUSSIAN_PROCESS_H
#define POLICIES_GAUSSIAN_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#define GP_POINTS 64

struct gaussian_process {
    uint32_t d, n;
    double *x;                 /* (GP_POINTS, d) */
    double y[GP_POINTS];       /* as given */
    double *factor;            /* (GP_POINTS, GP_POINTS) lower Cholesky factor of K + noise I, row-major */
    double weights[GP_POINTS]; /* (K + noise I)⁻¹ y */
    double mean, deviation;    /* of y */
    double length;             /* ℓ, in units of √d */
    bool fitted;
};

bool gp_open(struct gaussian_process *, uint32_t d); /* false: out of memory */
void gp_close(struct gaussian_process *);
void gp_add(struct gaussian_process *, const double *x, double y); /* x: (d), copied */
/* Fits ℓ and the factor. False when there are fewer than two points or the matrix has no factor: then nothing can be asked. */
bool gp_fit(struct gaussian_process *);
/* Posterior mean and deviation at x, in the units of y. */
void gp_predict(const struct gaussian_process *, const double *x, double *mean, double *deviation);
/* Maximises mean + kappa · deviation over random points and a local search from the best of them, into x (d). */
void gp_suggest(const struct gaussian_process *, double kappa, uint64_t *random, double *x);

#endif
