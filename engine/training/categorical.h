/* softmax(z / T) on the host, in double: for collecting what is trained on, where a backend's own decisions are not wanted. */
#ifndef ENGINE_TRAINING_CATEGORICAL_H
#define ENGINE_TRAINING_CATEGORICAL_H

#include <stdint.h>

#include "kernels/backend.h"

struct categorical { /* T = 0: all of it on the first choice */
    const float *z;  /* (n), borrowed */
    uint32_t n;
    double temperature, max, sum; /* Σ exp((z - max) / T) */
    token_t first;                /* the first choice, lowest id among equals */
};

struct categorical categorical_of(const float *z, uint32_t n, float temperature);
double categorical_probability(const struct categorical *, token_t);    /* 0 for a token that it doesn't have */
token_t categorical_draw(const struct categorical *, uint64_t *random); /* a SplitMix64 state */
/* From norm(max(0, p - q)), what a rejection leaves; from p where that is nothing. */
token_t categorical_residual(const struct categorical *p, const struct categorical *q, uint64_t *random);
/* min(1, p(x) / q(x)): how likely speculative sampling accepts x ~ q under the target p. */
double categorical_acceptance(const struct categorical *p, const struct categorical *q, token_t);
/* Σ min(p, q). */
double categorical_overlap(const struct categorical *p, const struct categorical *q);

#endif
