/* The head for many rows: 33 and more, as probes of many layers are. What strip by strip (matmul.cuh) would read the
 * activations again for each strip is here a matrix product in tiles: a block takes TILE_STRIPS strips and TILE_TILES
 * tiles of 8 rows, its warps two strips and eight tiles each. Weights go from memory to registers, activations through
 * shared memory, two units at a time and two ahead.
 *
 * The bits are those of a strip: a share of units (there a warp's) is summed up from zero, the shares' sums are added in
 * their order. */
#ifndef KERNELS_CUDA_DEVICE_HEAD_TILE_CUH
#define KERNELS_CUDA_DEVICE_HEAD_TILE_CUH

#include "kernels/cuda/device/matmul.cuh"

#define WARP_STRIPS  2
#define WARP_TILES   8
#define STRIP_WARPS  4 /* warps side by side over strips */
#define TILE_WARPS   2 /* and over rows */
#define TILE_STRIPS  (STRIP_WARPS * WARP_STRIPS)
#define TILE_TILES   (TILE_WARPS * WARP_TILES)
#define TILE_THREADS (STRIP_WARPS * TILE_WARPS * WARP)
#define STAGE_UNITS  (PAIR / UNIT)
#define STAGE_PARTS  (TILE_TILES * STAGE_UNITS * WARP) /* of 16 bytes */

/* Where the share of units that `unit` lies in ends, `share` being that share or one before it. */
static __device__ __forceinline__ uint32_t
share_end(uint32_t unit, uint32_t units, uint32_t *share)
{
    while ((*share + 1) * units / SWEEP_WARPS <= unit)
        ++*share;
    return (*share + 1) * units / SWEEP_WARPS;
}

/* What a thread of a block's tile works on: strips `strip` and up, the block's tiles `own_tile` and up. */
struct tile_place {
    uint32_t strip, own_tile;
    uint32_t first_tile, tiles; /* of the block; of all rows */
    uint32_t lane;
};

static __device__ __forceinline__ struct tile_place
tile_place_of(uint32_t n, uint32_t first_strip, uint32_t first_tile)
{
    const uint32_t warp = threadIdx.x / WARP;
    return {first_strip + warp % STRIP_WARPS * WARP_STRIPS, warp / STRIP_WARPS * WARP_TILES, first_tile,
            (n + TILE - 1) / TILE, threadIdx.x % WARP};
}

/* The stage that begins with unit `first`, on its way: weights of STAGE units, activations. */
template <enum weight_type T, uint32_t STAGE>
static __device__ __forceinline__ void
load_stage(const struct dev_matrix &m, const uint4 *x, const struct tile_place &at, uint32_t first,
           unit_of<T> (&next)[STAGE][WARP_STRIPS], uint4 (&coming)[STAGE_PARTS / TILE_THREADS])
{
    const uint32_t span = unit_of<T>::SPAN;
#pragma unroll
    for (uint32_t s = 0; s < WARP_STRIPS; s++) {
        const typename unit_of<T>::place from = unit_of<T>::place_of(m, at.strip + s, first, at.lane);
#pragma unroll
        for (uint32_t u = 0; u < STAGE; u++)
            next[u][s].load(from, u, first + u < m.units / span && at.strip + s < m.strips);
    }
#pragma unroll
    for (uint32_t i = 0; i < STAGE_PARTS / TILE_THREADS; i++) {
        const uint32_t part = i * TILE_THREADS + threadIdx.x, in_tile = part % (STAGE_UNITS * WARP),
                       tile = at.first_tile + part / (STAGE_UNITS * WARP);
        if (tile < at.tiles) /* there is always a whole stage of them: layout.h, units_of() */
            coming[i] = x[((size_t)tile * m.units + first * span) * WARP + in_tile];
    }
}

/* Unit `u` of the stage in shared memory, times its weights. */
template <enum weight_type T>
static __device__ __forceinline__ void
multiply_unit(unit_of<T> (&weights)[WARP_STRIPS], const uint4 *stage, const struct tile_place &at, uint32_t u,
              float (&sum)[WARP_STRIPS][WARP_TILES][4])
{
    const uint32_t span = unit_of<T>::SPAN;
#pragma unroll
    for (uint32_t j = 0; j < WARP_TILES; j++) {
        if (at.first_tile + at.own_tile + j >= at.tiles)
            break;
        uint4 b[span];
#pragma unroll
        for (uint32_t i = 0; i < span; i++)
            b[i] = stage[((at.own_tile + j) * STAGE_UNITS + u * span + i) * WARP + at.lane];
#pragma unroll
        for (uint32_t s = 0; s < WARP_STRIPS; s++)
            weights[s].add(b, sum[s][j]);
    }
}

/* A share's sums join the total. */
static __device__ __forceinline__ void
end_share(float (&sum)[WARP_STRIPS][WARP_TILES][4], float (&total)[WARP_STRIPS][WARP_TILES][4])
{
#pragma unroll
    for (uint32_t s = 0; s < WARP_STRIPS; s++)
#pragma unroll
        for (uint32_t j = 0; j < WARP_TILES; j++)
#pragma unroll
            for (uint32_t i = 0; i < 4; i++) {
                total[s][j][i] += sum[s][j][i];
                sum[s][j][i] = 0;
            }
}

/* y (n, m.rows) gets this warp's outputs. */
static __device__ __forceinline__ void
put_totals(const struct dev_matrix &m, const struct tile_place &at, uint32_t n, float factor,
           const float (&total)[WARP_STRIPS][WARP_TILES][4], float *y)
{
    const uint32_t g = at.lane / 4, c = at.lane % 4;
#pragma unroll
    for (uint32_t s = 0; s < WARP_STRIPS; s++)
#pragma unroll
        for (uint32_t half = 0; half < 2; half++) {
            const uint32_t packed = (at.strip + s) * STRIP + half * 8 + g;
            const uint32_t o = at.strip + s >= m.strips ? UINT32_MAX : m.source != NULL ? m.source[packed] : packed;
            if (o >= m.rows)
                continue;
#pragma unroll
            for (uint32_t j = 0; j < WARP_TILES; j++)
#pragma unroll
                for (uint32_t i = 0; i < 2; i++) {
                    const uint32_t row = (at.first_tile + at.own_tile + j) * TILE + 2 * c + i;
                    if (row < n)
                        y[(size_t)row * m.rows + o] = total[s][j][half * 2 + i] * factor;
                }
        }
}

/* Rows [8 first_tile, ...) of x (tiles * 8 rows) by strips first_strip..: to y (n, m.rows). */
template <enum weight_type T>
static __device__ __forceinline__ void
multiply_tile(const struct dev_matrix &m, const uint4 *x, uint32_t n, float *y, uint32_t first_strip,
              uint32_t first_tile, uint4 (*stage)[STAGE_PARTS])
{
    const uint32_t span = unit_of<T>::SPAN, stage_units = STAGE_UNITS / span; /* of weights, in a stage */
    const uint32_t units = m.units / span;
    const struct tile_place at = tile_place_of(n, first_strip, first_tile);
    float sum[WARP_STRIPS][WARP_TILES][4] = {}, total[WARP_STRIPS][WARP_TILES][4] = {};
    unit_of<T> now[stage_units][WARP_STRIPS] = {}, next[stage_units][WARP_STRIPS] = {};
    uint4 coming[STAGE_PARTS / TILE_THREADS];
    uint32_t share = 0;
    load_stage<T, stage_units>(m, x, at, 0, next, coming);
    for (uint32_t first = 0, turn = 0; first < units; first += stage_units, turn ^= 1) {
#pragma unroll
        for (uint32_t i = 0; i < STAGE_PARTS / TILE_THREADS; i++)
            stage[turn][i * TILE_THREADS + threadIdx.x] = coming[i];
#pragma unroll
        for (uint32_t u = 0; u < stage_units; u++)
#pragma unroll
            for (uint32_t s = 0; s < WARP_STRIPS; s++)
                now[u][s] = next[u][s];
        __syncthreads(); /* the stage is there, and nobody reads the one before the last any more */
        if (first + stage_units < units)
            load_stage<T, stage_units>(m, x, at, first + stage_units, next, coming);
#pragma unroll
        for (uint32_t u = 0; u < stage_units; u++) {
            multiply_unit<T>(now[u], stage[turn], at, u, sum);
            if (first + u + 1 >= share_end(first + u, units, &share))
                end_share(sum, total);
        }
    }
    put_totals(m, at, n, unit_of<T>::FACTOR, total, y);
}

#endif
