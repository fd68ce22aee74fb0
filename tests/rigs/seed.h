/* The seed of a test's random numbers: SPECSCOPE_SEED if it is set, otherwise the test's usual one, so that `make test`
 * runs the same cases each time. `make test-long` sets SPECSCOPE_SEED to the time. The seed is printed, so that a
 * failure can be repeated. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline uint64_t
seed_or(uint64_t usual)
{
    const char *given = getenv("SPECSCOPE_SEED");
    const uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : usual;
    printf("# seed %llu\n", (unsigned long long)seed);
    return seed;
}

/* Sets a variable of the program before its tests. */
#define TEST_SEED(variable, usual)                                                                                     \
    __attribute__((constructor)) static void draw_seed(void)                                                           \
    {                                                                                                                  \
        variable = seed_or(usual);                                                                                     \
    }                                                                                                                  \
    _Static_assert(1, "a semicolon follows")
