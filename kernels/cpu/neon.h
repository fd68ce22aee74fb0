/* NEON primitives for cpu/simd.h, shared by the tables with and without the dot product instruction. */
#ifndef KERNELS_CPU_NEON_H
#define KERNELS_CPU_NEON_H

#include <arm_neon.h>

#include "kernels/cpu/isa.h"

#define LANES     ((size_t)4)
#define TILE_OUTS ((size_t)4)
#define TILE_ROWS ((size_t)4)

typedef float32x4_t vec;

SIMD_INLINE vec
v_zero(void)
{
    return vdupq_n_f32(0);
}

SIMD_INLINE vec
v_set1(float x)
{
    return vdupq_n_f32(x);
}

SIMD_INLINE vec
v_load(const float *p)
{
    return vld1q_f32(p);
}

SIMD_INLINE void
v_store(float *p, vec v)
{
    vst1q_f32(p, v);
}

SIMD_INLINE vec
v_add(vec a, vec b)
{
    return vaddq_f32(a, b);
}

SIMD_INLINE vec
v_sub(vec a, vec b)
{
    return vsubq_f32(a, b);
}

SIMD_INLINE vec
v_mul(vec a, vec b)
{
    return vmulq_f32(a, b);
}

SIMD_INLINE vec
v_div(vec a, vec b)
{
    return vdivq_f32(a, b);
}

SIMD_INLINE vec
v_max(vec a, vec b)
{
    return vmaxq_f32(a, b);
}

SIMD_INLINE vec
v_fma(vec a, vec b, vec c)
{
    return vfmaq_f32(c, a, b);
}

SIMD_INLINE vec
v_abs(vec a)
{
    return vabsq_f32(a);
}

SIMD_INLINE vec
v_round(vec a)
{
    return vrndnq_f32(a);
}

SIMD_INLINE vec
v_exp2i(vec n)
{
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23));
}

SIMD_INLINE float
v_sum(vec a)
{
    return vaddvq_f32(a);
}

SIMD_INLINE void
v_sum4(float *p, vec a, vec b, vec c, vec d)
{
    vst1q_f32(p, vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d)));
}

SIMD_INLINE float
v_most(vec a)
{
    return vmaxvq_f32(a);
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

/* dot + the four products of every lane; q8_tile for both tables, built on the includer's q8_dot. */
#define DEFINE_Q8_TILE                                                                                                 \
    SIMD_INLINE void q8_tile(const struct matrix *w, size_t group, const size_t groups, const struct acts *x,          \
                             size_t row, const size_t rows, float *y, size_t ld)                                       \
    {                                                                                                                  \
        size_t blocks = w->cols / Q8_BLOCK;                                                                            \
        for (size_t g = 0; g < groups; g++) {                                                                          \
            vec sum[4 * Q8_TILE];                                                                                      \
            UNROLL for (size_t i = 0; i < 4 * rows; i++) sum[i] = v_zero();                                            \
            for (size_t b = 0; b < blocks; b++) {                                                                      \
                size_t at = (group + g) * blocks + b;                                                                  \
                const int8_t *xq = x->q + row * w->cols + b * Q8_BLOCK;                                                \
                int32x4_t dot[4 * Q8_TILE];                                                                            \
                UNROLL for (size_t i = 0; i < 4 * rows; i++) dot[i] = vdupq_n_s32(0);                                  \
                UNROLL for (size_t k = 0; k < Q8_BLOCK / 4; k++) UNROLL for (size_t r = 0; r < rows; r++)              \
                {                                                                                                      \
                    int32_t four;                                                                                      \
                    __builtin_memcpy(&four, xq + r * w->cols + 4 * k, sizeof four);                                    \
                    int8x16_t x4 = vreinterpretq_s8_s32(vdupq_n_s32(four));                                            \
                    const uint8_t *wq = w->q + (at * Q8_BLOCK + 4 * k) * Q8_GROUP;                                     \
                    UNROLL for (size_t i = 0; i < 4; i++) dot[4 * r + i] =                                             \
                        q8_dot(dot[4 * r + i], vreinterpretq_s8_u8(vld1q_u8(wq + 16 * i)), x4);                        \
                }                                                                                                      \
                UNROLL for (size_t i = 0; i < 4; i++)                                                                  \
                {                                                                                                      \
                    vec scale = v_load_f16(w->scale + at * Q8_GROUP + 4 * i);                                          \
                    UNROLL for (size_t r = 0; r < rows; r++) sum[4 * r + i] =                                          \
                        v_fma(vcvtq_f32_s32(dot[4 * r + i]), v_mul(scale, v_set1(x->scale[(row + r) * blocks + b])),   \
                              sum[4 * r + i]);                                                                         \
                }                                                                                                      \
            }                                                                                                          \
            UNROLL for (size_t r = 0; r < rows; r++) UNROLL for (size_t i = 0; i < 4; i++)                             \
                v_store(y + r * ld + g * Q8_GROUP + 4 * i, sum[4 * r + i]);                                            \
        }                                                                                                              \
    }

#endif
