/* Which experts a row goes to, and how much each of them counts. In F32, from the row's own logits alone. */
#ifndef KERNELS_CPU_ROUTE_H
#define KERNELS_CPU_ROUTE_H

#include "kernels/experts.h"

/* The form's `used` routes of a row, by the experts' index; z (form.n): the router's outputs, which are overwritten. bias and
 * correction (form.n) may be NULL. */
void route(const struct experts_form *, float *z, const float *bias, const float *correction, struct route *out);

#endif
