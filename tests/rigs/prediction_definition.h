/* Computes a prediction by the definitions of kernels/backend.h, in double. Needs neither cmocka nor the rest of the
 * tests, because the smoke test on a GPU uses it. */
#pragma once

#include "kernels/backend.h"

/* Computes the prediction of logits z (n) and, unless `final` is NULL, compares them with the last layer's logits
 * `final` (n). A logit of -infinity or NaN is never listed. */
struct prediction prediction_by_definition(const float *z, uint32_t n, double temperature, const float *final);
