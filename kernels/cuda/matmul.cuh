/* Products y = W x, strip by strip (layout.h).
 *
 * A strip is one block's work. Its warps share the units (of pairs of them, where weights come in pairs): warp w takes
 * units [w U / 16, (w + 1) U / 16), so which terms are added in which order depends on the shape of W alone. Then the 16
 * partial sums meet in shared memory and are added in the order of the warps.
 *
 * What a lane loads goes round a ring of registers: as soon as a unit is multiplied, its place takes the unit that the
 * warp comes to a whole ring later, in the same strip or in the next one, whose turn it then is to be waited for. So
 * loads are under way at all times, also while partial sums are added up.
 *
 * Shared memory: PRODUCT_SHARED bytes, two buffers used in turn, so that one __syncthreads() a strip is enough. */
#ifndef KERNELS_CUDA_MATMUL_CUH
#define KERNELS_CUDA_MATMUL_CUH

#include "kernels/cuda/pairs.cuh"
#include "kernels/cuda/units.cuh"

#define PRODUCT_TILES  (SWEEP_TILE / TILE)
#define PRODUCT_SHARED (2 * SWEEP_WARPS * STRIP * SWEEP_TILE * sizeof(float))

/* Matrices of one type and width that are multiplied with the same rows; their strips are taken one after the other. */
struct product {
    const struct dev_matrix *matrices[3];
    uint32_t n_matrices;
    const void *x; /* packed activations of n rows, whole tiles of them; exact: (n, cols) F32 */
    uint32_t n;
};

/* What becomes of outputs is a functor's business: it is called for pairs of packed rows g and g+8,
 *     then(matrix, row, o0, o1, y0, y1)
 * where o is an output of the matrix, or UINT32_MAX: none. Row r of a tile belongs to the threads t with
 * t / 32 % 2 == r % 2 and t % 4 == r / 2. */

/* ---- strips ---- */

struct strip_place {
    const struct dev_matrix *m;
    uint32_t matrix, strip;
};

/* The product's strip number `strip`. */
static __device__ __forceinline__ struct strip_place
find_strip(const struct product &p, uint32_t strip)
{
    struct strip_place at = {p.matrices[0], 0, strip};
    if (p.n_matrices > 1 && at.strip >= at.m->strips) {
        at = {p.matrices[1], 1, at.strip - at.m->strips};
        if (p.n_matrices > 2 && at.strip >= at.m->strips)
            at = {p.matrices[2], 2, at.strip - at.m->strips};
    }
    return at;
}

static __device__ __forceinline__ uint32_t
count_strips(const struct product &p)
{
    uint32_t n = p.matrices[0]->strips;
    n += p.n_matrices > 1 ? p.matrices[1]->strips : 0;
    return n + (p.n_matrices > 2 ? p.matrices[2]->strips : 0);
}

/* A warp's share of a strip's units. */
struct unit_share {
    uint32_t first, n;
};

static __device__ __forceinline__ struct unit_share
share_of_units(uint32_t warp, uint32_t units)
{
    const uint32_t first = warp * units / SWEEP_WARPS;
    return {first, (warp + 1) * units / SWEEP_WARPS - first};
}

/* ---- sums of warps ---- */

/* Shared memory: (SWEEP_WARPS, tiles, 2, WARP) pairs. A lane's sums are of rows 2c and 2c+1 of a tile, the second index;
 * a pair is outputs g and g+8. So both sides go through memory lane by lane. */
template <int NT>
static __device__ __forceinline__ void
put_sums(const float (&sum)[NT][4], float2 *buffer, uint32_t warp, uint32_t lane)
{
#pragma unroll
    for (int j = 0; j < NT; j++)
#pragma unroll
        for (int odd = 0; odd < 2; odd++)
            buffer[((warp * NT + j) * 2 + odd) * WARP + lane] = make_float2(sum[j][odd], sum[j][odd + 2]);
}

template <int NT>
static __device__ __forceinline__ float2
add_sums(const float2 *buffer, uint32_t thread)
{
    float2 y = buffer[thread];
#pragma unroll
    for (int w = 1; w < SWEEP_WARPS; w++) {
        const float2 more = buffer[w * NT * 2 * WARP + thread];
        y.x += more.x;
        y.y += more.y;
    }
    return y;
}

/* Outputs of the packed rows g and g+8 of a strip. */
static __device__ __forceinline__ uint2
outputs_of(const struct strip_place &at, uint32_t g)
{
    const struct dev_matrix &m = *at.m;
    uint32_t o0 = at.strip * STRIP + g, o1 = o0 + 8;
    if (m.source != NULL) {
        o0 = m.source[o0];
        o1 = m.source[o1];
    }
    return make_uint2(o0 < m.rows ? o0 : UINT32_MAX, o1 < m.rows ? o1 : UINT32_MAX);
}

/* ---- the product ---- */

/* Where a lane's activations of a tile begin. Lanes of rows that are not there read what the tiles' first row's lanes read,
 * which is near: columns of an instruction do not mix, and nobody takes theirs. */
static __device__ __forceinline__ const uint4 *
tile_activations(const struct product &p, uint32_t first_tile, uint32_t j, size_t stride, uint32_t lane)
{
    const bool there = (first_tile + j) * TILE + lane / 4 < p.n;
    return (const uint4 *)p.x + (there ? (first_tile + j) * stride + lane : first_tile * stride + lane % 4);
}

/* A ring of units times their activations, and the next ones into their places: `here` of them are multiplied and `left`
 * loaded. */
template <enum weight_type T, int NT>
static __device__ __forceinline__ void
turn_ring(unit_of<T> (&ring)[unit_of<T>::DEPTH], float (&sum)[NT][4], const uint4 *const (&x)[NT],
          const typename unit_of<T>::place &next, uint32_t here, uint32_t left)
{
    const int span = unit_of<T>::SPAN;
#pragma unroll
    for (int i = 0; i < unit_of<T>::DEPTH; i++) {
        if ((uint32_t)i < here)
#pragma unroll
            for (int j = 0; j < NT; j++) {
                uint4 b[span];
#pragma unroll
                for (int u = 0; u < span; u++)
                    b[u] = load_activations(x[j] + (i * span + u) * WARP);
                ring[i].add(b, sum[j]);
            }
        ring[i].load(next, i, (uint32_t)i < left);
    }
}

/* All strips of this block, for rows first_row and up, NT tiles of them at a time: a strip that was just read is near. */
template <enum weight_type T, int NT, class Then>
static __device__ __forceinline__ void
packed_strips(const struct product &p, uint32_t first_row, float *shared, uint32_t *turn, Then &then)
{
    const uint32_t depth = unit_of<T>::DEPTH, span = unit_of<T>::SPAN, strips = count_strips(p),
                   units = p.matrices[0]->units / span;
    const uint32_t thread = thread_here(), warp = thread / WARP, lane = thread % WARP;
    const uint32_t passes = (p.n - first_row + NT * TILE - 1) / (NT * TILE);
    const struct unit_share share = share_of_units(warp, units);
    unit_of<T> ring[unit_of<T>::DEPTH] = {};
    if (blockIdx.x >= strips)
        return;

    const struct strip_place begin = find_strip(p, blockIdx.x);
    const typename unit_of<T>::place first = unit_of<T>::place_of(*begin.m, begin.strip, share.first, lane);
#pragma unroll
    for (int i = 0; i < unit_of<T>::DEPTH; i++)
        ring[i].load(first, i, (uint32_t)i < share.n);

    for (uint32_t strip = blockIdx.x, pass = 0; strip < strips;) {
        const uint32_t tile = first_row / TILE + pass * NT, next = pass + 1 < passes ? strip : strip + gridDim.x;
        const bool owner = thread < NT * 2 * WARP;
        const struct strip_place at = find_strip(p, strip);
        const uint2 outputs = owner ? outputs_of(at, lane / 4) : make_uint2(0, 0);
        float sum[NT][4] = {};
        for (uint32_t done = 0; done < share.n; done += depth) {
            const bool more = done + depth < share.n;
            const struct strip_place from = more ? at : find_strip(p, next < strips ? next : strip);
            const uint32_t after = more ? done + depth : 0, here = share.n - done,
                           left = more || next < strips ? share.n - after : 0;
            const uint4 *x[NT];
#pragma unroll
            for (int j = 0; j < NT; j++)
                x[j] = settled(tile_activations(p, tile, j, (size_t)units * (span * WARP), lane) +
                               (size_t)(share.first + done) * (span * WARP));
            turn_ring<T, NT>(ring, sum, x, unit_of<T>::place_of(*from.m, from.strip, share.first + after, lane), here,
                             left);
        }
        float2 *buffer = (float2 *)shared + *turn * (SWEEP_WARPS * SWEEP_TILE * STRIP / 2);
        *turn ^= 1;
        put_sums<NT>(sum, buffer, warp, lane);
        __syncthreads();
        const uint32_t row = tile * TILE + thread / (2 * WARP) * TILE + lane % 4 * 2 + warp % 2;
        if (owner && row < p.n) {
            const float2 y = add_sums<NT>(buffer, thread);
            then(at.matrix, row, outputs.x, outputs.y, y.x * unit_of<T>::FACTOR, y.y * unit_of<T>::FACTOR);
        }
        pass = next == strip ? pass + 1 : 0;
        strip = next;
    }
}

/* ---- on their way into L2 ---- */

#define LINE 128 /* bytes */

/* Of what this block will read of a product: SWEEP_THREADS lines, a thread each, after `window` times as many; and the
 * scales that go with them. */
static __device__ __forceinline__ void
prefetch_product(const struct product &p, uint32_t window)
{
    const uint32_t strips = count_strips(p), thread = thread_here(), line = window * SWEEP_THREADS + thread;
    const struct dev_matrix &m = *p.matrices[0];
    if (m.type == WEIGHT_F32) /* not packed */
        return;
    const size_t quants = strip_quants(m.type, m.units), scales = strip_scales(m.type, m.units);
    const uint32_t lines = (uint32_t)(quants / LINE), scale_lines = (uint32_t)(scales / LINE);
    const uint32_t own = line / lines, last = (window * SWEEP_THREADS + SWEEP_THREADS - 1) / lines;
    if (blockIdx.x + own * gridDim.x < strips) {
        const struct strip_place at = find_strip(p, blockIdx.x + own * gridDim.x);
        prefetch_l2((const unsigned char *)at.m->quants + at.strip * quants + (size_t)(line % lines) * LINE);
    }
    const uint32_t first = window * SWEEP_THREADS / lines, which = scale_lines > 0 ? first + thread / scale_lines : 0;
    if (scale_lines > 0 && which <= last && blockIdx.x + which * gridDim.x < strips) {
        const struct strip_place at = find_strip(p, blockIdx.x + which * gridDim.x);
        prefetch_l2((const unsigned char *)at.m->scales + at.strip * scales + (size_t)(thread % scale_lines) * LINE);
    }
}

#endif
