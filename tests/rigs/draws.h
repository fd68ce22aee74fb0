/* A test program's stream of random numbers, drawn by the program's own generator. Its seed is printed, and
 * SPECSCOPE_SEED sets it (seed.h). A program has one stream. */
#pragma once

#include <math.h>

#include "base/rng.h"
#include "tests/rigs/seed.h"

static uint64_t seed = 1;
static uint32_t drawn;

static inline double
uniform(void) /* 0 <= u < 1 */
{
    const struct rng_key key = {.seed = seed, .pos = drawn++};
    return rng_uniform(&key);
}

static inline uint32_t
random_below(uint32_t n)
{
    return (uint32_t)(uniform() * n);
}

static inline float
gaussian(void)
{
    const double u = 1 - uniform(), v = uniform();
    return (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}
