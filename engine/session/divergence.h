/* Why two greedy texts part (docs/methods.md: Divergence). After the tokens that both have, one engine chose x and
 * another y. The logits are computed again in exact arithmetic (F32) and in the quantised arithmetic of another engine on
 * the same model. σ is the standard deviation by which the margin of the two best tokens differs between these two, over
 * the last 64 positions. Rounding explains the parting if x and y are at most 4 σ below the best logit, and does not if
 * one of them is more than 12 σ below it. */
#pragma once

#include "engine/session/engine.h"

#define DIVERGENCE_ROWS 64

enum divergence_verdict { DIVERGENCE_ROUNDING, DIVERGENCE_UNDECIDED, DIVERGENCE_OTHER, DIVERGENCE_VERDICTS };
extern const char *const divergence_names[DIVERGENCE_VERDICTS]; /* "rounding", "undecided", … */

struct divergence {
    token_t here, there; /* given */
    token_t best;        /* in exact arithmetic */
    float margin;        /* z_here − z_there */
    float distance;      /* of the farther one of both from the best logit */
    float sigma, bound;  /* bound: 4 σ */
    uint32_t rows;       /* positions that they are from */
    enum divergence_verdict verdict;
};

/* Measures after the n common tokens, with the prompt. The engines have one model, and `exact` computes in exact
 * arithmetic. Fails if memory runs out, the tokens do not fit, or *cancel is set. */
bool divergence_measure(struct divergence *, const struct engine *exact, const struct engine *rounded,
                        const token_t *tokens, uint32_t n, const atomic_bool *cancel, struct err *);
/* The verdict of a distance and σ. */
enum divergence_verdict divergence_judge(float distance, float sigma);
