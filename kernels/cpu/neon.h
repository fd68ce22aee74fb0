/* NEON primitives for cpu/simd.h, shared by the instruction sets with and without the dot product instruction. */
#pragma once

#include <arm_neon.h>

#include "kernels/cpu/isa.h"

#define V_REGISTER   "w"
#define LANES        ((size_t)4)
#define TILE_OUTS    ((size_t)4)
#define PANEL_OUTS   ((size_t)8)
#define ATTEND_HEADS ((size_t)4)

typedef float32x4_t vec;
typedef int32_t ints __attribute__((vector_size(16)));
typedef uint32_t codes __attribute__((vector_size(sizeof(ints)))); /* four quants in each 32-bit lane */

#define v_max   vmaxq_f32
#define v_abs   vabsq_f32
#define v_round vrndnq_f32
#define v_sum   vaddvq_f32
#define v_most  vmaxvq_f32

SIMD_INLINE vec
v_fma(vec a, vec b, vec c)
{
    return vfmaq_f32(c, a, b);
}

SIMD_INLINE vec
v_exp2i(vec n)
{
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23));
}

SIMD_INLINE void
v_sum4(float *p, vec a, vec b, vec c, vec d)
{
    vst1q_f32(p, vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d)));
}

SIMD_INLINE unsigned
v_above(vec a, vec b)
{
    static const uint32_t bit[4] = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(vcgtq_f32(a, b), vld1q_u32(bit)));
}

SIMD_INLINE vec
v_load_f16(const uint16_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}

SIMD_INLINE vec
v_load_bf16(const uint16_t *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}

SIMD_INLINE void
v_store_f16(uint16_t *p, vec a)
{
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(a)));
}

SIMD_INLINE void
v_store_i8(int8_t *p, vec a)
{
    int16x4_t half = vqmovn_s32(vcvtnq_s32_f32(a));
    int8x8_t bytes = vqmovn_s16(vcombine_s16(half, half));
    int32_t four = vget_lane_s32(vreinterpret_s32_s8(bytes), 0);
    __builtin_memcpy(p, &four, sizeof four);
}

SIMD_INLINE ints
v_bytes(const unsigned char *p)
{
    const ints n = {p[0], p[1], p[2], p[3]};
    return n;
}

SIMD_INLINE codes
v_table(codes c, const uint8_t table[16])
{
    return (codes)vqtbl1q_u8(vld1q_u8(table), (uint8x16_t)c);
}

SIMD_INLINE codes
v_gather(const uint32_t *words, codes at)
{
    const codes w = {words[at[0]], words[at[1]], words[at[2]], words[at[3]]};
    return w;
}

#define Q8_FLIP 0
#include "kernels/cpu/quants.h"

SIMD_INLINE int32x4_t four_dots(int32x4_t dot, int8x16_t w,
                                int8x16_t x); /* defined by the includer: adds four products per lane */

SIMD_INLINE int8x16_t
four(const int8_t *x)
{
    int32_t n;
    __builtin_memcpy(&n, x, sizeof n);
    return vreinterpretq_s8_s32(vdupq_n_s32(n));
}

SIMD_INLINE ints
v_dot2(ints dot, codes w0, codes w1, const int8_t *x)
{
    const int32x4_t first = four_dots((int32x4_t)dot, (int8x16_t)w0, four(x));
    return (ints)four_dots(first, (int8x16_t)w1, four(x + 4));
}

#define v_dot2_q8 v_dot2 /* signed times signed */
