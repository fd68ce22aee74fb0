/* AVX-512 primitives for cpu/simd.h, shared by the instruction sets with and without VNNI. */
#pragma once

#include <immintrin.h>

#include "kernels/cpu/isa.h"

#define V_REGISTER   "v"
#define LANES        ((size_t)16)
#define TILE_OUTS    ((size_t)4)
#define PANEL_OUTS   ((size_t)8)
#define ATTEND_HEADS ((size_t)4)

typedef __m512 vec;
typedef int32_t ints __attribute__((vector_size(64)));
typedef uint32_t codes __attribute__((vector_size(sizeof(ints)))); /* four quants in each 32-bit lane */

#define v_max _mm512_max_ps
#define v_fma _mm512_fmadd_ps
#define v_abs _mm512_abs_ps

SIMD_INLINE vec
v_round(vec a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

SIMD_INLINE vec
v_exp2i(vec n)
{
    return _mm512_scalef_ps(_mm512_set1_ps(1.0f), n);
}

SIMD_INLINE __m128
v_quarter(vec a)
{
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

SIMD_INLINE float
v_sum(vec a)
{
    __m128 s = v_quarter(a);
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

SIMD_INLINE void
v_sum4(float *p, vec a, vec b, vec c, vec d)
{
    vec ab = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    vec cd = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
    vec quarters = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
    vec pairs = _mm512_add_ps(quarters, _mm512_permute_ps(quarters, 0x4e)); /* in each quarter: x0+x2, x1+x3, … */
    vec sums = _mm512_add_ps(pairs, _mm512_permute_ps(pairs, 0xb1));
    const __m512i firsts = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
    _mm_storeu_ps(p, _mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, sums)));
}

SIMD_INLINE float
v_most(vec a)
{
    __m256 half = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

SIMD_INLINE unsigned
v_above(vec a, vec b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}

SIMD_INLINE vec
v_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

SIMD_INLINE vec
v_load_bf16(const uint16_t *p)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

SIMD_INLINE void
v_store_f16(uint16_t *p, vec a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

SIMD_INLINE ints
v_bytes(const unsigned char *p)
{
    return (ints)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}

SIMD_INLINE codes
v_table(codes c, const uint8_t table[16])
{
    const __m128i t = _mm_loadu_si128((const __m128i *)(const void *)table);
    return (codes)_mm512_shuffle_epi8(_mm512_broadcast_i32x4(t), (__m512i)c);
}

SIMD_INLINE codes
v_gather(const uint32_t *words, codes at)
{
    return (codes)_mm512_i32gather_epi32((__m512i)at, words, 4);
}

/* Broadcasts four int8 to each lane. */
SIMD_INLINE __m512i
v_four(const int8_t *x)
{
    int32_t four;
    __builtin_memcpy(&four, x, sizeof four);
    return _mm512_set1_epi32(four);
}

SIMD_INLINE void
v_store_i8(int8_t *p, vec a)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(a)));
}
