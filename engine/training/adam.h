/* Adam (Kingma and Ba, 2015) with decoupled decay (Loshchilov and Hutter, 2019), betas 0.9 and 0.999:
 *
 *     values <- values - rate * (m / (sqrt(v) + 1e-8) + decay * (values - home)),   m, v: unbiased moments of the gradient */
#pragma once

#include <stdint.h>

#include "base/blocks.h"

struct adam {
    float *first, *second; /* moments */
    uint64_t steps;
};

void adam_open(struct adam *, size_t n, struct blocks *); /* of n values; its memory is in the blocks */
void adam_begin(struct adam *); /* a step; values may then be moved in parts, by several threads */
/* Values [at, at + n) of all; values, gradient and home point to the part's own. home NULL: zero. */
void adam_move(const struct adam *, size_t at, size_t n, float *values, const float *gradient, float rate, float decay,
               const float *home);
