/* Products of many rows, as in prefill and in probes of many layers. Strip by strip (matmul.cuh) such a product would
 * read the activations again for each strip, so here it is cut into tiles of 8 strips and 64 rows. A block's warps
 * multiply one strip and four tiles of 8 rows each. Weights are loaded from memory to registers. Activations pass
 * through shared memory, two units at a time and two ahead.
 *
 * The results have the same bits as those of strips: each share of units (in matmul.cuh a warp's) is summed from zero,
 * and the shares' sums are added in order. */
#pragma once

#include "kernels/cuda/device/matmul.cuh"

#define TILE_STRIPS 8
#define WARP_TILES  4
#define TILE_TILES  (BLOCK_WARPS / TILE_STRIPS * WARP_TILES)
#define STAGE_UNITS (PAIR / UNIT)
#define STAGE_PARTS (TILE_TILES * STAGE_UNITS * WARP)     /* of 16 bytes: one for each thread */
#define TILE_PAIRS  (TILE_STRIPS * TILE_TILES * 2 * WARP) /* pairs of outputs g and g+8 */

struct tile_shared {
    uint4 stage[2][STAGE_PARTS];
    float2 sums[TILE_PAIRS]; /* (strips, tiles, odd rows, lanes) */
};
static_assert(STAGE_PARTS == BLOCK_THREADS, "a stage is one load of each thread");
static_assert(sizeof(struct tile_shared) <= PRODUCT_SHARED, "a product's shared memory");

static __device__ __forceinline__ uint32_t
tiles_across(const struct product &p)
{
    return (count_strips(p) + TILE_STRIPS - 1) / TILE_STRIPS;
}

static __device__ __forceinline__ uint32_t
tiles_down(const struct product &p)
{
    return (p.n + TILE_TILES * TILE - 1) / (TILE_TILES * TILE);
}

/* Returns whether tiles are faster than strips: whether they occupy most blocks. */
static __device__ __forceinline__ bool
tiles_pay(const struct product &p)
{
    return !p.by_expert && p.n > PASS_ROWS && 2 * tiles_across(p) * tiles_down(p) > gridDim.x;
}

/* Returns the end of the share of units that contains `unit`; `share` is that share or the one before it. */
static __device__ __forceinline__ uint32_t
share_end(uint32_t unit, uint32_t units, uint32_t *share)
{
    while ((*share + 1) * units / BLOCK_WARPS <= unit)
        ++*share;
    return (*share + 1) * units / BLOCK_WARPS;
}

/* A warp's part of a tile: one strip, and tiles of rows from `own` on; `there`: the strip exists. */
struct tile_place {
    struct strip_place strip;
    bool there;
    uint32_t first_tile, tiles; /* of the block; of all rows */
    uint32_t own, lane;
};

/* Starts the loads of the stage that begins with unit `first`: weights of STAGE units, and this thread's
 * activations. */
template <enum weight_type T, uint32_t STAGE>
static __device__ __forceinline__ void
load_stage(const uint4 *x, const struct tile_place &at, uint32_t first, unit_of<T> (&next)[STAGE], uint4 *coming)
{
    const struct dev_matrix &m = *at.strip.m;
    const uint32_t span = unit_of<T>::SPAN, part = thread_here(), tile = at.first_tile + part / (STAGE_UNITS * WARP);
    const typename unit_of<T>::place from = unit_of<T>::place_of(m, at.strip.strip, first, at.lane);
#pragma unroll
    for (uint32_t u = 0; u < STAGE; u++)
        next[u].load(from, u, at.there && first + u < m.units / span);
    if (tile < at.tiles) /* a stage is always complete; see layout.h, units_of() */
        load_state(coming, x + ((size_t)tile * m.units + first * span) * WARP + part % (STAGE_UNITS * WARP));
}

/* Multiplies unit `u` of the stage in shared memory with its weights. */
template <enum weight_type T>
static __device__ __forceinline__ void
multiply_unit(const unit_of<T> &weights, const uint4 *stage, const struct tile_place &at, uint32_t u,
              float (&sum)[WARP_TILES][4])
{
    const uint32_t span = unit_of<T>::SPAN;
#pragma unroll
    for (uint32_t j = 0; j < WARP_TILES; j++) {
        if (at.first_tile + at.own + j >= at.tiles)
            break;
        uint4 b[span];
#pragma unroll
        for (uint32_t i = 0; i < span; i++)
            b[i] = stage[((at.own + j) * STAGE_UNITS + u * span + i) * WARP + at.lane];
        weights.add(b, sum[j]);
    }
}

/* Sums up a warp's part of a tile. */
template <enum weight_type T>
static __device__ __forceinline__ void
sum_tile(const uint4 *x, const struct tile_place &at, struct tile_shared *shared, float (&total)[WARP_TILES][4])
{
    const uint32_t span = unit_of<T>::SPAN, stage_units = STAGE_UNITS / span; /* of weights, in a stage */
    const uint32_t units = at.strip.m->units / span;
    float sum[WARP_TILES][4] = {};
    unit_of<T> now[stage_units] = {}, next[stage_units] = {};
    uint4 coming = {};
    uint32_t share = 0;
    load_stage<T, stage_units>(x, at, 0, next, &coming);
    for (uint32_t first = 0, buffer_index = 0; first < units;
         first += stage_units, buffer_index = parity(buffer_index + 1)) {
        shared->stage[buffer_index][thread_here()] = coming;
#pragma unroll
        for (uint32_t u = 0; u < stage_units; u++)
            now[u] = next[u];
        __syncthreads(); /* the stage is complete, and the one before the previous is no longer read */
        if (first + stage_units < units)
            load_stage<T, stage_units>(x, at, first + stage_units, next, &coming);
#pragma unroll
        for (uint32_t u = 0; u < stage_units; u++) {
            multiply_unit<T>(now[u], shared->stage[buffer_index], at, u, sum);
            if (first + u + 1 < share_end(first + u, units, &share))
                continue;
#pragma unroll
            for (uint32_t j = 0; j < WARP_TILES; j++)
#pragma unroll
                for (uint32_t i = 0; i < 4; i++) {
                    total[j][i] += sum[j][i];
                    sum[j][i] = 0;
                }
        }
    }
}

/* Multiplies rows [8 first_tile, …) with strips from first_strip on, and calls the functor as strips do
 * (matmul.cuh). */
template <enum weight_type T, class Then>
static __device__ __forceinline__ void
multiply_tile(const struct product &p, uint32_t first_strip, uint32_t first_tile, struct tile_shared *shared,
              Then &then)
{
    const uint32_t thread = thread_here(), warp = thread / WARP, lane = thread % WARP, strips = count_strips(p);
    const uint32_t own = warp / TILE_STRIPS * WARP_TILES, own_strip = first_strip + warp % TILE_STRIPS;
    const struct tile_place at = {find_strip(p, own_strip < strips ? own_strip : 0),
                                  own_strip < strips,
                                  first_tile,
                                  (p.n + TILE - 1) / TILE,
                                  own,
                                  lane};
    float total[WARP_TILES][4] = {};
    sum_tile<T>((const uint4 *)p.x, at, shared, total);
#pragma unroll
    for (uint32_t j = 0; j < WARP_TILES; j++)
#pragma unroll
        for (uint32_t odd = 0; odd < 2; odd++)
            shared->sums[((warp % TILE_STRIPS * TILE_TILES + own + j) * 2 + odd) * WARP + lane] =
                make_float2(total[j][odd], total[j][odd + 2]);
    __syncthreads(); /* the barriers of the next tile's stages separate this from its sums */
#pragma unroll 1
    for (uint32_t u = thread; u < TILE_PAIRS; u += BLOCK_THREADS) {
        const uint32_t strip = first_strip + u / (TILE_TILES * 2 * WARP),
                       tile = first_tile + u / (2 * WARP) % TILE_TILES, row = tile * TILE + u % 4 * 2 + u / WARP % 2;
        if (strip >= strips || row >= p.n)
            continue;
        const struct strip_place place = find_strip(p, strip);
        const uint2 outputs = own_outputs(place, look_up_outputs(place, u % WARP / 4, true));
        const float2 y = shared->sums[u];
        then(place.matrix, row, outputs.x, outputs.y, y.x * unit_of<T>::FACTOR, y.y * unit_of<T>::FACTOR);
    }
}

/* Multiplies all tiles of this block. Blocks that share weights work on them at the same time. */
template <enum weight_type T, class Then>
static __device__ __forceinline__ void
all_tiles(const struct product &p, struct tile_shared *shared, Then &then)
{
    const uint32_t down = tiles_down(p), n = down * tiles_across(p);
    for (uint32_t u = blockIdx.x; u < n; u += gridDim.x)
        multiply_tile<T>(p, u / down * TILE_STRIPS, u % down * TILE_TILES, shared, then);
}
