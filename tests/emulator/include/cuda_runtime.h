/* Declares for device code what nvcc provides without an include: qualifiers, vector types, arithmetic, atomics,
 * barriers and shuffles. */
#ifndef EMULATION_CUDA_RUNTIME_H
#define EMULATION_CUDA_RUNTIME_H

#include <cmath>
#include <cstring>

#include <cuda_runtime_api.h>
#include <fibers.h>

#define __CUDACC__ 1 /* this is device code */

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __restrict__
#define __constant__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __shared__   static thread_local /* shared.h gives the reason; SHARED_MEMORY is the dynamic memory */

#define threadIdx (emulation::here->thread)
#define blockIdx  (emulation::here->block)
#define blockDim  (emulation::all_of_it.block_size)
#define gridDim   (emulation::all_of_it.grid_size)
#define warpSize  32

struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
static inline uint2
make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}
static inline uint4
make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}
static inline float2
make_float2(float x, float y)
{
    return {x, y};
}
static inline float4
make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

/* ---- arithmetic ---- */

template <class To, class From>
static inline To
emulated_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "same size");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
static inline unsigned
__float_as_uint(float x)
{
    return emulated_bits<unsigned>(x);
}
static inline int
__float_as_int(float x)
{
    return emulated_bits<int>(x);
}
static inline float
__uint_as_float(unsigned x)
{
    return emulated_bits<float>(x);
}
static inline float
__int_as_float(int x)
{
    return emulated_bits<float>(x);
}
static inline int
__clz(int x)
{
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}
static inline int
__popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int
__ffs(int x)
{
    return __builtin_ffs(x);
}
static inline float
__fmul_rn(float a, float b)
{
    return a * b;
}
static inline float
__fadd_rn(float a, float b)
{
    return a + b;
}
static inline float
__fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
#define __expf(x) expf(x) /* glibc has a macro of this name */
static inline float
__fdividef(float a, float b)
{
    return a / b;
}
static inline void
sincospif(float x, float *s, float *c)
{
    *s = (float)sin(M_PI * (double)x);
    *c = (float)cos(M_PI * (double)x);
}
static inline float
rsqrtf(float x)
{
    return 1 / sqrtf(x);
}
static inline float
__frsqrt_rn(float x)
{
    return (float)(1 / sqrt((double)x));
}
template <class T>
static inline T
min(T a, T b)
{
    return b < a ? b : a;
}
template <class T>
static inline T
max(T a, T b)
{
    return a < b ? b : a;
}

/* Selects bytes of x (0 to 3) and y (4 to 7) by the digits of `which`; bit 3 of a digit selects the byte's sign, eight
 * times. */
static inline unsigned
__byte_perm(unsigned x, unsigned y, unsigned which)
{
    const uint64_t bytes = (uint64_t)y << 32 | x;
    unsigned result = 0;
    for (unsigned i = 0; i < 4; i++) {
        const unsigned digit = which >> (4 * i), byte = (unsigned)(bytes >> (digit & 7) * 8) & 0xff;
        result |= (digit & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << (8 * i);
    }
    return result;
}

/* ---- memory ---- */

template <class T>
EMULATED_UNSEEN static inline T
__ldg(const T *p, EMULATED_SITE)
{
    emulation::constant(p, sizeof *p, EMULATED_HERE);
    return *p;
}
template <class T>
static inline T
__ldcg(const T *p, EMULATED_SITE)
{
    emulation::touch(EMULATED_HERE);
    emulation::loaded(p, sizeof *p, EMULATED_HERE);
    return *p;
}
template <class T>
static inline void
__stcg(T *p, T v)
{
    *p = v;
}
static inline void
__threadfence(EMULATED_SITE)
{
    emulation::fence(EMULATED_HERE);
}
static inline void
__threadfence_system(EMULATED_SITE)
{
    emulation::fence(EMULATED_HERE);
}

/* Threads switch only where they wait, so these are atomic. */
#define EMULATED_ATOMIC(name, after)                                                                                   \
    template <class T, class V> EMULATED_UNSEEN static inline T name(T *p, V given, EMULATED_SITE)                     \
    {                                                                                                                  \
        emulation::touch(EMULATED_HERE);                                                                               \
        emulation::atomic(p, sizeof *p, emulation::CHANGES, emulation::RELAXED, EMULATED_HERE);                        \
        const T was = *p, v = (T)given;                                                                                \
        *p = (T)(after);                                                                                               \
        return was;                                                                                                    \
    }
EMULATED_ATOMIC(atomicAdd, was + v)
EMULATED_ATOMIC(atomicSub, was - v)
EMULATED_ATOMIC(atomicMax, was < v ? v : was)
EMULATED_ATOMIC(atomicMin, v < was ? v : was)
EMULATED_ATOMIC(atomicExch, v)
EMULATED_ATOMIC(atomicAnd, was &v)
EMULATED_ATOMIC(atomicOr, was | v)
EMULATED_ATOMIC(atomicInc, was >= v ? 0 : was + 1)

template <class T>
EMULATED_UNSEEN static inline T
atomicCAS(T *p, T expected, T v, EMULATED_SITE)
{
    emulation::touch(EMULATED_HERE);
    emulation::atomic(p, sizeof *p, emulation::CHANGES, emulation::RELAXED, EMULATED_HERE);
    const T was = *p;
    if (was == expected)
        *p = v;
    return was;
}

/* ---- threads of a block ---- */

static inline void
__syncthreads(EMULATED_SITE)
{
    emulation::block_barrier(0, EMULATED_HERE);
}
static inline int
__syncthreads_and(int p, EMULATED_SITE)
{
    return emulation::block_barrier(p ? 0 : 1, EMULATED_HERE) == 0;
}
static inline int
__syncthreads_or(int p, EMULATED_SITE)
{
    return emulation::block_barrier(p ? 1 : 0, EMULATED_HERE) != 0;
}
static inline int
__syncthreads_count(int p, EMULATED_SITE)
{
    return (int)emulation::block_barrier(p ? 1 : 0, EMULATED_HERE);
}

/* ---- lanes of a warp ---- */

static inline void
__syncwarp(unsigned mask = 0xffffffffu, EMULATED_SITE)
{
    emulation::together(
        emulation::SYNC, mask, nullptr, [](void *const *) {}, EMULATED_HERE);
}

template <class T> struct emulated_shuffled {
    T value, result;
    unsigned source;
};
/* A value from a lane that does not exist, or is not in the mask, is poison. */
template <class T>
static inline T
emulated_shuffle(unsigned mask, T value, unsigned source, emulation::site at)
{
    emulated_shuffled<T> mine = {value, value, source};
    auto work = [](void *const *data) EMULATED_UNSEEN {
        for (unsigned i = 0; i < 32; i++) {
            auto *const lane = (emulated_shuffled<T> *)data[i];
            if (lane == nullptr)
                continue;
            if (const auto *from = (const emulated_shuffled<T> *)data[lane->source & 31])
                lane->result = from->value;
            else
                memset((void *)&lane->result, emulation::POISON, sizeof lane->result);
        }
    };
    emulation::together(emulation::SHUFFLE, mask, &mine, work, at);
    return mine.result;
}
template <class T>
static inline T
__shfl_sync(unsigned mask, T value, int source, int width = 32, EMULATED_SITE)
{
    const unsigned lane = emulation::here->lane, w = (unsigned)width;
    return emulated_shuffle(mask, value, (lane & ~(w - 1)) | ((unsigned)source & (w - 1)), EMULATED_HERE);
}
template <class T>
static inline T
__shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, EMULATED_SITE)
{
    /* a lane can read from earlier groups, but not from later ones */
    const unsigned lane = emulation::here->lane, source = lane ^ (unsigned)bits, w = (unsigned)width;
    return emulated_shuffle(mask, value, source <= (lane | (w - 1)) ? source : lane, EMULATED_HERE);
}
template <class T>
static inline T
__shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, EMULATED_SITE)
{
    const unsigned lane = emulation::here->lane, w = (unsigned)width;
    return emulated_shuffle(mask, value, (lane & (w - 1)) >= by ? lane - by : lane, EMULATED_HERE);
}
template <class T>
static inline T
__shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, EMULATED_SITE)
{
    const unsigned lane = emulation::here->lane, w = (unsigned)width;
    return emulated_shuffle(mask, value, (lane & (w - 1)) + by < w ? lane + by : lane, EMULATED_HERE);
}

struct emulated_vote {
    unsigned value, result;
};
/* Calls with(all, value, lane) for each existing lane, from the lowest on; begins with `Op::none`. */
template <class Op>
static inline unsigned
emulated_reduce(emulation::collective kind, unsigned mask, unsigned value, emulation::site at)
{
    emulated_vote mine = {value, 0};
    auto work = [](void *const *data) EMULATED_UNSEEN {
        unsigned all = Op::none;
        for (unsigned i = 0; i < 32; i++)
            if (const auto *vote = (const emulated_vote *)data[i])
                all = Op::with(all, vote->value, i);
        for (unsigned i = 0; i < 32; i++)
            if (data[i] != nullptr)
                ((emulated_vote *)data[i])->result = all;
    };
    emulation::together(kind, mask, &mine, work, at);
    return mine.result;
}
#define EMULATED_VOTE(name, type, kind, begin, what)                                                                   \
    struct emulated_op_##name##_##type {                                                                               \
        static constexpr unsigned none = begin;                                                                        \
        static unsigned                                                                                                \
        with(unsigned all_, unsigned value_, unsigned lane)                                                            \
        {                                                                                                              \
            const type all = (type)all_, value = (type)value_;                                                         \
            (void)lane;                                                                                                \
            return (unsigned)(what);                                                                                   \
        }                                                                                                              \
    };                                                                                                                 \
    static inline type name(unsigned mask, type value, EMULATED_SITE)                                                  \
    {                                                                                                                  \
        return (type)emulated_reduce<emulated_op_##name##_##type>(emulation::kind, mask, (unsigned)value,              \
                                                                  EMULATED_HERE);                                      \
    }
EMULATED_VOTE(__reduce_max_sync, unsigned, REDUCE, 0u, all < value ? value : all)
EMULATED_VOTE(__reduce_min_sync, unsigned, REDUCE, 0xffffffffu, value < all ? value : all)
EMULATED_VOTE(__reduce_add_sync, unsigned, REDUCE, 0u, all + value)
EMULATED_VOTE(__reduce_and_sync, unsigned, REDUCE, 0xffffffffu, all &value)
EMULATED_VOTE(__reduce_or_sync, unsigned, REDUCE, 0u, all | value)
EMULATED_VOTE(__reduce_max_sync, int, REDUCE, 0x80000000u, all < value ? value : all)
EMULATED_VOTE(__reduce_min_sync, int, REDUCE, 0x7fffffffu, value < all ? value : all)
EMULATED_VOTE(emulated_ballot, unsigned, VOTE, 0u, all | (value != 0 ? 1u << lane : 0u))

static inline unsigned
__ballot_sync(unsigned mask, int p, EMULATED_SITE)
{
    return emulated_ballot(mask, p != 0, file_, line_);
}
static inline int
__any_sync(unsigned mask, int p, EMULATED_SITE)
{
    return emulated_ballot(mask, p != 0, file_, line_) != 0;
}
static inline int
__all_sync(unsigned mask, int p, EMULATED_SITE)
{
    return emulated_ballot(mask, p == 0, file_, line_) == 0;
}

/* ---- launches ---- */

/* The launch's `op` and `seed` are not read; the argument of `size` bytes is copied. */
cudaError_t emulated_launch(const emulation::launched &, size_t size, cudaStream_t);
/* Allows the kernel more than 48 KiB of dynamic shared memory, as cudaFuncSetAttribute() does. */
void emulated_allow_shared(const void *kernel, size_t);

#endif
