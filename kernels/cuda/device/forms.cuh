/* The elementwise operations of a model's form (kernels/form.h): activations, caps, clips, growth, rotations. */
#pragma once

#include <math.h>

#include "kernels/cuda/device/layout.h"

static __device__ __forceinline__ float
activated(enum activation kind, const struct xielu &numbers, float x)
{
    if (kind == ACT_XIELU) {
        const float linear = numbers.beta * x;
        return x > 0 ? fmaf(numbers.alpha_p * x, x, linear)
                     : fmaf(expm1f(fminf(x, numbers.eps)) - x, numbers.alpha_n, linear);
    }
    if (kind == ACT_RELU_SQUARED)
        return x > 0 ? x * x : x * 0; /* preserves NAN */
    if (kind == ACT_GELU)
        return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
    /* (1 + tanh a) / 2 = 1 / (1 + e^-2a) */
    const float a = kind == ACT_SILU ? x : 1.5957691216057308f * fmaf(0.044715f * x * x, x, x);
    return x / (1.0f + expf(-a));
}

/* Returns the activation of a hidden unit with a gate, in models with experts: a function of both values
 * (kernels/form.h). */
static __device__ __forceinline__ float
activated_pair(enum activation kind, const struct xielu &numbers, float gate, float up)
{
    if (kind != ACT_SWIGLU_CLAMPED)
        return activated(kind, numbers, gate) * up;
    const float x = gate > 7 ? 7 : gate, y = up > 7 ? 7 : up < -7 ? -7 : up;
    return x / (1.0f + expf(-1.702f * x)) * (1 + y);
}

static __device__ __forceinline__ float
capped(float cap, float x)
{
    return cap > 0 ? cap * tanhf(x / cap) : x;
}

static __device__ __forceinline__ float
clipped(float most, float x)
{
    return !(most > 0) ? x : x > most ? most : x < -most ? -most : x; /* preserves NAN */
}

/* Returns the additional scale of a query at a position. */
static __device__ __forceinline__ float
growth_at(const struct model_form &f, uint32_t position)
{
    return f.growth > 0 ? fmaf(f.growth, logf((float)(1 + position / f.growth_every)), 1) : 1;
}

/* Returns logit o with the model's bias, scale and cap. */
static __device__ __forceinline__ float
shaped_logit(const struct dev_model &m, uint32_t o, float z)
{
    const float biased = m.head_bias != NULL ? z + m.head_bias[o] : z;
    return capped(m.form.logit_cap, biased * m.form.logit_scale);
}

/* Rotary position embedding (Su et al. 2021). The rotations of a forward pass's rows are computed once for all layers
 * and heads. */

/* Returns cosine and sine of position * frequency. The angle is reduced to below half a turn in double, because a float
 * lacks precision at position 100,000. */
static __device__ __forceinline__ float2
rotation_of(uint32_t position, double frequency)
{
    const double half_rotations = (double)position * frequency * 0.318309886183790671538; /* 1 / pi */
    float s, c;
    sincospif((float)(half_rotations - 2 * rint(half_rotations / 2)), &s, &c);
    return make_float2(c, s);
}

static __device__ __forceinline__ void
rotate(const float2 rotation, float *a, float *b)
{
    const float was = *a;
    *a = fmaf(was, rotation.x, -(*b * rotation.y));
    *b = fmaf(was, rotation.y, *b * rotation.x);
}

/* Returns the dimensions of pair p of a head; rotated ones come first. */
static __device__ __forceinline__ uint2
dims_of_pair(const struct dev_model &m, uint32_t p)
{
    const bool apart = p < m.rope_dims / 2 && m.rope == ROPE_HALVES;
    return apart ? make_uint2(p, p + m.rope_dims / 2) : make_uint2(2 * p, 2 * p + 1);
}

/* Returns true if dimension d of a head is the first of a rotated pair, and writes the pair; false: it is the second,
 * or not rotated. */
static __device__ __forceinline__ bool
first_of_pair(const struct dev_model &m, uint32_t d, uint32_t *pair)
{
    *pair = m.rope == ROPE_ADJACENT ? d / 2 : d;
    return m.rope == ROPE_ADJACENT ? d < m.rope_dims && d % 2 == 0 : d < m.rope_dims / 2;
}
