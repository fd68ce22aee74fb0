/* A prediction by the definitions of kernels/backend.h, in double. Needs neither cmocka nor the rest of the tests: the
 * smoke test on a GPU has it. */
#ifndef TESTS_RIGS_PREDICTION_DEFINITION_H
#define TESTS_RIGS_PREDICTION_DEFINITION_H

#include "kernels/backend.h"

/* From logits z (n); against the logits `final` (n) of the last layer unless that is NULL. A logit of -infinity is
 * never listed, nor is NaN. */
struct prediction prediction_by_definition(const float *z, uint32_t n, double temperature, const float *final);

#endif
