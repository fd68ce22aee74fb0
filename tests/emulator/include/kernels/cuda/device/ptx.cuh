/* The instructions of kernels/cuda/device/ptx.cuh by their definitions (PTX ISA). Numbers are exact where the
 * hardware's are; the sum of a matrix instruction is selectable (fibers.h). */
#ifndef KERNELS_CUDA_DEVICE_PTX_CUH
#define KERNELS_CUDA_DEVICE_PTX_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "base/clock.h"

/* ---- numbers of 16 bits ---- */

static inline float
half_value(uint16_t h)
{
    const uint32_t magnitude = h & 0x7fff, sign = (uint32_t)(h & 0x8000) << 16;
    if (magnitude <
        0x400) /* a subnormal, converted from an integer, because arithmetic with subnormal floats is slow */
        return __uint_as_float(sign | __float_as_uint((float)magnitude * 0x1p-24f));
    return __uint_as_float(sign | (magnitude < 0x7c00 ? (magnitude << 13) + 0x38000000 : magnitude << 13 | 0x7f800000));
}

static inline uint16_t
half_bits(float x)
{
    const uint32_t bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return 0x7fff;            /* the one NaN */
    if (magnitude >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000u) /* subnormal: multiples of 2^-24 */
        return (uint16_t)(sign | (uint32_t)rintf(__uint_as_float(magnitude) * 0x1p24f));
    const uint32_t odd = magnitude >> 13 & 1;
    return (uint16_t)(sign | ((magnitude + 0xfffu + odd - 0x38000000u) >> 13));
}

static inline uint16_t
bf16_bits(float x)
{
    const uint32_t bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

static inline uint32_t
pack_halves(float low, float high)
{
    return half_bits(low) | (uint32_t)half_bits(high) << 16;
}

static inline float2
unpack_halves(uint32_t pair)
{
    return make_float2(half_value((uint16_t)pair), half_value((uint16_t)(pair >> 16)));
}

static inline uint32_t
pack_bf16s(float low, float high)
{
    return bf16_bits(low) | (uint32_t)bf16_bits(high) << 16;
}

static inline float2
unpack_bf16s(uint32_t pair)
{
    return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}

/* Four signed bytes, lowest first. */
static inline void
dequant_bytes(uint32_t bytes, uint32_t *low, uint32_t *high)
{
    *low = pack_halves((float)(int8_t)bytes, (float)(int8_t)(bytes >> 8));
    *high = pack_halves((float)(int8_t)(bytes >> 16), (float)(int8_t)(bytes >> 24));
}

/* ---- matrices ---- */

/* Operands of m16n8k16. A register contains two values; its lower bits are the value with the lower column (of B:
 * row). */
struct emulated_mma {
    float *d;
    uint32_t a[4], b[2];
};

template <float2 (*UNPACK)(uint32_t), int LEAST>
static inline void
emulated_multiply(float *d, const uint32_t *a, uint32_t b0, uint32_t b1, emulation::site at)
{
    struct emulated_mma mine = {d, {a[0], a[1], a[2], a[3]}, {b0, b1}};
    auto work = [](void *const *data) EMULATED_UNSEEN {
        float x[16][16], y[16][8], sum[16][8];
        for (unsigned lane = 0; lane < 32; lane++) {
            const auto *m = (const struct emulated_mma *)data[lane];
            const unsigned g = lane / 4, c = lane % 4;
            for (unsigned r = 0; r < 4; r++) {
                const float2 v = UNPACK(m->a[r]);
                const unsigned row = g + r % 2 * 8, k = 2 * c + r / 2 * 8;
                x[row][k] = v.x;
                x[row][k + 1] = v.y;
            }
            for (unsigned r = 0; r < 2; r++) {
                const float2 v = UNPACK(m->b[r]);
                y[2 * c + r * 8][g] = v.x;
                y[2 * c + r * 8 + 1][g] = v.y;
            }
            for (unsigned i = 0; i < 4; i++)
                sum[g + i / 2 * 8][2 * c + i % 2] = m->d[i];
        }
        emulation::multiply_matrices(x, y, sum, LEAST);
        for (unsigned lane = 0; lane < 32; lane++)
            for (unsigned i = 0; i < 4; i++)
                ((struct emulated_mma *)data[lane])->d[i] = sum[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
    };
    emulation::together(emulation::MATRIX, 0xffffffffu, &mine, work, at);
}

static inline void
mma_f16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, EMULATED_SITE)
{
    emulated_multiply<unpack_halves, -13>(d, a, b0, b1, EMULATED_HERE);
}

static inline void
mma_bf16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, EMULATED_SITE)
{
    emulated_multiply<unpack_bf16s, -125>(d, a, b0, b1, EMULATED_HERE);
}

/* ---- barriers of a block ---- */

static inline void
barrier_arrive(uint32_t id, uint32_t threads, EMULATED_SITE)
{
    emulation::come_to_barrier(id, threads, false, EMULATED_HERE);
}

static inline void
barrier_sync(uint32_t id, uint32_t threads, EMULATED_SITE)
{
    emulation::come_to_barrier(id, threads, true, EMULATED_HERE);
}

/* ---- memory ---- */

template <class T>
EMULATED_UNSEEN static inline void
load_weights(T *v, const void *p, bool take, EMULATED_SITE)
{
    if (take && (uintptr_t)p % sizeof(T) != 0)
        emulation::misuse(EMULATED_HERE, "loads %zu bytes from an address that is not a multiple of this size",
                          sizeof(T));
    if (take) {
        emulation::constant(p, sizeof *v, EMULATED_HERE);
        *v = *(const T *)p;
    }
}

static inline void
load_state(uint4 *v, const void *p, EMULATED_SITE)
{
    if ((uintptr_t)p % sizeof *v != 0)
        emulation::misuse(EMULATED_HERE, "loads %zu bytes from an address that is not a multiple of this size",
                          sizeof *v);
    emulation::loaded(p, sizeof *v, EMULATED_HERE);
    *v = *(const uint4 *)p;
}

static inline uint32_t
thread_here()
{
    return threadIdx.x;
}

static inline uint32_t
parity(uint32_t n, EMULATED_SITE)
{
    return emulation::keeps(emulation::PARITY, EMULATED_HERE) ? n % 2 : 0;
}

template <class T>
static inline const T *
opaque(const T *p)
{
    return p;
}

static inline uint4
load_smem(const uint4 *p, EMULATED_SITE)
{
    unsigned char never_written[sizeof *p];
    if ((uintptr_t)p % sizeof *p != 0)
        emulation::misuse(EMULATED_HERE, "loads %zu bytes from an address that is not a multiple of this size",
                          sizeof *p);
    memset(never_written, emulation::POISON, sizeof never_written);
    if (memcmp(p, never_written, sizeof never_written) == 0)
        emulation::misuse(EMULATED_HERE, "loads activations of a row that does not exist");
    return *p;
}

static inline uint4
load_activations(const uint4 *p, EMULATED_SITE)
{
    emulation::loaded(p, sizeof *p, EMULATED_HERE);
    return load_smem(p, file_, line_);
}

static inline void
prefetch_l2(const void *p, uint32_t bytes, uint32_t, uint32_t, EMULATED_SITE)
{
    if ((uintptr_t)p % 32 != 0 || bytes % 32 != 0 || bytes == 0)
        emulation::misuse(EMULATED_HERE, "prefetches %u bytes: the address or the size is not a multiple of 32", bytes);
    if (!emulation::on_device(p, bytes))
        emulation::misuse(EMULATED_HERE, "prefetches an address that is not device memory");
}

/* Lets other threads run first, because a thread that calls it in a loop waits for their stores. */
EMULATED_UNSEEN static inline uint32_t
load_acquire(const uint32_t *p, EMULATED_SITE)
{
    emulation::spin(EMULATED_HERE);
    emulation::atomic(p, sizeof *p, emulation::LOADS, emulation::ACQUIRES, EMULATED_HERE);
    return *(const volatile uint32_t *)p;
}

EMULATED_UNSEEN static inline void
add_release(uint32_t *p, uint32_t v, EMULATED_SITE)
{
    emulation::atomic(p, sizeof *p, emulation::CHANGES, emulation::RELEASES, EMULATED_HERE);
    *p += v;
}

EMULATED_UNSEEN static inline uint32_t
add_acquire_release(uint32_t *p, uint32_t v, EMULATED_SITE)
{
    emulation::touch(EMULATED_HERE);
    emulation::atomic(p, sizeof *p, emulation::CHANGES, emulation::ACQUIRES | emulation::RELEASES, EMULATED_HERE);
    const uint32_t was = *p;
    *p = was + v;
    return was;
}

[[noreturn]] static inline void
trap_grid(EMULATED_SITE)
{
    emulation::misuse(EMULATED_HERE, "ends the kernel");
}

static inline uint64_t
globaltimer()
{
    return clock_ns();
}

#endif
