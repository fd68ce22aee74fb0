/* Instructions that CUDA C++ has no function for, and related conversions. tests/emulator implements the same functions
 * by their definitions in the PTX ISA manual. */
#ifndef KERNELS_CUDA_DEVICE_PTX_CUH
#define KERNELS_CUDA_DEVICE_PTX_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* ---- numbers of 16 bits ---- */

static __device__ __forceinline__ float
half_value(uint16_t h)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
}

/* Rounds to nearest, ties to even; numbers out of range become infinity. */
static __device__ __forceinline__ uint16_t
half_bits(float x)
{
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}

static __device__ __forceinline__ uint32_t
pack_halves(float low, float high)
{
    uint32_t pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

static __device__ __forceinline__ float2
unpack_halves(uint32_t pair)
{
    return make_float2(half_value((uint16_t)pair), half_value((uint16_t)(pair >> 16)));
}

static __device__ __forceinline__ uint32_t
pack_bf16s(float low, float high)
{
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

static __device__ __forceinline__ float2
unpack_bf16s(uint32_t pair)
{
    return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}

/* Converts four signed bytes, lowest first, to two pairs of halves, exactly: x + 128 in the mantissa of 1024 is 1024 +
 * 128 + x, from which 1152 is subtracted. */
static __device__ __forceinline__ void
dequant_bytes(uint32_t bytes, uint32_t *low, uint32_t *high)
{
    const uint32_t shifted = bytes ^ 0x80808080u, thousand = 0x64646464u, offset = 0x64806480u; /* 1152, 1152 */
    const uint32_t a = __byte_perm(shifted, thousand, 0x4140), b = __byte_perm(shifted, thousand, 0x4342);
    asm("sub.f16x2 %0, %1, %2;" : "=r"(*low) : "r"(a), "r"(offset));
    asm("sub.f16x2 %0, %1, %2;" : "=r"(*high) : "r"(b), "r"(offset));
}

/* ---- matrices ---- */

/* Adds a (16, 16) b (16, 8) to d (16, 8), by the lanes of a warp together. Fragments are as in layout.h. d[0] and d[1]
 * are row g, columns 2c and 2c+1; d[2] and d[3] are row g+8. */
static __device__ __forceinline__ void
mma_f16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ void
mma_bf16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* ---- barriers of a block ---- */

/* Barriers 1 to 15 of a block. `threads` is the number of threads, in whole warps, that arrive or wait. A waiting warp
 * continues when all of them have arrived, and sees what they stored before. */
static __device__ __forceinline__ void
barrier_arrive(uint32_t id, uint32_t threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

static __device__ __forceinline__ void
barrier_sync(uint32_t id, uint32_t threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* ---- memory ---- */

/* Loads weights, bypassing L1 because they are read once. *v is unchanged if `take` is false; there is no branch, which
 * would need registers while many loads are in flight. */
static __device__ __forceinline__ void
load_weights(uint4 *v, const void *p, bool take)
{
    asm volatile("{\n\t.reg .pred take;\n\tsetp.ne.u32 take, %5, 0;\n\t"
                 "@take ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n\t}"
                 : "+r"(v->x), "+r"(v->y), "+r"(v->z), "+r"(v->w)
                 : "l"(p), "r"((uint32_t)take));
}

static __device__ __forceinline__ void
load_weights(uint2 *v, const void *p, bool take)
{
    asm volatile("{\n\t.reg .pred take;\n\tsetp.ne.u32 take, %3, 0;\n\t"
                 "@take ld.global.nc.v2.u32 {%0, %1}, [%2];\n\t}"
                 : "+r"(v->x), "+r"(v->y)
                 : "l"(p), "r"((uint32_t)take));
}

static __device__ __forceinline__ void
load_weights(uint32_t *v, const void *p, bool take)
{
    asm volatile("{\n\t.reg .pred take;\n\tsetp.ne.u32 take, %2, 0;\n\t@take ld.global.nc.u32 %0, [%1];\n\t}"
                 : "+r"(*v)
                 : "l"(p), "r"((uint32_t)take));
}

/* Loads data that other blocks may have written before the last barrier, through L1. There is no condition: with one,
 * the compiler would store the loaded value, and so wait for it, before the next load. */
static __device__ __forceinline__ void
load_state(uint4 *v, const void *p)
{
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v->x), "=r"(v->y), "=r"(v->z), "=r"(v->w) : "l"(p));
}

/* Returns threadIdx.x, read again each time. In a kernel of many phases the compiler would otherwise compute values
 * derived from it before the first phase and keep them in registers until the last. */
static __device__ __forceinline__ uint32_t
thread_here()
{
    uint32_t t;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
    return t;
}

/* Returns n % 2, the number of the buffer that turn n uses. */
static __device__ __forceinline__ uint32_t
parity(uint32_t n)
{
    return n % 2;
}

/* Returns the address p as a number that is opaque to the compiler: loads at constant distances from it share one
 * register pair; otherwise the parts of all addresses would be kept in registers. */
template <class T>
static __device__ __forceinline__ const T *
opaque(const T *p)
{
    asm volatile("" : "+l"(p));
    return p;
}

/* Loads activations through L1, because all warps read them repeatedly. */
static __device__ __forceinline__ uint4
load_activations(const uint4 *p)
{
    uint4 v;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}

/* The same from shared memory. */
static __device__ __forceinline__ uint4
load_smem(const uint4 *p)
{
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"((uint32_t)__cvta_generic_to_shared(p)));
    return v;
}

/* Prefetches bytes into L2; address and length are multiples of 32. Called by `n` threads together; this one is number
 * i. If one instruction can prefetch the whole range, one thread does it. */
static __device__ __forceinline__ void
prefetch_l2(const void *p, uint32_t bytes, uint32_t i, uint32_t n)
{
#if __CUDA_ARCH__ >= 900
    if (i == 0)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "r"(bytes));
#else
    for (uint32_t sector = i * 32; sector < bytes; sector += n * 32)
        asm volatile("prefetch.global.L2 [%0];" ::"l"((const unsigned char *)p + sector));
#endif
}

static __device__ __forceinline__ uint32_t
load_acquire(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

static __device__ __forceinline__ void
add_release(uint32_t *p, uint32_t v)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

static __device__ __forceinline__ uint32_t
add_acquire_release(uint32_t *p, uint32_t v)
{
    uint32_t was;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(was) : "l"(p), "r"(v) : "memory");
    return was;
}

/* Ends the kernel, after which the device is unusable for this process. */
static __device__ __forceinline__ void
trap_grid(void)
{
    asm volatile("trap;");
}

/* Returns the global timer in nanoseconds. */
static __device__ __forceinline__ uint64_t
globaltimer()
{
    uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

#endif
