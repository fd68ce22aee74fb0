/* AVX2 with FMA and F16C: every x86 processor of the last ten years. */
#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#include "kernels/cpu/isa.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

#define LANES     ((size_t)8)
#define TILE_OUTS ((size_t)2)
#define TILE_ROWS ((size_t)4)
#define Q8_TILE   ((size_t)4)

typedef __m256 vec;

SIMD_INLINE vec
v_zero(void)
{
    return _mm256_setzero_ps();
}

SIMD_INLINE vec
v_set1(float x)
{
    return _mm256_set1_ps(x);
}

SIMD_INLINE vec
v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

SIMD_INLINE void
v_store(float *p, vec v)
{
    _mm256_storeu_ps(p, v);
}

SIMD_INLINE vec
v_add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}

SIMD_INLINE vec
v_sub(vec a, vec b)
{
    return _mm256_sub_ps(a, b);
}

SIMD_INLINE vec
v_mul(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}

SIMD_INLINE vec
v_div(vec a, vec b)
{
    return _mm256_div_ps(a, b);
}

SIMD_INLINE vec
v_max(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}

SIMD_INLINE vec
v_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

SIMD_INLINE vec
v_abs(vec a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}

SIMD_INLINE vec
v_round(vec a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

SIMD_INLINE vec
v_exp2i(vec n)
{
    __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
}

SIMD_INLINE __m128
v_half(vec a)
{
    return _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
}

SIMD_INLINE float
v_sum(vec a)
{
    __m128 s = v_half(a);
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

SIMD_INLINE void
v_sum4(float *p, vec a, vec b, vec c, vec d)
{
    __m128 a4 = v_half(a), b4 = v_half(b), c4 = v_half(c), d4 = v_half(d);
    __m128 ab = _mm_add_ps(_mm_unpacklo_ps(a4, b4), _mm_unpackhi_ps(a4, b4)); /* a0+a2 b0+b2 a1+a3 b1+b3 */
    __m128 cd = _mm_add_ps(_mm_unpacklo_ps(c4, d4), _mm_unpackhi_ps(c4, d4));
    _mm_storeu_ps(p, _mm_add_ps(_mm_movelh_ps(ab, cd), _mm_movehl_ps(cd, ab)));
}

SIMD_INLINE float
v_most(vec a)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

SIMD_INLINE unsigned
v_above(vec a, vec b)
{
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ));
}

SIMD_INLINE vec
v_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

SIMD_INLINE vec
v_load_bf16(const uint16_t *p)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

SIMD_INLINE void
v_store_f16(uint16_t *p, vec a)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
}

SIMD_INLINE void
v_store_i8(int8_t *p, vec a)
{
    __m256i wide = _mm256_cvtps_epi32(a);
    __m128i pairs = _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packs_epi16(pairs, pairs));
}

/* Eight outputs at a time. vpmaddubsw wants unsigned times signed, so the sign of a weight moves to the activation;
 * |w| * |x| <= 128 * 127, and two of them fit into 16 bits. */
SIMD_INLINE void
q8_tile(const struct matrix *w, size_t group, const size_t groups, const struct acts *x, size_t row, const size_t rows,
        float *y, size_t ld)
{
    size_t blocks = w->cols / Q8_BLOCK;
    const __m256i ones = _mm256_set1_epi16(1);
    for (size_t half = 0; half < 2 * groups; half++) {
        size_t first = (group + half / 2) * blocks;
        vec sum[Q8_TILE];
        UNROLL for (size_t r = 0; r < rows; r++) sum[r] = v_zero();
        for (size_t b = 0; b < blocks; b++) {
            const uint8_t *wq = w->q + (first + b) * Q8_BLOCK * Q8_GROUP + half % 2 * 32;
            const int8_t *xq = x->q + row * w->cols + b * Q8_BLOCK;
            __m256i dot[Q8_TILE];
            UNROLL for (size_t r = 0; r < rows; r++) dot[r] = _mm256_setzero_si256();
            UNROLL for (size_t k = 0; k < Q8_BLOCK / 4; k++)
            {
                __m256i wk = _mm256_loadu_si256((const __m256i *)(const void *)(wq + k * 4 * Q8_GROUP));
                __m256i size = _mm256_abs_epi8(wk);
                UNROLL for (size_t r = 0; r < rows; r++)
                {
                    int32_t four;
                    memcpy(&four, xq + r * w->cols + 4 * k, sizeof four);
                    __m256i pairs = _mm256_maddubs_epi16(size, _mm256_sign_epi8(_mm256_set1_epi32(four), wk));
                    dot[r] = _mm256_add_epi32(dot[r], _mm256_madd_epi16(pairs, ones));
                }
            }
            vec scale = v_load_f16(w->scale + (first + b) * Q8_GROUP + half % 2 * 8);
            UNROLL for (size_t r = 0; r < rows; r++) sum[r] =
                v_fma(_mm256_cvtepi32_ps(dot[r]), v_mul(scale, v_set1(x->scale[(row + r) * blocks + b])), sum[r]);
        }
        UNROLL for (size_t r = 0; r < rows; r++) v_store(y + r * ld + half * 8, sum[r]);
    }
}

#include "kernels/cpu/simd.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

static bool
usable(void)
{
    unsigned a, b, c = 0, d; /* clang's __builtin_cpu_supports does not know F16C */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) != 0 &&
           (c & bit_F16C) != 0;
}

const struct cpu_isa cpu_isa_avx2 = {.name = "avx2", .family = "avx2", .usable = usable, SIMD_KERNELS};

#else
typedef int no_avx2_here;
#endif
