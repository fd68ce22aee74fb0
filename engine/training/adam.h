/* Adam (Kingma and Ba, 2015) with decoupled decay (Loshchilov and Hutter, 2019), betas 0.9 and 0.999:
 *
 *     values <- values - rate * (m / (sqrt(v) + 1e-8) + decay * (values - home)),   m, v: unbiased moments of the gradient */
#ifndef ENGINE_TRAINING_ADAM_H
#define ENGINE_TRAINING_ADAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct adam {
    size_t n;
    float *first, *second; /* (n) moments */
    uint64_t steps;
};

bool adam_open(struct adam *, size_t n); /* false: no memory; closing is allowed all the same */
void adam_close(struct adam *);
void adam_begin(struct adam *); /* a step; values may then be moved in parts, by several threads */
/* Values [at, at + n) of all; values, gradient and home point to the part's own. home NULL: zero. */
void adam_move(const struct adam *, size_t at, size_t n, float *values, const float *gradient, float rate, float decay,
               const float *home);

#endif
