/* Keys and values in a KV cache: F16, or F32 if exact. A slot's heads are consecutive, each padded with zeros to whole
 * loads of 16 bytes, so that loads need no bounds checks. */
#pragma once

#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/device/ptx.cuh"

#define HALF_MOST 65504.0f

/* Stores element o, counted over all heads, of a slot of layer l. F16 numbers are clamped to the finite ones (NaN to
 * -HALF_MOST), because attention multiplies the values of positions that a row does not see by 0. */
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
        ((uint16_t *)keys_or_values)[at] = half_bits(fminf(fmaxf(x, -HALF_MOST), HALF_MOST));
}
