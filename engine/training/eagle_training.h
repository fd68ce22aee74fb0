/* Trains an EAGLE-3 head by the training-time test (Li et al. 2025, arXiv:2503.01840; docs/training.md).
 *
 * A *base* is a position P of a window of text. Step 1 is the drafter's row at P: it has the token x_{P+1}, g is the
 * projection of the target's features at P, and it predicts x_{P+2}. The row of step s > 1 is at position P + s - 1: it
 * has the token x_{P+s}, g is the output of the base's row of step s - 1, and it predicts x_{P+s+1}. It attends to the
 * rows of step 1 up to P and to the base's own rows of steps 2 to s, as a drafted row does in a session.
 *
 *     loss = sum over s of 0.8^(s-1) * mean over bases of KL(p || q),  nats
 *
 * q is the head's distribution over its vocabulary S, and p is the target's, restricted to S and scaled to sum to 1. A
 * base is part of step s if the tokens predicted in steps 1 to s are in the answer and in S. */
#pragma once

#include <stdatomic.h>

#include "engine/training/eagle_head.h"
#include "engine/training/head_training.h"

#define EAGLE_STEPS 3
#define EAGLE_FADE  0.8f /* a step's weight in the loss, as a share of that of the step before */

struct eagle_window {       /* borrowed */
    uint32_t n;             /* tokens, at least 3 */
    uint32_t first;         /* the first token that counts as predicted: the answer's first */
    const token_t *tokens;  /* (n) */
    const uint16_t *states; /* BF16 (n, n_features + 1, width): the features, then the state after the last layer */
};

struct eagle_score { /* sums over bases, by step */
    double bases[EAGLE_STEPS], loss[EAGLE_STEPS];
    /* Bases whose earlier predictions were all right, and those of them whose prediction of this step was right; a
     * token outside S is never predicted. */
    double reached[EAGLE_STEPS], accepted[EAGLE_STEPS];
};

struct eagle_options {
    uint32_t threads;          /* 0: one */
    uint32_t rows;             /* tokens of a step's windows at most */
    uint32_t window;           /* tokens of a window at most; no more than rows */
    const atomic_bool *cancel; /* or NULL: a step ends soon after it becomes true, and changes nothing */
};

struct eagle_training;

/* The head, the target's description and what the lens points to stay the caller's and must outlive the training. lens:
 * the target's own head, its rows those of head->tokens. */
bool eagle_training_open(struct eagle_training **, struct eagle_head *, const struct model_desc *target,
                         const struct lens *, const struct eagle_options *, struct err *);
void eagle_training_close(struct eagle_training *);
uint64_t eagle_training_bytes(const struct eagle_head *, const struct eagle_options *);

/* Adds the head's scores on windows of at most options.rows tokens in all to *score. `steps` is 1 to EAGLE_STEPS.
 * gradient: as head->values, overwritten with the gradient of the loss; NULL: none. drafts: (all tokens, EAGLE_STEPS),
 * the predicted id of each base and step, TOKEN_NONE where there is none; NULL: not written. */
void eagle_loss(struct eagle_training *, const struct eagle_window *, size_t n, uint32_t steps, float *gradient,
                token_t *drafts, struct eagle_score *score);
/* One step of AdamW; adds the scores from before it to *score. The gradient's norm is clipped to 1. */
void eagle_training_step(struct eagle_training *, const struct eagle_window *, size_t n, uint32_t steps, float rate,
                         struct eagle_score *score);
