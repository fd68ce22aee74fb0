/* NEON, as on every 64-bit Arm processor. */
#if defined(__aarch64__)

#include "kernels/cpu/neon.h"

#define GROUP_TILE ((size_t)4)
SIMD_INLINE int32x4_t
four_dots(int32x4_t dot, int8x16_t w, int8x16_t x)
{
    int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(x)));
    int32x4_t high = vpaddlq_s16(vmull_s8(vget_high_s8(w), vget_high_s8(x)));
    return vaddq_s32(dot, vpaddq_s32(low, high));
}

#include "kernels/cpu/simd.h"

static bool
usable(void)
{
    return true;
}

const struct cpu_isa cpu_isa_neon = {
    .name = "neon", .family = "neon", .usable = usable, SIMD_KERNELS, .many = {PANEL_KERNELS}};

#else
typedef int no_neon_here;
#endif
