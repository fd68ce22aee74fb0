/* Single elements of packed weights. */
#ifndef KERNELS_CUDA_DEVICE_ELEMENT_CUH
#define KERNELS_CUDA_DEVICE_ELEMENT_CUH

#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/device/ptx.cuh"

/* Of a matrix that is packed by pairs of units (layout.h). */
static __device__ __forceinline__ float
pair_element(const struct dev_matrix &m, uint32_t row, uint32_t k)
{
    const uint32_t r = row % STRIP, second = r / 8, unit = k % PAIR / UNIT, within = k % UNIT, pairs = m.units / 2;
    const size_t strip = row / STRIP, pair = k / PAIR;
    const uint8_t *quants = (const uint8_t *)m.quants + strip * strip_quants(m.type, m.units),
                  *scales = (const uint8_t *)m.scales + strip * strip_scales(m.type, m.units);
    const uint16_t *d = (const uint16_t *)(scales + pairs * PAIR_SCALES) +
                        (k / SUPER * STRIP + r % 8 * 2 + second) * super_scales(m.type);
    const uint8_t *at = quants + pair * (strip_quants(m.type, m.units) / pairs);
    const int low = at[nibble_place(r, within)] >> (4 * unit) & 15;
    scales += pair * PAIR_SCALES + r % 8 * 8;
    if (m.type == WEIGHT_Q4_0)
        return half_value(((const uint16_t *)scales)[unit * 2 + second]) * (float)(low - 8);
    scales += second * 4;
    if (m.type == WEIGHT_Q4_K)
        return fmaf(half_value(d[0]) * (float)scales[unit], (float)low, -(half_value(d[1]) * (float)scales[2 + unit]));
    const int high = at[PAIR_NIBBLES + high_place(r, within)] >> (4 * unit + 2 * second) & 3;
    return half_value(d[0]) * (float)(int8_t)scales[k % PAIR / 16] * (float)((low | high << 4) - 32);
}

/* Element (row, k) of a matrix, `row` being a packed one. */
static __device__ __forceinline__ float
element(const struct dev_matrix &m, uint32_t row, uint32_t k)
{
    const uint32_t r = row % STRIP, within = k % UNIT;
    const size_t unit = (size_t)(row / STRIP) * m.units + k / UNIT, place = unit * (STRIP * UNIT);
    switch (m.type) {
    case WEIGHT_F32: return ((const float *)m.quants)[(size_t)row * m.cols + k];
    case WEIGHT_Q4_0:
    case WEIGHT_Q4_K:
    case WEIGHT_Q6_K: return pair_element(m, row, k);
    case WEIGHT_BF16: return unpack_bf16s(((const uint16_t *)m.quants)[place + unit_place_16(r, within)]).x;
    case WEIGHT_Q8_0:
        return (float)((const int8_t *)m.quants)[place + unit_place(r, within)] *
               half_value(((const uint16_t *)m.scales)[unit * STRIP + r % 8 * 2 + r / 8]);
    default: return half_value(((const uint16_t *)m.quants)[place + unit_place_16(r, within)]);
    }
}

#endif
