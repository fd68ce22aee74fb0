/* A model's final norm on the host: what stands before the LM head, and before an acceptance head. */
#ifndef ENGINE_MODEL_FINAL_NORM_H
#define ENGINE_MODEL_FINAL_NORM_H

#include "kernels/backend.h"

struct final_norm {
    uint32_t width;
    float eps;
    bool centred;  /* the mean is taken off first */
    float *weight; /* (width), owned; behind it the bias (width), zeros where there is none */
};

/* Copies the weights, whatever their type; to be freed with final_norm_free(). */
bool final_norm_open(struct final_norm *, const struct model_desc *, struct err *);
void final_norm_free(struct final_norm *);

/* out = h / rms(h) ∘ weight + bias, all (width), of h less its mean where the norm is centred; out may be h. Returns
 * 1 / rms(h). */
float final_norm_apply(const struct final_norm *, const float *h, float *out);

#endif
