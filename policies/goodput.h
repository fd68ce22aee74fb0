/* How much of a draft deserves verification (Speculative Verification): the number γ of drafts that yields most tokens a
 * second,
 *
 *     E[K|γ]      = Σ_{i ≤ γ} Π_{j ≤ i} p̂_j          drafts accepted
 *     goodput(γ)  = (E[K|γ] + 1) / latency(γ)
 *
 * p̂_j, the probability that draft j is accepted when those before it are, is p[j - 1]; latency[γ], above 0, is that of a
 * whole round. */
#ifndef POLICIES_GOODPUT_H
#define POLICIES_GOODPUT_H

#include <stddef.h>
#include <stdint.h>

double goodput_expected(const double *p, uint32_t gamma);
double goodput(const double *p, uint32_t gamma, const double *latency);
/* γ is raised from 0 while goodput rises, to at most n. It hangs on p̂_1 .. p̂_{γ+1} and on nothing behind them: so that a
 * round which tests drafts 1 to γ + 1 drops none for its own value. */
uint32_t goodput_choose(const double *p, uint32_t n, const double *latency);

/* The non-decreasing numbers that are nearest to these n, by squares (pool adjacent violators). */
void goodput_monotone(double *latency, uint32_t n);

#endif
