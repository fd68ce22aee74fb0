/* AVX-512 (F, BW, DQ, VL) as Skylake servers have it, without the integer dot product of avx512vnni.c. */
#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/cpu/isa.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"))),              \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")
#endif

#include "kernels/cpu/avx512.h"

#define Q8_TILE ((size_t)4)

/* Sixteen outputs at a time; the sign of a weight moves to the activation, as in avx2.c. */
SIMD_INLINE void
q8_tile(const struct matrix *w, size_t group, const size_t groups, const struct acts *x, size_t row, const size_t rows,
        float *y, size_t ld)
{
    size_t blocks = w->cols / Q8_BLOCK;
    const __m512i ones = _mm512_set1_epi16(1), zero = _mm512_setzero_si512();
    for (size_t g = 0; g < groups; g++) {
        vec sum[Q8_TILE];
        UNROLL for (size_t r = 0; r < rows; r++) sum[r] = v_zero();
        for (size_t b = 0; b < blocks; b++) {
            size_t at = (group + g) * blocks + b;
            const uint8_t *wq = w->q + at * Q8_BLOCK * Q8_GROUP;
            const int8_t *xq = x->q + row * w->cols + b * Q8_BLOCK;
            __m512i dot[Q8_TILE];
            UNROLL for (size_t r = 0; r < rows; r++) dot[r] = zero;
            UNROLL for (size_t k = 0; k < Q8_BLOCK / 4; k++)
            {
                __m512i wk = _mm512_loadu_si512(wq + k * 4 * Q8_GROUP), size = _mm512_abs_epi8(wk);
                __mmask64 negative = _mm512_movepi8_mask(wk);
                UNROLL for (size_t r = 0; r < rows; r++)
                {
                    int32_t four;
                    memcpy(&four, xq + r * w->cols + 4 * k, sizeof four);
                    __m512i x4 = _mm512_set1_epi32(four);
                    __m512i pairs = _mm512_maddubs_epi16(size, _mm512_mask_sub_epi8(x4, negative, zero, x4));
                    dot[r] = _mm512_add_epi32(dot[r], _mm512_madd_epi16(pairs, ones));
                }
            }
            vec scale = v_load_f16(w->scale + at * Q8_GROUP);
            UNROLL for (size_t r = 0; r < rows; r++) sum[r] =
                v_fma(_mm512_cvtepi32_ps(dot[r]), v_mul(scale, v_set1(x->scale[(row + r) * blocks + b])), sum[r]);
        }
        UNROLL for (size_t r = 0; r < rows; r++) v_store(y + r * ld + g * Q8_GROUP, sum[r]);
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
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

const struct cpu_isa cpu_isa_avx512 = {.name = "avx512", .family = "avx512", .usable = usable, SIMD_KERNELS};

#else
typedef int no_avx512_here;
#endif
