/* What an acceptance head is trained on (SpecDec++, section 4): the target's own responses with a draft model's candidates
 * mixed in, and how likely the target accepts each.
 *
 * For a prompt the target says X_1..X_n. The draft model reads along, and at every position a candidate is drawn from it,
 * Y_i ~ q(. | prompt, X_<i), whose label is a_i = min(1, p(Y_i) / q(Y_i)). The draft model then reads Z, which is X_i with
 * the probability `mixing` and else Y_i; out come its final hidden states at the rows whose input is a Y_i, normed. Greedy
 * (temperature 0): Y_i is the draft's first choice, and a_i says whether it is the target's. */
#ifndef ENGINE_TRAINING_ACCEPT_DATA_H
#define ENGINE_TRAINING_ACCEPT_DATA_H

#include "engine/training/reader.h"

struct accept_data_options {
    uint32_t prompt, response; /* tokens of a prompt at most, and of the target's response */
    double mixing;             /* 0.15 */
    struct sampling sampling;  /* of p and q, and of the response */
    uint64_t seed;
    uint32_t lanes; /* prompts at a time, at most; 1 to READER_LANES */
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

/* Up to options.lanes prompts in passes that they share: of each the same as alone. A response ends with the target's end of
 * sequence. */
bool accept_data_prompts(struct accept_data *, struct accept_prompt *, size_t n, struct err *);

#endif
