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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GOODPUT_SEQUENCES 64 /* at most */

double goodput_expected(const double *p, uint32_t gamma);
double goodput(const double *p, uint32_t gamma, const double *latency);

/* The same of n sequences that are verified together: γ of each, for the goodput of the whole round,
 *
 *     (Σ_i E[K_i|γ_i] + n) / latency(Σ_i γ_i)
 *
 * All begin at 0; time and again the sequence whose next draft adds most has its γ raised, while goodput rises; with `past_dips` to
 * the end, and the highest goodput on the way counts: the best allocation of all. That looks at all drafts, so it is for greedy
 * rounds only, where any choice is lossless. p[i] has the p̂ of sequence i's drafts, of which most[i] may be verified; latency[] is over drafts in all. Without past_dips γ of a sequence hangs on
 * its p̂_1 .. p̂_{γ+1} and on nothing behind them: a round that tests drafts 1 to γ + 1 drops none for its own value. */
void goodput_allocate(const double *const *p, const uint32_t *most, uint32_t n, const double *latency, bool past_dips,
                      uint32_t *gamma);

/* The non-decreasing numbers that are nearest to these n, by squares (pool adjacent violators). */
void goodput_monotone(double *latency, uint32_t n);

#endif
