/* Rows on their way in: embeddings out of packed weights, trunk tables. */
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/ptx.cuh"

#define EMBED_THREADS 256

struct embed_args {
    const struct dev_model *model;
    struct dev_store store;
    const struct row *rows;
};

/* The same of a matrix that is packed by pairs of units (layout.h). */
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

/* Element (row, k) of a matrix that is not permuted. */
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

static __global__ void
__launch_bounds__(EMBED_THREADS) embed_rows(struct embed_args a)
{
    const struct dev_model &m = *a.model;
    const struct row &row = a.rows[blockIdx.x];
    float *to = a.store.hidden + (size_t)row.ring * (m.n_layers + 1) * m.width;
    for (uint32_t k = threadIdx.x; k < m.width; k += EMBED_THREADS)
        to[k] = element(m.embedding, (uint32_t)row.token, k);
}

struct trunk_args {
    slot_t *to;
    const slot_t *from;
    uint32_t n;
};

static __global__ void
__launch_bounds__(EMBED_THREADS) write_trunk(struct trunk_args a)
{
    const uint32_t i = blockIdx.x * EMBED_THREADS + threadIdx.x;
    if (i < a.n)
        a.to[i] = a.from[i];
}

extern "C" cudaError_t
launch_embed(const struct dev_model *model, struct dev_store store, const struct row *rows, uint32_t n,
             cudaStream_t stream)
{
    const struct embed_args a = {model, store, rows};
    return launch(embed_rows, n, EMBED_THREADS, a, stream);
}

extern "C" cudaError_t
launch_trunk(struct dev_store store, seq_t seq, uint32_t first, const slot_t *slots, uint32_t n, cudaStream_t stream)
{
    const struct trunk_args a = {store.trunk + (size_t)seq * store.trunk_room + first, slots, n};
    return launch(write_trunk, (n + EMBED_THREADS - 1) / EMBED_THREADS, EMBED_THREADS, a, stream);
}
