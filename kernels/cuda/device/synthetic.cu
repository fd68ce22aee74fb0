/* Synthetic weights, computed on the device, so that nothing is copied and large models load quickly. */
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/ptx.cuh"

#define SYNTHETIC_THREADS 256
#define WORDS             (UNIT / SYNTHETIC_WORD) /* hashes per row of a unit */

/* Stores element (row, k) of the matrix, n times the scale; `row` is a packed row. */
static __device__ __forceinline__ void
put_element(const struct dev_matrix &m, enum weight_type from, float scale, uint32_t row, uint32_t k, int n)
{
    const size_t unit = (size_t)(row / STRIP) * m.units + k / UNIT, at = unit * (STRIP * UNIT);
    const uint32_t r = row % STRIP, within = k % UNIT;
    const float plain = (float)n * scale, x = from == WEIGHT_BF16 ? unpack_bf16s(pack_bf16s(plain, 0)).x : plain;
    switch (m.type) {
    case WEIGHT_F32:
        if (k < m.cols)
            ((float *)m.quants)[(size_t)row * m.cols + k] = x;
        break;
    case WEIGHT_Q8_0: ((int8_t *)m.quants)[at + unit_place(r, within)] = (int8_t)n; break;
    case WEIGHT_BF16: ((uint16_t *)m.quants)[at + unit_place_16(r, within)] = (uint16_t)pack_bf16s(x, 0); break;
    default: ((uint16_t *)m.quants)[at + unit_place_16(r, within)] = half_bits(x);
    }
}

/* Each thread computes eight columns of a packed row. */
static __global__ void
__launch_bounds__(SYNTHETIC_THREADS) make_synthetic(struct synthetic_args a)
{
    const struct dev_matrix &m = a.to;
    const size_t i = (size_t)blockIdx.x * SYNTHETIC_THREADS + threadIdx.x;
    const uint32_t word = (uint32_t)(i % WORDS), r = (uint32_t)(i / WORDS % STRIP);
    const size_t unit = i / (WORDS * STRIP);
    if (unit >= (size_t)m.strips * m.units)
        return;
    const uint32_t packed = (uint32_t)(unit / m.units) * STRIP + r, u = (uint32_t)(unit % m.units);
    const uint32_t output = m.source != NULL ? m.source[packed] : packed;
    const bool there = output < m.rows;
    const uint32_t part = there && output >= a.first ? 1 : 0, row = output - (part ? a.first : 0);
    const struct synthetic p = a.parts[part];
    const uint64_t n = there ? synthetic_word(&p, row, u * WORDS + word) : 0;
    for (uint32_t b = 0; b < SYNTHETIC_WORD; b++) {
        const uint32_t k = u * UNIT + word * SYNTHETIC_WORD + b;
        put_element(m, a.from[part], p.scale, packed, k, k < m.cols ? (int8_t)(n >> (8 * b) & 0xff) : 0);
    }
    if (m.type == WEIGHT_Q8_0 && word == 0)
        ((uint16_t *)m.scales)[unit * STRIP + r % 8 * 2 + r / 8] = there && u * UNIT < m.cols ? half_bits(p.scale) : 0;
}

extern "C" cudaError_t
launch_synthetic(struct synthetic_args a, cudaStream_t stream)
{
    const size_t threads = (size_t)a.to.strips * a.to.units * STRIP * WORDS;
    return launch(make_synthetic, (unsigned)((threads + SYNTHETIC_THREADS - 1) / SYNTHETIC_THREADS), SYNTHETIC_THREADS,
                  a, stream);
}
