/* A test program's stream of random numbers: draws of the program's own generator, from a seed that SPECSCOPE_SEED sets
 * and that is printed (seed.h). One stream a program. */
#ifndef TESTS_RIGS_DRAWS_H
#define TESTS_RIGS_DRAWS_H

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

#endif
