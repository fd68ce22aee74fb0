/* A guess by the definitions of kernels/backend.h, in double. */
#ifndef TESTS_RIGS_GUESS_DEFINITION_H
#define TESTS_RIGS_GUESS_DEFINITION_H

#include "kernels/backend.h"

/* From logits z (n); against the logits `final` (n) of the last layer unless that is NULL. A logit of -infinity is never
 * listed, nor is NaN. */
struct guess guess_by_definition(const float *z, uint32_t n, double temperature, const float *final);

/* Fails the running cmocka test unless tokens are the same and numbers near. */
void assert_guess(const struct guess *got, const struct guess *want);

#endif
