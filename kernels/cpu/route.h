/* Chooses the experts of a row and their weights. Computes in F32 from the row's own logits only. */
#pragma once

#include "kernels/experts.h"

/* Writes the `used` routes of a row, by the experts' index. z (form.n): the router's outputs, which are overwritten.
 * bias and correction (form.n) may be NULL. */
void route(const struct experts_form *, float *z, const float *bias, const float *correction, struct route *out);
