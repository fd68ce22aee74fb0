/* AVX2 with FMA and F16C: x86 processors since about 2013. */
#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#include "kernels/cpu/isa.h"

TARGET_BEGIN("avx2,fma,f16c")

#define V_REGISTER   "x"
#define LANES        ((size_t)8)
#define TILE_OUTS    ((size_t)2)
#define PANEL_OUTS   ((size_t)4)
#define ATTEND_HEADS ((size_t)3)

typedef __m256 vec;
typedef int32_t ints __attribute__((vector_size(32)));
typedef uint32_t codes __attribute__((vector_size(sizeof(ints)))); /* four quants in each 32-bit lane */

#define v_max _mm256_max_ps
#define v_fma _mm256_fmadd_ps

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

SIMD_INLINE ints
v_bytes(const unsigned char *p)
{
    return (ints)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

SIMD_INLINE codes
v_table(codes c, const uint8_t table[16])
{
    const __m128i t = _mm_loadu_si128((const __m128i *)(const void *)table);
    return (codes)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(t), (__m256i)c);
}

SIMD_INLINE codes
v_gather(const uint32_t *words, codes at)
{
    return (codes)_mm256_i32gather_epi32((const int *)(const void *)words, (__m256i)at, 4);
}

#define Q8_FLIP 0
#include "kernels/cpu/quants.h"

#define GROUP_TILE ((size_t)4)

SIMD_INLINE __m256i
four(const int8_t *x)
{
    int32_t n;
    memcpy(&n, x, sizeof n);
    return _mm256_set1_epi32(n);
}

/* vpmaddubsw multiplies unsigned by signed. Two pairs of 63 * 127 fit into its 16 bits twice. */
SIMD_INLINE ints
v_dot2(ints dot, codes w0, codes w1, const int8_t *x)
{
    const __m256i pairs =
        _mm256_add_epi16(_mm256_maddubs_epi16((__m256i)w0, four(x)), _mm256_maddubs_epi16((__m256i)w1, four(x + 4)));
    return dot + (ints)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/* Moves the sign of a weight to the activation; |w| * |x| <= 128 * 127, and two of them fit into 16 bits. */
SIMD_INLINE ints
dot_q8(codes w, __m256i x)
{
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8((__m256i)w), _mm256_sign_epi8(x, (__m256i)w));
    return (ints)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

SIMD_INLINE ints
v_dot2_q8(ints dot, codes w0, codes w1, const int8_t *x)
{
    return dot + dot_q8(w0, four(x)) + dot_q8(w1, four(x + 4));
}

#include "kernels/cpu/simd.h"

TARGET_END

static bool
usable(void)
{
    unsigned a, b, c = 0, d; /* clang's __builtin_cpu_supports does not support F16C */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) != 0 &&
           (c & bit_F16C) != 0;
}

const struct cpu_isa cpu_isa_avx2 = {
    .name = "avx2", .family = "avx2", .usable = usable, SIMD_KERNELS, .many = {PANEL_KERNELS}};

#else
typedef int no_avx2_here;
#endif
