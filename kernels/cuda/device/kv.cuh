/* Keys and values in a KV cache: F16, or F32 if exact. A slot's heads are consecutive, each padded with zeros to whole
 * loads of 16 bytes, so that loads need no bounds checks. */
#ifndef KERNELS_CUDA_DEVICE_KV_CUH
#define KERNELS_CUDA_DEVICE_KV_CUH

#include <type_traits>

#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/device/ptx.cuh"

/* ---- elements of a load ---- */

static __device__ __forceinline__ void
numbers_of(const uint2 &v, uint16_t, float (&x)[4])
{
    const float2 low = unpack_halves(v.x), high = unpack_halves(v.y);
    x[0] = low.x, x[1] = low.y, x[2] = high.x, x[3] = high.y;
}

static __device__ __forceinline__ void
numbers_of(const uint4 &v, uint16_t, float (&x)[8])
{
    const float2 a = unpack_halves(v.x), b = unpack_halves(v.y), c = unpack_halves(v.z), d = unpack_halves(v.w);
    x[0] = a.x, x[1] = a.y, x[2] = b.x, x[3] = b.y, x[4] = c.x, x[5] = c.y, x[6] = d.x, x[7] = d.y;
}

static __device__ __forceinline__ void
numbers_of(const uint4 &v, float, float (&x)[4])
{
    x[0] = __uint_as_float(v.x), x[1] = __uint_as_float(v.y);
    x[2] = __uint_as_float(v.z), x[3] = __uint_as_float(v.w);
}

/* ---- what a lane has of a value: DIMS elements side by side ---- */

template <class KV, int DIMS> struct lane_values { /* 8 bytes, 16, or 32 */
    using word = typename std::conditional<sizeof(KV) * DIMS == sizeof(uint2), uint2, uint4>::type;
    static const int PER = sizeof(word) / sizeof(KV), LOADS = DIMS / PER;
    word v[LOADS];
    __device__ __forceinline__ void
    load(const KV *from)
    {
#pragma unroll
        for (int i = 0; i < LOADS; i++)
            load_state(&v[i], from + i * PER);
    }
    __device__ __forceinline__ void
    numbers(float (&x)[DIMS]) const
    {
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            float part[PER];
            numbers_of(v[i], KV(), part);
#pragma unroll
            for (int d = 0; d < PER; d++)
                x[i * PER + d] = part[d];
        }
    }
};

/* Stores element o, counted over all heads, of a slot of layer l. */
static __device__ __forceinline__ void
put_kv(const struct dev_model &m, const struct dev_kv_cache &s, void *keys_or_values, uint32_t l, slot_t slot,
       uint32_t o, float x)
{
    const uint32_t dim = m.head_dim, room = head_room(dim);
    const size_t at =
        ((size_t)(l - 1) * s.slots + slot) * m.kv_heads * room + (room == dim ? o : o / dim * room + o % dim);
    if (m.exact)
        ((float *)keys_or_values)[at] = x;
    else
        ((uint16_t *)keys_or_values)[at] = half_bits(x);
}

#endif
