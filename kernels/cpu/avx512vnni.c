/* AVX-512 with VNNI: vpdpbusd multiplies and adds four int8 pairs into each of sixteen int32 lanes. */
#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/cpu/amx.h"
#include "kernels/cpu/isa.h"

TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")

#include "kernels/cpu/avx512.h"

#define Q8_FLIP 0x80
#include "kernels/cpu/quants.h"

#define GROUP_TILE ((size_t)8)

/* The instruction multiplies unsigned by signed: Q8_0's weights are stored xor 0x80, that is plus 128. */
SIMD_INLINE ints
v_dot2(ints dot, codes w0, codes w1, const int8_t *x)
{
    const __m512i first = _mm512_dpbusd_epi32((__m512i)dot, (__m512i)w0, v_four(x));
    return (ints)_mm512_dpbusd_epi32(first, (__m512i)w1, v_four(x + 4));
}

#define v_dot2_q8 v_dot2

#include "kernels/cpu/simd.h"

TARGET_END

static bool
usable(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}

const struct cpu_isa cpu_isa_avx512vnni = {.name = "avx512vnni",
                                           .family = "avx512",
                                           .usable = usable,
                                           .q8_flip = Q8_FLIP,
                                           SIMD_KERNELS,
                                           .many = {PANEL_KERNELS}};

#define TILES(name, type) [type] = {amx_matmul, AMX_MANY},
const struct cpu_isa cpu_isa_amx = {.name = "amx",
                                    .family = "avx512",
                                    .usable = amx_usable,
                                    .q8_flip = Q8_FLIP,
                                    SIMD_KERNELS,
                                    .many = {PANEL_KERNELS, INTERLEAVED_TYPES(TILES) SAME_TYPES(TILES)}};

#else
typedef int no_avx512vnni_here;
#endif
