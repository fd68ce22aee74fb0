/* Sums of probabilities. A sum of floats depends on its order; so masses are added as integers, in fixed point, which
 * makes every sum and every comparison of sums the same whoever adds, and prefix sums agree with totals. */
#ifndef KERNELS_CUDA_DEVICE_MASS_CUH
#define KERNELS_CUDA_DEVICE_MASS_CUH

#include "kernels/cuda/device/block.cuh"

struct mass {
    uint64_t units;
    int scale; /* it is units * 2^-scale */
};

static __device__ __forceinline__ double
mass_value(struct mass m)
{
    return ldexp((double)m.units, -m.scale);
}

/* The scale at which n numbers up to 1 add up to 2^62 at most. */
static __device__ __forceinline__ int
unit_scale(uint32_t n)
{
    return 62 - (32 - __clz((int)n));
}

/* p * 2^scale rounded down; p >= 0, and p * 2^scale < 2^63. */
static __device__ __forceinline__ uint64_t
fixed_point(float p, int scale)
{
    const uint32_t bits = __float_as_uint(p), mantissa = (bits & 0x7fffffu) | 0x800000u; /* subnormal numbers: 0 */
    const int right = 189 - scale - (int)(bits >> 23);                                   /* from 63 bits */
    return right < 64 && bits >> 23 > 0 ? (uint64_t)mantissa << 39 >> right : 0;
}

/* Where the largest of n numbers is `most` (bits of a float), the scale that makes the most of 64 bits. */
static __device__ __forceinline__ int
fitting_scale(uint32_t n, uint32_t most)
{
    return unit_scale(n) + 126 - (int)(most >> 23);
}

/* Is a sum of n numbers too coarse for its value? Each was rounded down by less than a unit. */
static __device__ __forceinline__ bool
too_coarse(uint64_t units, uint32_t n)
{
    return units >> 24 < n;
}

/* The sum of p(v) >= 0 for v < n; p may be asked for a v twice, always by the same thread. */
template <class P>
static __device__ struct mass
block_mass(P p, uint32_t n, struct block_scratch *scratch)
{
    struct mass m = {0, unit_scale(n)};
    for (bool again = false;; again = true) {
        uint32_t most = 0;
        m.units = 0;
#pragma unroll 8
        for (uint32_t v = threadIdx.x; v < n; v += ROW_THREADS) {
            const float pv = p(v);
            m.units += fixed_point(pv, m.scale);
            most = max_op()(most, __float_as_uint(pv));
        }
        m.units = block_reduce(m.units, add_op(), scratch);
        if (again || !too_coarse(m.units, n))
            return m;
        most = block_reduce(most, max_op(), scratch);
        if (most == 0 || fitting_scale(n, most) <= m.scale)
            return m;
        m.scale = fitting_scale(n, most);
    }
}

#endif
