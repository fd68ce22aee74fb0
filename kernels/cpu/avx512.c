/* AVX-512 (F, BW, DQ, VL) as on Skylake servers, without the integer dot product of avx512vnni.c. */
#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/cpu/isa.h"

TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")

#include "kernels/cpu/avx512.h"

#define Q8_FLIP 0
#include "kernels/cpu/quants.h"

#define GROUP_TILE ((size_t)4)

/* vpmaddubsw multiplies unsigned by signed. Two pairs of 63 * 127 fit into its 16 bits twice. */
SIMD_INLINE ints
v_dot2(ints dot, codes w0, codes w1, const int8_t *x)
{
    const __m512i pairs = _mm512_add_epi16(_mm512_maddubs_epi16((__m512i)w0, v_four(x)),
                                           _mm512_maddubs_epi16((__m512i)w1, v_four(x + 4)));
    return dot + (ints)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
}

/* Moves the sign of a weight to the activation; |w| * |x| <= 128 * 127, and two of them fit into 16 bits. */
SIMD_INLINE ints
dot_q8(codes w, __m512i x)
{
    const __m512i weights = (__m512i)w, size = _mm512_abs_epi8(weights);
    const __m512i signed_x = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(weights), _mm512_setzero_si512(), x);
    return (ints)_mm512_madd_epi16(_mm512_maddubs_epi16(size, signed_x), _mm512_set1_epi16(1));
}

SIMD_INLINE ints
v_dot2_q8(ints dot, codes w0, codes w1, const int8_t *x)
{
    return dot + dot_q8(w0, v_four(x)) + dot_q8(w1, v_four(x + 4));
}

#include "kernels/cpu/simd.h"

TARGET_END

static bool
usable(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

const struct cpu_isa cpu_isa_avx512 = {
    .name = "avx512", .family = "avx512", .usable = usable, SIMD_KERNELS, .many = {PANEL_KERNELS}};

#else
typedef int no_avx512_here;
#endif
