/* Rotary position embedding (Su et al. 2021). The turns of a sweep's rows are computed once, for all layers and heads. */
#ifndef KERNELS_CUDA_DEVICE_ROPE_CUH
#define KERNELS_CUDA_DEVICE_ROPE_CUH

#include <math.h>

#include "kernels/cuda/device/layout.h"

/* Cosine and sine of position * frequency. The angle is brought below half a turn in double: a float has no digits left
 * for it at position 100,000. */
static __device__ __forceinline__ float2
turn_of(uint32_t position, double frequency)
{
    const double half_turns = (double)position * frequency * 0.318309886183790671538; /* 1 / pi */
    float s, c;
    sincospif((float)(half_turns - 2 * rint(half_turns / 2)), &s, &c);
    return make_float2(c, s);
}

static __device__ __forceinline__ void
rotate(const float2 turn, float *a, float *b)
{
    const float was = *a;
    *a = fmaf(was, turn.x, -(*b * turn.y));
    *b = fmaf(was, turn.y, *b * turn.x);
}

/* The dimensions of pair p of a head: those that are rotated come first. */
static __device__ __forceinline__ uint2
dims_of_pair(const struct dev_model &m, uint32_t p)
{
    const bool apart = p < m.rope_dims / 2 && m.rope == ROPE_HALVES;
    return apart ? make_uint2(p, p + m.rope_dims / 2) : make_uint2(2 * p, 2 * p + 1);
}

/* The pair that dimension d of a head is the first of; false: it is the second of one, or not rotated. */
static __device__ __forceinline__ bool
first_of_pair(const struct dev_model &m, uint32_t d, uint32_t *pair)
{
    *pair = m.rope == ROPE_ADJACENT ? d / 2 : d;
    return m.rope == ROPE_ADJACENT ? d < m.rope_dims && d % 2 == 0 : d < m.rope_dims / 2;
}

#endif
