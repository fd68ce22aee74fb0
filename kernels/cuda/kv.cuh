/* Keys and values in a store: F16, or F32 when exact; a slot's heads one after the other. */
#ifndef KERNELS_CUDA_KV_CUH
#define KERNELS_CUDA_KV_CUH

#include "kernels/cuda/layout.h"
#include "kernels/cuda/ptx.cuh"

static __device__ __forceinline__ float
kv_value(uint16_t x)
{
    return half_value(x);
}

static __device__ __forceinline__ float
kv_value(float x)
{
    return x;
}

/* 4 elements at an address that fits them. */
static __device__ __forceinline__ void
load_four(const uint16_t *p, float *x)
{
    const uint2 v = *(const uint2 *)p;
    const float2 low = unpack_halves(v.x), high = unpack_halves(v.y);
    x[0] = low.x, x[1] = low.y, x[2] = high.x, x[3] = high.y;
}

static __device__ __forceinline__ void
load_four(const float *p, float *x)
{
    const float4 v = *(const float4 *)p;
    x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
}

static __device__ __forceinline__ void
load_eight(const uint16_t *p, float *x)
{
    const uint4 v = *(const uint4 *)p;
    const float2 a = unpack_halves(v.x), b = unpack_halves(v.y), c = unpack_halves(v.z), d = unpack_halves(v.w);
    x[0] = a.x, x[1] = a.y, x[2] = b.x, x[3] = b.y, x[4] = c.x, x[5] = c.y, x[6] = d.x, x[7] = d.y;
}

static __device__ __forceinline__ void
load_eight(const float *p, float *x)
{
    load_four(p, x);
    load_four(p + 4, x + 4);
}

/* Elements [d, d + N) of a head, N = 4 or 8; 0 behind its end. Heads whose length N divides lie at multiples of N. */
template <int N, class KV>
static __device__ __forceinline__ void
load_values(const KV *head, uint32_t d, uint32_t dim, float (&x)[N])
{
    if (dim % N == 0 && d < dim) {
        if (N == 8)
            load_eight(head + d, x);
        else
            load_four(head + d, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        x[i] = d + i < dim ? kv_value(head[d + i]) : 0;
}

/* Element o of a slot of layer l. */
static __device__ __forceinline__ void
put_kv(const struct dev_model &m, const struct dev_store &s, void *keys_or_values, uint32_t l, slot_t slot, uint32_t o,
       float x)
{
    const size_t at = ((size_t)(l - 1) * s.slots + slot) * m.kv_heads * m.head_dim + o;
    if (m.exact)
        ((float *)keys_or_values)[at] = x;
    else
        ((uint16_t *)keys_or_values)[at] = half_bits(x);
}

#endif
