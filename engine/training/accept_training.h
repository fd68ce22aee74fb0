/* Trains an acceptance head (SpecDec++, engine/model/trained/accept_head.h): weighted binary cross-entropy, Adam.
 *
 *     loss = -Σ [a · log p̂ + w · (1 - a) · log(1 - p̂)] / Σ [a + w · (1 - a)]
 *
 * a in [0, 1] is the probability that the target accepts a candidate, w what a rejection weighs. The models stay as
 * they are. */
#pragma once

#include "base/blocks.h"
#include "engine/model/trained/accept_head.h"
#include "engine/training/reader.h"

struct blas;

struct accept_batch {
    size_t n;
    const float *x;     /* (n, width): norm(h) of each candidate's row */
    const float *label; /* (n): a */
};

struct accept_score { /* sums over rows: divide by n, loss by weight */
    size_t n;
    double loss, weight;
    double kl; /* of (a, 1 - a) from (p̂, 1 - p̂), nats: unweighted, as the paper's Table 3 has it */
};

/* Buffers for up to n rows of a head, in the blocks. NULL: no memory. */
struct accept_work;
struct accept_work *accept_work_open(const struct accept_head *, size_t n, struct blocks *);
/* Adds to *score. p (n): every p̂, or NULL. gradient: as head->values, of the loss' sum, added to; NULL: none. */
void accept_loss(const struct accept_head *, const struct accept_batch *, double w_reject, struct accept_work *,
                 float *p, float *gradient, struct accept_score *);

struct accept_training_options {
    uint32_t threads;  /* 0: one */
    size_t batch;      /* rows in a step, at most */
    double w_reject;   /* the paper's best: 6 */
    struct blas *blas; /* who multiplies (blas.h); borrowed; NULL: the BLAS here */
};

struct accept_training;

/* Gives the head random weights, uniform within 1 / sqrt(width) of 0. The head stays the caller's and must outlive the
 * training. */
bool accept_training_open(struct accept_training **, struct accept_head *, uint64_t seed,
                          const struct accept_training_options *, struct err *);
void accept_training_close(struct accept_training *);
/* One step on n <= batch rows; its score, from before the step. */
struct accept_score accept_training_step(struct accept_training *, const struct accept_batch *, double rate);
/* The score of the head as it is, on any number of rows. */
struct accept_score accept_training_score(struct accept_training *, const struct accept_batch *);

/* What an acceptance head is trained on (SpecDec++, section 4): the target's own responses with a draft model's
 * candidates mixed in, and how likely the target accepts each.
 *
 * For a prompt the target generates X_1..X_n. The draft model reads the same text, and at every position a candidate is
 * drawn from it, Y_i ~ q(. | prompt, X_<i), whose label is a_i = min(1, p(Y_i) / q(Y_i)). The draft model then reads Z,
 * which is X_i with the probability `mixing` and else Y_i; out come its final hidden states at the rows whose input is
 * a Y_i, normed. Greedy (temperature 0): Y_i is the draft's first choice, and a_i is 1 if it is the target's, too, else
 * 0. */

struct accept_data_options {
    uint32_t prompt, response; /* tokens of a prompt at most, and of the target's response */
    double mixing;             /* 0.15 */
    struct sampling sampling;  /* of p and q, and of the response */
    uint64_t seed;
    uint32_t sequences; /* prompts at a time, at most; 1 to READER_SEQUENCES */
};

struct accept_data;

/* The engine, which has a draft model, is borrowed. */
bool accept_data_open(struct accept_data **, const struct engine *, const struct accept_data_options *,
                      const atomic_bool *cancel, struct err *);
void accept_data_close(struct accept_data *);

struct accept_prompt {
    uint64_t index; /* names its random numbers */
    const token_t *tokens;
    size_t n; /* 1 to options.prompt */
    /* What comes out: rows of x (response, width of the draft) and label (response), which are the caller's. */
    float *x, *label;
    size_t rows;
};

/* Reads up to options.sequences prompts in shared passes. Each gives the rows that it would give alone. A response ends
 * with the target's end of sequence. */
bool accept_data_prompts(struct accept_data *, struct accept_prompt *, size_t n, struct err *);
