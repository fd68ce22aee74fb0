/* Units of weights (layout.h): a lane's part of a unit is loaded from memory and multiplied with a tile of activations.
 *
 * Every type has the same interface. place_of() returns where unit number `unit` of a strip is for a lane. load()
 * starts the loads of the i-th unit from there, or has no effect. add() adds the unit's products to `sum` (16, 8); x is
 * the lane's 16 bytes of activations of each of the SPAN units of 32 columns that the unit covers. If a block of
 * weights has a scale, its products are summed from zero and scaled before they are added. */
#pragma once

#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/device/ptx.cuh"

/* SPAN: units of activations covered by one unit of weights. DEPTH: how many of them a warp loads at once. FACTOR:
 * final factor of a strip's sums. */
template <enum weight_type T> struct unit_of;

template <> struct unit_of<WEIGHT_F16> {
    static const int SPAN = 1, DEPTH = 4;
    static constexpr float FACTOR = 1;
    static const uint32_t BYTES = STRIP * UNIT * 2;
    struct place {
        const unsigned char *quants;
    };
    uint4 q[2];
    static __device__ __forceinline__ place
    place_of(const struct dev_matrix &m, uint32_t strip, uint32_t unit, uint32_t lane)
    {
        return {opaque((const unsigned char *)m.quants + ((size_t)strip * m.units + unit) * BYTES + lane * 16)};
    }
    __device__ __forceinline__ void
    load(const place &at, uint32_t i, bool take)
    {
        load_weights(&q[0], at.quants + i * BYTES, take);
        load_weights(&q[1], at.quants + i * BYTES + WARP * 16, take);
    }
    __device__ __forceinline__ void
    add(const uint4 (&x)[SPAN], float (&sum)[4]) const
    {
#pragma unroll
        for (int s = 0; s < 2; s++) {
            const uint32_t a[4] = {q[s].x, q[s].y, q[s].z, q[s].w};
            mma_f16(sum, a, s == 0 ? x[0].x : x[0].z, s == 0 ? x[0].y : x[0].w);
        }
    }
};

template <> struct unit_of<WEIGHT_BF16> : unit_of<WEIGHT_F16> {
    /* Splits a half into the sum of two BF16 numbers: the first contains its leading 8 bits, the second the other 3. */
    static __device__ __forceinline__ void
    split(uint32_t halves, uint32_t *first, uint32_t *second)
    {
        const float2 x = unpack_halves(halves);
        *first = pack_bf16s(x.x, x.y);
        const float2 y = unpack_bf16s(*first);
        *second = pack_bf16s(x.x - y.x, x.y - y.y);
    }
    __device__ __forceinline__ void
    add(const uint4 (&x)[SPAN], float (&sum)[4]) const
    {
#pragma unroll
        for (int s = 0; s < 2; s++) {
            const uint32_t a[4] = {q[s].x, q[s].y, q[s].z, q[s].w};
            uint32_t first[2], second[2];
            split(s == 0 ? x[0].x : x[0].z, &first[0], &second[0]);
            split(s == 0 ? x[0].y : x[0].w, &first[1], &second[1]);
            mma_bf16(sum, a, first[0], first[1]);
            mma_bf16(sum, a, second[0], second[1]);
        }
    }
};

/* Adds the products of a block, times the scales of rows g and g+8, to sum. */
static __device__ __forceinline__ void
add_scaled(float (&sum)[4], float g, float g8, const float (&part)[4])
{
    sum[0] = fmaf(g, part[0], sum[0]);
    sum[1] = fmaf(g, part[1], sum[1]);
    sum[2] = fmaf(g8, part[2], sum[2]);
    sum[3] = fmaf(g8, part[3], sum[3]);
}

template <> struct unit_of<WEIGHT_Q8_0> {
    static const int SPAN = 1, DEPTH = 8;
    static constexpr float FACTOR = 1;
    static const uint32_t BYTES = STRIP * UNIT, SCALE_BYTES = STRIP * 2;
    struct place {
        const unsigned char *quants, *scales;
    };
    uint4 q;
    uint32_t d;
    static __device__ __forceinline__ place
    place_of(const struct dev_matrix &m, uint32_t strip, uint32_t unit, uint32_t lane)
    {
        const size_t at = (size_t)strip * m.units + unit;
        return {opaque((const unsigned char *)m.quants + at * BYTES + lane * 16),
                opaque((const unsigned char *)m.scales + at * SCALE_BYTES + lane / 4 * 4)};
    }
    __device__ __forceinline__ void
    load(const place &at, uint32_t i, bool take)
    {
        load_weights(&q, at.quants + i * BYTES, take);
        load_weights(&d, at.scales + i * SCALE_BYTES, take);
    }
    __device__ __forceinline__ void
    add(const uint4 (&x)[SPAN], float (&sum)[4]) const
    {
        float part[4] = {};
        const float2 scale = unpack_halves(d);
#pragma unroll
        for (int s = 0; s < 2; s++) {
            uint32_t a[4];
            dequant_bytes(s == 0 ? q.x : q.z, &a[0], &a[1]);
            dequant_bytes(s == 0 ? q.y : q.w, &a[2], &a[3]);
            mma_f16(part, a, s == 0 ? x[0].x : x[0].z, s == 0 ? x[0].y : x[0].w);
        }
        add_scaled(sum, scale.x, scale.y, part);
    }
};

/* Units of Q4_0, Q4_K and Q6_K: pairs of 32 columns (layout.h), with the interface above.
 *
 * The tensor cores read subnormal halves exactly, and a half whose exponent is zero equals its mantissa times 2^-24. So
 * after masking, q is a number without a conversion. The first unit's q begins at bit 0 of a half. The second unit's
 * begins at bit 4, which multiplies it by 16; a q of six bits then ends at bit 9, the last bit of the mantissa.
 * The second unit's scales are divided by 16, and FACTOR removes the 2^-24 from a strip's sums at the end. A term that
 * is the same for all columns of a row (8 or 32 below zero, or a minimum) is a matrix with equal columns. So a matrix
 * instruction computes the sums of activations; it is the only part of this method that is repeated for every tile of
 * rows. */

#define SUBNORMAL 16777216.0f /* 2^24 */

/* Returns the factor of a unit's scale. */
static __device__ __forceinline__ float
unit_factor(int unit)
{
    return unit == 0 ? 1.0f : 1.0f / 16;
}

/* Extracts the low four bits of step s of a unit. */
static __device__ __forceinline__ void
dequant_nibbles(const uint4 &q, int unit, int s, uint32_t (&a)[4])
{
    const uint32_t mask = unit == 0 ? 0x000f000fu : 0x00f000f0u, w0 = s == 0 ? q.x : q.z, w1 = s == 0 ? q.y : q.w;
    a[0] = w0 & mask;
    a[1] = w0 >> 8 & mask;
    a[2] = w1 & mask;
    a[3] = w1 >> 8 & mask;
}

/* Adds a matrix of one number, in halves, times the activations of step s to part. */
static __device__ __forceinline__ void
add_constant(uint32_t g, uint32_t g8, const uint4 &x, int s, float (&part)[4])
{
    const uint32_t a[4] = {g, g8, g, g8};
    mma_f16(part, a, s == 0 ? x.x : x.z, s == 0 ? x.y : x.w);
}

/* Members that the types of pairs share: a lane's part, and its address. */
template <enum weight_type T> struct pair_unit {
    static const int SPAN = 2, DEPTH = 4;
    static constexpr float FACTOR = SUBNORMAL;
    static const bool HIGHS = T == WEIGHT_Q6_K, SUPERS = T != WEIGHT_Q4_0;
    static const uint32_t BYTES = PAIR_NIBBLES + (HIGHS ? PAIR_HIGHS : 0);
    struct place {
        const unsigned char *quants, *highs;
        const unsigned char *scales, *blocks; /* from pair number `pair` on; of the strip, from its first block */
        uint32_t pair;
    };
    uint4 q;
    uint2 high;   /* Q6_K */
    uint2 scales; /* of row g and of row g+8; Q4_0: of both units, each for both rows */
    uint2 d;      /* of the block of SUPER columns: super_scales() for each row */
    static __device__ __forceinline__ place
    place_of(const struct dev_matrix &m, uint32_t strip, uint32_t unit, uint32_t lane)
    {
        const unsigned char *pair =
            (const unsigned char *)m.quants + (size_t)strip * (m.units / 2 * BYTES) + unit * BYTES;
        const unsigned char *scales =
            (const unsigned char *)m.scales + (size_t)strip * (uint32_t)strip_scales(T, m.units);
        const unsigned char *blocks = scales + (m.units / 2 * PAIR_SCALES + lane / 4 * 4 * super_scales(T));
        return {opaque(pair + lane * 16), HIGHS ? opaque(pair + (PAIR_NIBBLES + lane * 8)) : NULL,
                opaque(scales + (unit * PAIR_SCALES + lane / 4 * 8)), SUPERS ? opaque(blocks) : NULL, unit};
    }
    __device__ __forceinline__ void
    load(const place &at, uint32_t i, bool take)
    {
        const unsigned char *const block = at.blocks + (at.pair + i) / (SUPER / PAIR) * (STRIP * 2 * super_scales(T));
        load_weights(&q, at.quants + i * BYTES, take);
        if (HIGHS)
            load_weights(&high, at.highs + i * BYTES, take);
        load_weights(&scales, at.scales + i * PAIR_SCALES, take);
        if (T == WEIGHT_Q4_K)
            load_weights(&d, block, take);
        if (T == WEIGHT_Q6_K)
            load_weights(&d.x, block, take);
    }
};

template <> struct unit_of<WEIGHT_Q4_0> : pair_unit<WEIGHT_Q4_0> {
    __device__ __forceinline__ void
    add(const uint4 (&x)[SPAN], float (&sum)[4]) const
    {
#pragma unroll
        for (int u = 0; u < 2; u++) {
            const float2 scale = unpack_halves(u == 0 ? scales.x : scales.y);
            const uint32_t minus_8 = u == 0 ? 0x80088008u : 0x80808080u;
            float part[4] = {};
#pragma unroll
            for (int s = 0; s < 2; s++) {
                uint32_t a[4];
                dequant_nibbles(q, u, s, a);
                add_constant(minus_8, minus_8, x[u], s, part);
                mma_f16(part, a, s == 0 ? x[u].x : x[u].z, s == 0 ? x[u].y : x[u].w);
            }
            add_scaled(sum, scale.x * unit_factor(u), scale.y * unit_factor(u), part);
        }
    }
};

/* Scales: those of both units, then the minima; d and dmin. */
template <> struct unit_of<WEIGHT_Q4_K> : pair_unit<WEIGHT_Q4_K> {
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
                dequant_nibbles(q, u, s, a);
                mma_f16(part, a, s == 0 ? x[u].x : x[u].z, s == 0 ? x[u].y : x[u].w);
                add_constant(min, min8, x[u], s, least);
            }
            add_scaled(sum, g.x * unit_factor(u) * (float)(int8_t)(scales.x >> 8 * u),
                       g8.x * unit_factor(u) * (float)(int8_t)(scales.y >> 8 * u), part);
        }
        add_scaled(sum, -g.y, -g8.y, least);
    }
};

/* Scales: those of steps 0 to 3; d of row g and of row g+8. */
template <> struct unit_of<WEIGHT_Q6_K> : pair_unit<WEIGHT_Q6_K> {
    /* Computes q of step s of a unit: bits 4 and 5 of the first unit's halves, or 8 and 9 of the second's, come from
     * `high`. */
    __device__ __forceinline__ void
    dequant_six_bits(int unit, int s, uint32_t (&a)[4]) const
    {
        const uint32_t mask = unit == 0 ? 0x00300030u : 0x03000300u, h = s == 0 ? high.x : high.y;
        dequant_nibbles(q, unit, s, a);
        a[0] |= h << 4 & mask;
        a[1] |= h << 2 & mask;
        a[2] |= h >> 4 & mask;
        a[3] |= h >> 6 & mask;
    }
    __device__ __forceinline__ void
    add(const uint4 (&x)[SPAN], float (&sum)[4]) const
    {
        const float2 both = unpack_halves(d.x);
#pragma unroll
        for (int step = 0; step < 4; step++) {
            const int u = step / 2, s = step % 2;
            const uint32_t minus_32 = u == 0 ? 0x80208020u : 0x82008200u;
            uint32_t a[4];
            float part[4] = {};
            dequant_six_bits(u, s, a);
            add_constant(minus_32, minus_32, x[u], s, part);
            mma_f16(part, a, s == 0 ? x[u].x : x[u].z, s == 0 ? x[u].y : x[u].w);
            add_scaled(sum, both.x * unit_factor(u) * (float)(int8_t)(scales.x >> 8 * step),
                       both.y * unit_factor(u) * (float)(int8_t)(scales.y >> 8 * step), part);
        }
    }
};

/* ---- single elements of packed weights ---- */

/* Returns an element of a matrix that is packed by pairs of units (layout.h). */
static __device__ __forceinline__ float
pair_element(const struct dev_matrix &m, uint32_t row, uint32_t k)
{
    const uint32_t r = row % STRIP, second = r / 8, unit = k % PAIR / UNIT, within = k % UNIT, pairs = m.units / 2;
    const size_t strip = row / STRIP, pair = k / PAIR;
    const uint8_t *quants = (const uint8_t *)m.quants + strip * strip_quants(m.type, m.units),
                  *scales = (const uint8_t *)m.scales + strip * strip_scales(m.type, m.units);
    const uint16_t *d = (const uint16_t *)(scales + pairs * PAIR_SCALES) +
                        (k / SUPER * STRIP + r % 8 * 2 + second) * super_scales(m.type);
    const uint8_t *at = quants + pair * (strip_quants(m.type, m.units) / pairs);
    const int low = at[nibble_place(r, within)] >> (4 * unit) & 15;
    scales += pair * PAIR_SCALES + r % 8 * 8;
    if (m.type == WEIGHT_Q4_0)
        return half_value(((const uint16_t *)scales)[unit * 2 + second]) * (float)(low - 8);
    scales += second * 4;
    if (m.type == WEIGHT_Q4_K)
        return fmaf(half_value(d[0]) * (float)scales[unit], (float)low, -(half_value(d[1]) * (float)scales[2 + unit]));
    const int high = at[PAIR_NIBBLES + high_place(r, within)] >> (4 * unit + 2 * second) & 3;
    return half_value(d[0]) * (float)(int8_t)scales[k % PAIR / 16] * (float)((low | high << 4) - 32);
}

/* Returns element (row, k) of a matrix; `row` is a packed row. */
static __device__ __forceinline__ float
element(const struct dev_matrix &m, uint32_t row, uint32_t k)
{
    const uint32_t r = row % STRIP, within = k % UNIT;
    const size_t unit = (size_t)(row / STRIP) * m.units + k / UNIT, place = unit * (STRIP * UNIT);
    switch (m.type) {
    case WEIGHT_F32: return ((const float *)m.quants)[(size_t)row * m.cols + k];
    case WEIGHT_Q4_0:
    case WEIGHT_Q4_K:
    case WEIGHT_Q6_K: return pair_element(m, row, k);
    case WEIGHT_BF16: return unpack_bf16s(((const uint16_t *)m.quants)[place + unit_place_16(r, within)]).x;
    case WEIGHT_Q8_0:
        return (float)((const int8_t *)m.quants)[place + unit_place(r, within)] *
               half_value(((const uint16_t *)m.scales)[unit * STRIP + r % 8 * 2 + r / 8]);
    default: return half_value(((const uint16_t *)m.quants)[place + unit_place_16(r, within)]);
    }
}
