/* AVX-512 with VNNI: vpdpbusd multiplies and adds four int8 pairs into each of sixteen int32 lanes. */
#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/cpu/isa.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c"))),   \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")
#endif

#include "kernels/cpu/avx512.h"

#define Q8_TILE ((size_t)8)

/* The instruction takes unsigned times signed. Weights were stored xor 0x80, that is plus 128, so that a dot product
 * comes out 128 * sum(x) too large: it starts from minus that, the same for all outputs. */
SIMD_INLINE void
q8_tile(const struct matrix *w, size_t group, const size_t groups, const struct acts *x, size_t row, const size_t rows,
        float *y, size_t ld)
{
    size_t blocks = w->cols / Q8_BLOCK;
    vec sum[Q8_TILE];
    UNROLL for (size_t i = 0; i < groups * rows; i++) sum[i] = v_zero();
    for (size_t b = 0; b < blocks; b++) {
        const int8_t *xq = x->q + row * w->cols + b * Q8_BLOCK;
        __m512i dot[Q8_TILE];
        UNROLL for (size_t g = 0; g < groups; g++) UNROLL for (size_t r = 0; r < rows; r++) dot[g * rows + r] =
            _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_set1_epi32(x->extra[(row + r) * blocks + b]));
        UNROLL for (size_t k = 0; k < Q8_BLOCK / 4; k++)
        {
            UNROLL for (size_t g = 0; g < groups; g++)
            {
                size_t at = (group + g) * blocks + b;
                __m512i wk = _mm512_loadu_si512(w->q + (at * Q8_BLOCK + 4 * k) * Q8_GROUP);
                UNROLL for (size_t r = 0; r < rows; r++)
                {
                    int32_t four;
                    memcpy(&four, xq + r * w->cols + 4 * k, sizeof four);
                    dot[g * rows + r] = _mm512_dpbusd_epi32(dot[g * rows + r], wk, _mm512_set1_epi32(four));
                }
            }
        }
        UNROLL for (size_t g = 0; g < groups; g++)
        {
            vec scale = v_load_f16(w->scale + ((group + g) * blocks + b) * Q8_GROUP);
            UNROLL for (size_t r = 0; r < rows; r++)
            {
                vec both = v_mul(scale, v_set1(x->scale[(row + r) * blocks + b]));
                sum[g * rows + r] = v_fma(_mm512_cvtepi32_ps(dot[g * rows + r]), both, sum[g * rows + r]);
            }
        }
    }
    UNROLL for (size_t g = 0; g < groups; g++) UNROLL for (size_t r = 0; r < rows; r++)
        v_store(y + r * ld + g * Q8_GROUP, sum[g * rows + r]);
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
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}

const struct cpu_isa cpu_isa_avx512vnni = {
    .name = "avx512vnni", .family = "avx512", .usable = usable, .q8_flip = 0x80, SIMD_KERNELS};

#else
typedef int no_avx512vnni_here;
#endif
