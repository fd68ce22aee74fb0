/* What a model's form asks for beside products and attention: norms of either kind, activations, caps. Each number depends
 * on its own row alone, summed in an order that its length fixes. */
#ifndef KERNELS_CPU_FORMS_H
#define KERNELS_CPU_FORMS_H

#include "kernels/cpu/weights.h"
#include "kernels/team.h"

/* y = the norm of x (n), which may be y. */
void form_norm(const struct weights *, const struct norm *, const float *x, size_t n, float *y);
/* gate (n) = act(gate) * up; up NULL: act(gate). As layer 1..L has it. */
void form_activate(const struct weights *, uint32_t layer, float *gate, const float *up, size_t n);
/* x = cap * tanh(x / cap); a cap of 0 leaves x. */
void form_cap(float cap, float *x, size_t n);
/* Numbers `part` of n rows, ld apart, become -most to most; 0 leaves them. */
void form_clip(float most, float *x, size_t n, size_t ld, struct range part);

#endif
