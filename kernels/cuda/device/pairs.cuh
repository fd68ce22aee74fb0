/* Units of Q4_0, Q4_K and Q6_K: pairs of 32 columns (layout.h), with the face of units.cuh.
 *
 * The tensor cores read subnormal halves exactly, and a half whose exponent is zero is its mantissa times 2^-24: so q, cut
 * out of its word by a mask, is a number already. Where it is, the first unit's q begins at bit 0 of a half and
 * the second unit's at bit 4, times 16; a q of six bits ends at bit 9 then, the last of the mantissa. The 16 comes off the
 * second unit's scales, the 2^-24 off a strip's sums in the end (FACTOR).
 * What is the same for all columns of a row, 8 or 32 below zero, or a minimum, is a matrix too, all columns alike: sums of
 * activations come from a matrix instruction, which is the only thing here that every tile of rows pays. */
#ifndef KERNELS_CUDA_DEVICE_PAIRS_CUH
#define KERNELS_CUDA_DEVICE_PAIRS_CUH

#include "kernels/cuda/device/units.cuh"

#define SUBNORMAL 16777216.0f /* 2^24 */

/* Of a unit's scale. */
static __device__ __forceinline__ float
unit_factor(int unit)
{
    return unit == 0 ? 1.0f : 1.0f / 16;
}

/* The low four bits of step s of a unit. */
static __device__ __forceinline__ void
low_bits(const uint4 &q, int unit, int s, uint32_t (&a)[4])
{
    const uint32_t mask = unit == 0 ? 0x000f000fu : 0x00f000f0u, w0 = s == 0 ? q.x : q.z, w1 = s == 0 ? q.y : q.w;
    a[0] = w0 & mask;
    a[1] = w0 >> 8 & mask;
    a[2] = w1 & mask;
    a[3] = w1 >> 8 & mask;
}

/* part += a matrix of one number, in halves, times the activations of step s. */
static __device__ __forceinline__ void
add_constant(uint32_t g, uint32_t g8, const uint4 &x, int s, float (&part)[4])
{
    const uint32_t a[4] = {g, g8, g, g8};
    mma_f16(part, a, s == 0 ? x.x : x.z, s == 0 ? x.y : x.w);
}

/* Where a pair's quants begin. */
static __device__ __forceinline__ const unsigned char *
pair_quants(const struct dev_matrix &m, uint32_t bytes, uint32_t strip, uint32_t pair)
{
    return (const unsigned char *)m.quants + (size_t)strip * (m.units / 2 * bytes) + pair * bytes;
}

/* ---- Q4_0 ---- */

template <> struct unit_of<WEIGHT_Q4_0> {
    static const int SPAN = 2, DEPTH = 4;
    static constexpr float FACTOR = SUBNORMAL;
    static const uint32_t BYTES = PAIR_NIBBLES;
    struct place {
        const unsigned char *quants, *scales;
    };
    uint4 q;
    uint2 d; /* of either unit: of rows g and g+8 */
    static __device__ __forceinline__ place
    place_of(const struct dev_matrix &m, uint32_t strip, uint32_t unit, uint32_t lane)
    {
        return {settled(pair_quants(m, BYTES, strip, unit) + lane * 16),
                settled((const unsigned char *)m.scales + (size_t)strip * (m.units / 2 * PAIR_SCALES) +
                        (unit * PAIR_SCALES + lane / 4 * 8))};
    }
    __device__ __forceinline__ void
    load(const place &at, uint32_t i, bool take)
    {
        load_weights(&q, at.quants + i * BYTES, take);
        load_weights(&d, at.scales + i * PAIR_SCALES, take);
    }
    __device__ __forceinline__ void
    add(const uint4 (&x)[SPAN], float (&sum)[4]) const
    {
#pragma unroll
        for (int u = 0; u < 2; u++) {
            const float2 scale = unpack_halves(u == 0 ? d.x : d.y);
            const uint32_t minus_8 = u == 0 ? 0x80088008u : 0x80808080u;
            float part[4] = {};
#pragma unroll
            for (int s = 0; s < 2; s++) {
                uint32_t a[4];
                low_bits(q, u, s, a);
                add_constant(minus_8, minus_8, x[u], s, part);
                mma_f16(part, a, s == 0 ? x[u].x : x[u].z, s == 0 ? x[u].y : x[u].w);
            }
            add_scaled(sum, scale.x * unit_factor(u), scale.y * unit_factor(u), part);
        }
    }
};

/* ---- blocks of 256 columns ---- */

/* Where a lane finds the scales of a pair, and of the blocks. */
struct super_place {
    const unsigned char *scales, *blocks; /* from `pair` on; of the strip, from its first */
    uint32_t pair;
};

static __device__ __forceinline__ struct super_place
super_place_of(const struct dev_matrix &m, enum weight_type type, uint32_t strip, uint32_t pair, uint32_t lane)
{
    const unsigned char *of_strip =
        (const unsigned char *)m.scales + (size_t)strip * (uint32_t)strip_scales(type, m.units);
    return {settled(of_strip + (pair * PAIR_SCALES + lane / 4 * 8)),
            settled(of_strip + (m.units / 2 * PAIR_SCALES + lane / 4 * 4 * super_scales(type))), pair};
}

/* Of the block that the i-th pair from there is in. */
static __device__ __forceinline__ const unsigned char *
block_scales(const struct super_place &at, enum weight_type type, uint32_t i)
{
    return at.blocks + (at.pair + i) / (SUPER / PAIR) * (STRIP * 2 * super_scales(type));
}

/* ---- Q4_K ---- */

template <> struct unit_of<WEIGHT_Q4_K> {
    static const int SPAN = 2, DEPTH = 4;
    static constexpr float FACTOR = SUBNORMAL;
    static const uint32_t BYTES = PAIR_NIBBLES;
    struct place {
        const unsigned char *quants;
        struct super_place super;
    };
    uint4 q;
    uint2 scales; /* of row g, of row g+8: the scales of both units, then the minima */
    uint2 d;      /* of row g, of row g+8: d and dmin */
    static __device__ __forceinline__ place
    place_of(const struct dev_matrix &m, uint32_t strip, uint32_t unit, uint32_t lane)
    {
        return {settled(pair_quants(m, BYTES, strip, unit) + lane * 16),
                super_place_of(m, WEIGHT_Q4_K, strip, unit, lane)};
    }
    __device__ __forceinline__ void
    load(const place &at, uint32_t i, bool take)
    {
        load_weights(&q, at.quants + i * BYTES, take);
        load_weights(&scales, at.super.scales + i * PAIR_SCALES, take);
        load_weights(&d, block_scales(at.super, WEIGHT_Q4_K, i), take);
    }
    __device__ __forceinline__ void
    add(const uint4 (&x)[SPAN], float (&sum)[4]) const
    {
        const float2 g = unpack_halves(d.x), g8 = unpack_halves(d.y);
        float least[4] = {}; /* the minima times sums of activations */
#pragma unroll
        for (int u = 0; u < 2; u++) {
            const uint32_t both = u == 0 ? 0x4242u : 0x4343u; /* a minimum in both halves */
            const uint32_t min = __byte_perm(scales.x, 0, both), min8 = __byte_perm(scales.y, 0, both);
            float part[4] = {};
#pragma unroll
            for (int s = 0; s < 2; s++) {
                uint32_t a[4];
                low_bits(q, u, s, a);
                mma_f16(part, a, s == 0 ? x[u].x : x[u].z, s == 0 ? x[u].y : x[u].w);
                add_constant(min, min8, x[u], s, least);
            }
            add_scaled(sum, g.x * unit_factor(u) * (float)(int8_t)(scales.x >> 8 * u),
                       g8.x * unit_factor(u) * (float)(int8_t)(scales.y >> 8 * u), part);
        }
        add_scaled(sum, -g.y, -g8.y, least);
    }
};

/* ---- Q6_K ---- */

template <> struct unit_of<WEIGHT_Q6_K> {
    static const int SPAN = 2, DEPTH = 4;
    static constexpr float FACTOR = SUBNORMAL;
    static const uint32_t BYTES = PAIR_NIBBLES + PAIR_HIGHS;
    struct place {
        const unsigned char *quants, *highs;
        struct super_place super;
    };
    uint4 q;
    uint2 high;
    uint2 scales; /* of row g, of row g+8: of steps 0 to 3 */
    uint32_t d;   /* of row g and of row g+8 */
    static __device__ __forceinline__ place
    place_of(const struct dev_matrix &m, uint32_t strip, uint32_t unit, uint32_t lane)
    {
        const unsigned char *pair = pair_quants(m, BYTES, strip, unit);
        return {settled(pair + lane * 16), settled(pair + (PAIR_NIBBLES + lane * 8)),
                super_place_of(m, WEIGHT_Q6_K, strip, unit, lane)};
    }
    __device__ __forceinline__ void
    load(const place &at, uint32_t i, bool take)
    {
        load_weights(&q, at.quants + i * BYTES, take);
        load_weights(&high, at.highs + i * BYTES, take);
        load_weights(&scales, at.super.scales + i * PAIR_SCALES, take);
        load_weights(&d, block_scales(at.super, WEIGHT_Q6_K, i), take);
    }
    /* The q of step s of a unit: bits 4 and 5 of the first unit's halves, or 8 and 9 of the second's, come from `high`. */
    __device__ __forceinline__ void
    six_bits(int unit, int s, uint32_t (&a)[4]) const
    {
        const uint32_t mask = unit == 0 ? 0x00300030u : 0x03000300u, h = s == 0 ? high.x : high.y;
        low_bits(q, unit, s, a);
        a[0] |= h << 4 & mask;
        a[1] |= h << 2 & mask;
        a[2] |= h >> 4 & mask;
        a[3] |= h >> 6 & mask;
    }
    __device__ __forceinline__ void
    add(const uint4 (&x)[SPAN], float (&sum)[4]) const
    {
        const float2 both = unpack_halves(d);
#pragma unroll
        for (int step = 0; step < 4; step++) {
            const int u = step / 2, s = step % 2;
            const uint32_t minus_32 = u == 0 ? 0x80208020u : 0x82008200u;
            uint32_t a[4];
            float part[4] = {};
            six_bits(u, s, a);
            add_constant(minus_32, minus_32, x[u], s, part);
            mma_f16(part, a, s == 0 ? x[u].x : x[u].z, s == 0 ? x[u].y : x[u].w);
            add_scaled(sum, both.x * unit_factor(u) * (float)(int8_t)(scales.x >> 8 * step),
                       both.y * unit_factor(u) * (float)(int8_t)(scales.y >> 8 * step), part);
        }
    }
};

#endif
