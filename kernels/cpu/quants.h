/* Quants and scales of interleaved weights (repack.h) in registers, for any vector of 32-bit lanes. The instruction set
 * must have defined
 *   vec, LANES, V_REGISTER, v_load_f16      as for simd.h; V_REGISTER is the constraint of a vector register in assembly
 *   ints, codes                             vectors of LANES int32 and uint32; C's operators apply to all vectors
 *   v_bytes(p)                              LANES unsigned bytes, widened
 *   v_table(codes, table)                   table[c], 16 bytes, for every byte c < 16
 *   v_gather(words, codes)                  words[c] for every lane
 *   Q8_FLIP                                 0x80 if whole bytes are stored plus 128, else 0
 * A group's outputs are in 16 / LANES parts. */
#pragma once

#include "kernels/codebooks.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/repack.h"

/* Operations of vectors that C's operators express. (The compiler never turns a product and a sum into v_fma:
 * -ffp-contract=off.) */

SIMD_INLINE vec
v_zero(void)
{
    return (vec){0};
}

SIMD_INLINE vec
v_set1(float x)
{
    return x - v_zero();
}

typedef float unaligned_vec __attribute__((vector_size(sizeof(vec)), aligned(sizeof(float)), may_alias));

SIMD_INLINE vec
v_load(const float *p)
{
    return (vec) * (const unaligned_vec *)(const void *)p;
}

SIMD_INLINE void
v_store(float *p, vec v)
{
    *(unaligned_vec *)(void *)p = (unaligned_vec)v;
}

/* Forces a into a register: an operand in memory would be loaded again by each instruction that uses it. */
SIMD_INLINE vec
v_keep(vec a)
{
    __asm__("" : "+" V_REGISTER(a));
    return a;
}

#define V_OPERATOR(name, operator)                                                                                     \
    SIMD_INLINE vec v_##name(vec a, vec b)                                                                             \
    {                                                                                                                  \
        return a operator b;                                                                                           \
    }
V_OPERATOR(add, +)
V_OPERATOR(sub, -)
V_OPERATOR(mul, *)
V_OPERATOR(div, /)
#undef V_OPERATOR

SIMD_INLINE vec
v_real(ints n)
{
    return __builtin_convertvector(n, vec);
}

SIMD_INLINE codes
load_codes(const unsigned char *p)
{
    codes c;
    memcpy(&c, p, sizeof c);
    return c;
}

/* Weights are read once, in order, one group after the other. Hardware prefetching of several such streams at once
 * leaves the memory idle half of the time, so each block prefetches data that is needed a little later. For four rows
 * of Q8_0 into the second-level cache, because their own loads wait for the first-level cache's few line buffers (1.21
 * times the time of one row, else 1.42; with eight rows it is reversed, 1.47 and 1.37). */
#define AHEAD 1024 /* bytes */

SIMD_INLINE void
fetch_ahead(const enum weight_type type, const unsigned char *q, const size_t rows)
{
    UNROLL for (size_t p = 0; p < quant_bytes(type); p += PLANE)
    {
        const void *later = (const void *)((uintptr_t)q + AHEAD + p); /* a hint past the end is harmless */
        if (type == WEIGHT_Q8_0 && rows == 4)
            __builtin_prefetch(later, 0, 2);
        else
            __builtin_prefetch(later);
    }
}

#define FROM_ZERO(value) (value) + 16,
static const uint8_t mxfp4_quants[16] = {MXFP4_VALUES(FROM_ZERO)};
#undef FROM_ZERO
#define FLIPPED(value) (uint8_t)((value) ^ Q8_FLIP),
static const uint8_t iq4_quants[16] = {IQ4_VALUES(FLIPPED)};
#undef FLIPPED

#define EACH_BYTE 0x01010101u

/* Returns step j of a block of 32 with a grid: the grid row's values, with signs applied. q: the block's first
 * plane. */
SIMD_INLINE codes
grid_at(const enum weight_type type, const uint32_t *grid, const unsigned char *q, const size_t part, const unsigned j)
{
    const unsigned words = grid_words(type), n = j / words, planes = row_planes(type), top_bits = row_top_bits(type);
    const unsigned char *lanes = q + part * sizeof(ints), *signs = lanes + planes * PLANE;
    const unsigned char *tops = q + (planes + has_grid_signs(type)) * PLANE + part * LANES;
    codes row = load_codes(lanes + n / 4 * PLANE) >> n % 4 * 8 & 255u, lower = row;
    if (top_bits > 0) {
        const codes top = (codes)v_bytes(tops + n * top_bits / 8 * Q8_GROUP) >> n * top_bits % 8;
        row |= (top & (top_bits == 4 ? 7u : (1u << top_bits) - 1)) << 8;
        lower = 0u - (top >> 3 & 1u);
    }
    const codes values = v_gather(grid, row * words + j % words);
    if (!has_grid_signs(type))
        return values - (lower & 2u * EACH_BYTE);
    codes minus = load_codes(signs) >> 4 * j & 15u;
    minus = (minus | minus << 7 | minus << 14 | minus << 21) & EACH_BYTE;
    return ((values ^ minus * 255u) + minus) ^ Q8_FLIP * EACH_BYTE;
}

/* Returns step j of a block of 32. q: the block's first plane; grid: grid_of() the matrix's type. */
SIMD_INLINE codes
quants_at(const enum weight_type type, const uint32_t *grid, const unsigned char *q, const size_t part,
          const unsigned j)
{
    const unsigned low = low_bits(type), high = high_bits(type);
    if (has_grid(type))
        return grid_at(type, grid, q, part, j);
    q += part * sizeof(ints);
    const codes first = load_codes(q + j * low / 8 * PLANE);
    if (low == 8)
        return first;
    const uint32_t low_mask = 0x01010101u * ((1u << low) - 1), high_mask = 0x01010101u * (((1u << high) - 1) << low);
    const codes below = (first >> j * low % 8) & low_mask;
    if (type == WEIGHT_MXFP4)
        return v_table(below, mxfp4_quants);
    if (type == WEIGHT_IQ4_NL || type == WEIGHT_IQ4_XS)
        return v_table(below, iq4_quants);
    if (high == 0)
        return below;
    const codes second = load_codes(q + (low + j * high / 8) * PLANE);
    const unsigned from = j * high % 8;
    return below | ((from > low ? second >> (from - low) : second << (low - from)) & high_mask);
}

/* e8m0_half() of each lane. */
SIMD_INLINE vec
scale_of_exponent(ints e)
{
    const ints tiny = e < 2;
    return (vec)((tiny & ((e & 1) + 1) << 21) | (~tiny & (e - 1) << 23));
}

/* Returns the scales of a group's block i in a block of the file. least: minima, negated if they are subtracted. `half`
 * counts sixteens of inputs if each has its own scale. s: the scales, at this part of the group. */
struct scaling {
    vec each, least;
};

SIMD_INLINE struct scaling
scaling_at(const enum weight_type type, const unsigned char *s, const size_t part, const size_t i, const size_t half)
{
    if (type == WEIGHT_MXFP4)
        return (struct scaling){scale_of_exponent(v_bytes(s + part * LANES)), v_zero()};
    const unsigned char *d = s + part * LANES * 2, *bytes = s + (has_minima(type) ? 4 : 2) * Q8_GROUP + part * LANES;
    struct scaling scaling = {v_load_f16((const uint16_t *)(const void *)d), v_zero()};
    if (has_minima(type))
        scaling.least = v_load_f16((const uint16_t *)(const void *)(d + 2 * Q8_GROUP));
    if (blocks_per_scale(type) == 1 || type >= WEIGHT_TQ1_0)
        return scaling;
    if (has_grid(type) || type == WEIGHT_IQ4_XS) {
        ints code = v_bytes(bytes + i * Q8_GROUP);
        if (scaled_inputs(type) == 16)
            code = (code >> 4 * (int)half & 15) * 2 + 1;
        else if (type == WEIGHT_IQ4_XS)
            code = (code ^ 128) - 128;
        scaling.each = v_mul(scaling.each, v_real(code));
        if (has_grid(type))
            scaling.each = v_mul(scaling.each, v_set1(grid_unit(type)));
        return scaling;
    }
    if (type == WEIGHT_Q4_K || type == WEIGHT_Q5_K) {
        scaling.each = v_mul(scaling.each, v_real(v_bytes(bytes + 2 * i * Q8_GROUP)));
        scaling.least = v_mul(scaling.least, v_real(-v_bytes(bytes + (2 * i + 1) * Q8_GROUP)));
        return scaling;
    }
    const ints byte = v_bytes(bytes + (2 * i + half) * Q8_GROUP);
    if (type == WEIGHT_Q2_K) {
        scaling.each = v_mul(scaling.each, v_real(byte & 15));
        scaling.least = v_mul(scaling.least, v_real(-(byte >> 4)));
    } else {
        scaling.each = v_mul(scaling.each, v_real((byte ^ 128) - 128));
    }
    return scaling;
}
