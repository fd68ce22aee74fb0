/* NEON with the dot product of Armv8.2 (sdot): adds four int8 products to each int32 lane. */
#if defined(__aarch64__)

#include <arm_neon.h>

#include "kernels/cpu/isa.h"

#if defined(__clang__)
TARGET_BEGIN("dotprod")
#else
TARGET_BEGIN("arch=armv8.2-a+dotprod")
#endif

#include "kernels/cpu/neon.h"

#if defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#define GROUP_TILE ((size_t)4)
/* Inline assembly because clang offers the intrinsic only if the whole file is compiled for Armv8.2. */
SIMD_INLINE int32x4_t
four_dots(int32x4_t dot, int8x16_t w, int8x16_t x)
{
    __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(dot) : "w"(w), "w"(x));
    return dot;
}

#include "kernels/cpu/simd.h"

TARGET_END

static bool
usable(void)
{
#if defined(__ARM_FEATURE_DOTPROD)
    return true;
#elif defined(__linux__)
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
    return false;
#endif
}

const struct cpu_isa cpu_isa_neondot = {
    .name = "neondot", .family = "neon", .usable = usable, SIMD_KERNELS, .many = {PANEL_KERNELS}};

#else
typedef int no_neondot_here;
#endif
