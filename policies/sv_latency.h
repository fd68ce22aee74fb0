/* How long a round of Speculative Verification takes when γ drafts are verified, as measured on this machine: drafting and
 * asking the companion, which cost the same for every γ, and a verification of γ + 1 rows. */
#ifndef POLICIES_SV_LATENCY_H
#define POLICIES_SV_LATENCY_H

#include "engine/session/round.h"

#define SV_DRAFTS 32 /* at most */

struct sv_latency {                  /* zeroed: nothing is known */
    uint32_t rows;                   /* whose verification was measured */
    double verify_ms[SV_DRAFTS + 1]; /* (rows) of 1..rows rows, never less than of fewer */
    uint32_t window, rounds;         /* drafting was measured for so many drafts, in so many rounds */
    double draft_ms;                 /* the least */
};

/* Verifies 1..rows rows behind a few tokens of the round's sequence, in passes aside; `rows` is at most SV_DRAFTS + 1 and
 * fits into the context. False: stop. */
bool sv_latency_measure(struct sv_latency *, struct round *, uint32_t rows);
/* A round drafted `window` tokens and asked about them in so many ms. What prefills a helper's context tells nothing: the
 * first round after a prompt is not to be counted. */
void sv_latency_drafted(struct sv_latency *, uint32_t window, double ms);
/* Are rounds known that draft `window` tokens, of which up to n are verified? */
bool sv_latency_known(const struct sv_latency *, uint32_t window, uint32_t n);

#endif
