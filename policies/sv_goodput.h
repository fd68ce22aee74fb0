/* Finds how many drafts to verify (Speculative Verification): the number γ with the highest expected tokens per
 * second,
 *
 *     E[K|γ]      = Σ_{i ≤ γ} Π_{j ≤ i} p̂_j          drafts accepted
 *     goodput(γ)  = (E[K|γ] + 1) / latency(γ)
 *
 * p̂_j, the probability that draft j is accepted if all drafts before it are, is p[j - 1]; latency[γ], above 0, is
 * that of a whole round. */
#pragma once

#include "engine/session/round.h"

#define GOODPUT_SEQUENCES 64 /* at most */

double goodput_expected(const double *p, uint32_t gamma);

/* γ of each of n sequences that are verified together, for the goodput of the whole round,
 *
 *     (Σ_i E[K_i|γ_i] + n) / latency(Σ_i γ_i)
 *
 * All γ begin at 0. The γ of the sequence whose next draft adds most is raised repeatedly, while goodput rises; with
 * `past_dips` to the end, and the highest goodput on the way counts: the best allocation of all. That looks at all
 * drafts, so it is for greedy rounds only, where any choice is lossless. Without past_dips γ of a sequence depends on
 * its p̂_1 .. p̂_{γ+1} and on no later ones: a round that tests drafts 1 to γ + 1 drops none for its own value.
 *
 * p[i] has the p̂ of sequence i's drafts, of which most[i] may be verified; latency[] is by drafts in all. */
void goodput_allocate(const double *const *p, const uint32_t *most, uint32_t n, const double *latency, bool past_dips,
                      uint32_t *gamma);

/* The non-decreasing numbers that are nearest to these n, by squares (pool adjacent violators). */
void goodput_monotone(double *latency, uint32_t n);

/* The time of a round of Speculative Verification that verifies γ drafts, as measured on this machine: drafting and
 * the companion's reading, which cost the same for every γ, and a verification of γ + 1 rows for each sequence. */
#define SV_DRAFTS 32           /* of a sequence, at most */
#define SV_ROWS   VERIFY_NODES /* of a forward pass */

#define SV_RECENT 5

struct sv_latency {                       /* zeroed: no measurements */
    uint32_t rows;                        /* measured up to this number */
    double verify_ms[SV_ROWS];            /* (rows) of 1..rows rows; does not decrease */
    double first_ms[SV_ROWS];             /* (rows) measured in learning passes */
    double recent_ms[SV_ROWS][SV_RECENT]; /* of the latest verifications by rounds */
    uint32_t verified[SV_ROWS];           /* verifications by rounds */
    uint32_t window;                      /* drafts of a sequence that draft_ms is about */
    double draft_ms[SV_ROWS + 1];         /* the least, by the number of sequences; 0: unknown */
};

/* Measures verifications of up to `rows` rows, at most SV_ROWS, after a few tokens of the round's sequence, in learning
 * passes. The context has room for `room` rows; larger numbers are extrapolated, and some in between are interpolated.
 * False: stop. */
bool sv_latency_measure(struct sv_latency *, struct round *, uint32_t rows, uint32_t room);
/* Adds the time of a round's verification of `rows` rows. The latency of a number of rows is the median of its latest
 * verifications. With fewer than three of them it is the first measurement times the median change of the other
 * numbers of rows, because a machine that becomes faster or slower does so for all of them. So an outlier, now or in
 * the first round, has little effect. */
void sv_latency_verified(struct sv_latency *, uint32_t rows, double ms);
/* Adds the time of the drafts and the companion in a round of n sequences with `window` drafts each. Do not add the
 * first round after a prompt: its time contains the prefill of the auxiliary models' contexts. */
void sv_latency_drafted(struct sv_latency *, uint32_t window, uint32_t sequences, double ms);
/* Returns the ms of a round of n sequences that drafts `window` tokens of each and verifies `rows` rows, in forward
 * passes of at most SV_ROWS; NAN: unknown. */
double sv_latency_of(const struct sv_latency *, uint32_t window, uint32_t sequences, uint32_t rows);
