/* Rotary position embedding (Su et al. 2021) of one pair of a head's dimensions. */
#ifndef KERNELS_CUDA_ROPE_CUH
#define KERNELS_CUDA_ROPE_CUH

#include "kernels/cuda/layout.h"

/* The angle is reduced in double: a float has no digits left for it at position 100,000. */
static __device__ __forceinline__ void
rotate(const struct dev_model &m, uint32_t position, uint32_t pair, float *a, float *b)
{
    const double angle = (double)position * m.inv_freq[pair], turn = 6.283185307179586476925;
    float s, c;
    sincosf((float)(angle - turn * rint(angle / turn)), &s, &c);
    const float was = *a;
    *a = was * c - *b * s;
    *b = was * s + *b * c;
}

/* The pair that dimension d of a head is the first of; false: it is the second of one, or not rotated. */
static __device__ __forceinline__ bool
first_of_pair(const struct dev_model &m, uint32_t d, uint32_t *pair)
{
    *pair = m.rope == ROPE_ADJACENT ? d / 2 : d;
    return m.rope == ROPE_ADJACENT ? d < m.rope_dims && d % 2 == 0 : d < m.rope_dims / 2;
}

#endif
