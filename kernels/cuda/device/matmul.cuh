/* Products y = W x, strip by strip (layout.h).
 *
 * A block multiplies a strip. Its warps share the units (or pairs of units, for weights that come in pairs): warp w
 * takes units [w U / 16, (w + 1) U / 16). So the terms and the order of their addition depend only on the shape of W.
 * Then the 16 partial sums are written to shared memory and added in the order of the warps.
 *
 * A lane loads units into a ring of registers. When a unit has been multiplied, its register is loaded with the unit
 * that the warp multiplies one ring later, in the same strip or in the next one. So loads are always in flight, also
 * while partial sums are added.
 *
 * A turn is a strip with some tiles of rows. Two warps per tile own it. Only they wait for all partial sums, add them
 * and process the outputs. The other warps continue with the next turn, which has other owners.
 *
 * Shared memory: PRODUCT_SHARED bytes, two buffers used alternately. A buffer is written again after its owners have
 * read it. A __syncthreads() separates two products. With one tile of rows the buffers end at SMEM_AT. */
#pragma once

#include "kernels/cuda/device/block.cuh"
#include "kernels/cuda/device/norm.cuh"
#include "kernels/cuda/device/units.cuh"

#define RING_AHEAD     4 /* units of a tile's activations that a lane loads together */
#define PRODUCT_TILES  (PASS_ROWS / TILE)
#define PRODUCT_SHARED (2 * BLOCK_WARPS * STRIP * PASS_ROWS * sizeof(float))

/* Matrices of one type and width that are multiplied with the same rows; their strips are processed in order. */
struct product {
    const struct dev_matrix *matrices[3];
    uint32_t n_matrices;
    const void *x; /* packed activations of n rows, whole tiles of them; exact: (n, cols) F32 */
    uint32_t n;
    bool in_smem;                                         /* x is in shared memory (norm.cuh) */
    bool by_expert = false, shared = false, down = false; /* the matrix is a stack of experts: block_rows */
    const struct dev_kv_cache *kv_cache = NULL;           /* contains the assignment of rows to experts */
};

/* A functor processes the outputs. It is called for pairs of packed rows g and g+8 as
 *     then(matrix, row, o0, o1, y0, y1)
 * where o is an output of the matrix, or UINT32_MAX if there is none.
 * Row r of a tile belongs to the threads t with t / 32 % 2 == r % 2 and t % 4 == r / 2. */

/* ---- strips ---- */

/* A strip of a product and the rows that it is multiplied with. */
struct strip_place {
    const struct dev_matrix *m;
    uint32_t matrix, strip; /* number of the matrix; of the strip, for its outputs */
    uint32_t packed;        /* number of the strip in the matrix's memory; differs from `strip` in stacks of experts */
    uint32_t first, n;      /* the functor's numbers of the rows: [first, first + n); n is set for experts only */
};

/* Returns the product's strip number `strip`. */
static __device__ __forceinline__ struct strip_place
find_strip(const struct product &p, uint32_t strip)
{
    const struct dev_matrix *m = p.matrices[0];
    uint32_t matrix = 0;
    if (p.n_matrices > 1 && strip >= m->strips) {
        strip -= m->strips;
        m = p.matrices[matrix = 1];
        if (p.n_matrices > 2 && strip >= m->strips) {
            strip -= m->strips;
            m = p.matrices[matrix = 2];
        }
    }
    return {m, matrix, strip, strip, 0, 0};
}

static __device__ __forceinline__ uint32_t
count_strips(const struct product &p)
{
    uint32_t n = p.matrices[0]->strips;
    n += p.n_matrices > 1 ? p.matrices[1]->strips : 0;
    return n + (p.n_matrices > 2 ? p.matrices[2]->strips : 0);
}

/* ---- sums of warps ---- */

/* Shared memory has (BLOCK_WARPS, tiles, 2, WARP) pairs. A lane's sums belong to rows 2c and 2c+1 of a tile, the second
 * index; a pair is outputs g and g+8. So both the writers and the readers access memory in the order of lanes. */
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
    for (int w = 1; w < BLOCK_WARPS; w++) {
        const float2 more = buffer[w * NT * 2 * WARP + thread];
        y.x += more.x;
        y.y += more.y;
    }
    return y;
}

/* Numbers of the first buffer's named barriers; the second buffer's are larger by one. */
enum { BUFFER_FULL = 1, BUFFER_READ = 3, BUFFER_FREE = 5 };

/* Returns the number of a thread among the owners of a turn; other threads have numbers from NT * 2 * WARP on. */
template <int NT>
static __device__ __forceinline__ uint32_t
owner_number(uint32_t turn, uint32_t thread)
{
    return (thread - turn * (NT * 2 * WARP)) % BLOCK_THREADS;
}

/* Waits until the owners of a turn have read its buffer; the owners themselves do not wait. */
template <int NT>
static __device__ __forceinline__ void
wait_for_owners(uint32_t turn, uint32_t thread)
{
    if (owner_number<NT>(turn, thread) >= NT * 2 * WARP)
        barrier_sync(BUFFER_FREE + parity(turn), BLOCK_THREADS);
}

/* Starts to read the outputs of packed rows g and g+8 of a strip, so that no thread waits before own_outputs(). */
static __device__ __forceinline__ uint2
look_up_outputs(const struct strip_place &at, uint32_t g, bool take)
{
    uint2 o = make_uint2(at.strip * STRIP + g, at.strip * STRIP + g + 8);
    const uint32_t *const source = at.m->source + o.x;
    const bool permuted = take && at.m->source != NULL;
    load_weights(&o.x, source, permuted);
    load_weights(&o.y, source + 8, permuted);
    return o;
}

/* Returns the outputs; UINT32_MAX: no output of the matrix. */
static __device__ __forceinline__ uint2
own_outputs(const struct strip_place &at, uint2 o)
{
    return make_uint2(o.x < at.m->rows ? o.x : UINT32_MAX, o.y < at.m->rows ? o.y : UINT32_MAX);
}

/* ---- the product ---- */

/* Units in a ring. With four tiles of rows, types with scales are bound by instructions, so half of the loads are
 * enough, and sums get the registers. */
template <enum weight_type T, int NT>
constexpr int ring_units = unit_of<T>::DEPTH / (NT == PRODUCT_TILES && T != WEIGHT_F16 && T != WEIGHT_BF16 ? 2 : 1);

/* Loads a lane's activations of several units, for all tiles. */
template <int NT, int N, bool SMEM>
static __device__ __forceinline__ void
load_units(uint4 (&b)[N][NT], const uint4 *const (&x)[NT], uint32_t first)
{
#pragma unroll
    for (int j = 0; j < NT; j++)
#pragma unroll
        for (int u = 0; u < N; u++)
            b[u][j] = SMEM ? load_smem(x[j] + (first + u) * 4) : load_activations(x[j] + (first + u) * WARP);
}

/* Multiplies a ring of units with their activations and loads the next ones into their places: `here` of them are
 * multiplied and `left` loaded. WHOLE: all are multiplied, without branches; activations of several units are then
 * loaded together. */
template <enum weight_type T, int NT, bool SMEM, bool WHOLE>
static __device__ __forceinline__ void
advance_ring(unit_of<T> (&ring)[ring_units<T, NT>], float (&sum)[NT][4], const uint4 *const (&x)[NT],
             const typename unit_of<T>::place &next, uint32_t here, uint32_t left)
{
    const int span = unit_of<T>::SPAN, at_once = WHOLE && NT * span < RING_AHEAD ? RING_AHEAD / (NT * span) : 1;
#pragma unroll
    for (int from = 0; from < ring_units<T, NT>; from += at_once) {
        uint4 b[at_once * span][NT];
        if (WHOLE)
            load_units<NT, at_once * span, SMEM>(b, x, from * span);
#pragma unroll
        for (int i = from; i < from + at_once; i++) {
            if (WHOLE || (uint32_t)i < here) {
                if (!WHOLE)
                    load_units<NT, at_once * span, SMEM>(b, x, i * span);
#pragma unroll
                for (int j = 0; j < NT; j++) {
                    uint4 own[span];
#pragma unroll
                    for (int u = 0; u < span; u++)
                        own[u] = b[(i - from) * span + u][j];
                    ring[i].add(own, sum[j]);
                }
            }
            ring[i].load(next, i, (uint32_t)i < left);
        }
    }
}

/* The strips and rows that this block multiplies, NT tiles at a time: all strips of all matrices, with all rows; or,
 * with EXPERTS, the strips of experts with the experts' rows (layout.h). A lane reads the activations of any row that
 * it is assigned, so rows need not be contiguous: columns of an instruction are independent. For gate and up, the
 * blocks take the strips of all listed experts in turn. For down, a block takes the same strip of all experts, one
 * expert after the other, so one block adds a row's experts, in order. */
template <bool EXPERTS, int NT> struct block_rows {
    struct of_lane {
        uint32_t row[NT]; /* a lane's rows of the tiles; for experts only */
        /* The next strip is found before this one is multiplied. The hardware has only six counters for loads, so a
         * load among those of the ring would have to wait for the ring. */
        struct strip_place following;
    };
    const struct product &p;
    const uint32_t strips, experts; /* strips of an expert; experts of the product, or 1 if it is not by expert */
    uint32_t end;

    __device__ __forceinline__ bool
    by_expert() const
    {
        return EXPERTS && p.by_expert;
    }
    __device__ __forceinline__ explicit block_rows(const struct product &p)
        : p(p), strips(by_expert() ? p.matrices[0]->strips : count_strips(p)),
          experts(by_expert() && !p.shared ? p.kv_cache->expert_list->n : 1), end(experts * strips)
    {
        if (EXPERTS && p.down)
            end = blockIdx.x < strips ? (strips - blockIdx.x + gridDim.x - 1) / gridDim.x * experts : 0;
    }
    /* The shared expert's strips begin with the last blocks, because some of these had one strip less of the routed
     * experts. */
    __device__ __forceinline__ uint32_t
    begin() const
    {
        return EXPERTS && p.down ? 0 : EXPERTS && p.shared ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    }
    __device__ __forceinline__ uint32_t
    step() const
    {
        return EXPERTS && p.down ? 1 : gridDim.x;
    }
    __device__ __forceinline__ struct strip_place
    find(uint32_t i) const
    {
        if (!by_expert())
            return find_strip(p, i);
        const struct expert_list *const list = p.kv_cache->expert_list;
        const struct listed_expert at = p.shared ? list->alone : list->experts[p.down ? i % experts : i / strips];
        const uint32_t strip = p.down ? blockIdx.x + i / experts * gridDim.x : i % strips;
        return {p.matrices[0], 0, strip, (p.shared ? 0 : at.expert * strips) + strip, at.first, at.n};
    }
    __device__ __forceinline__ uint32_t
    count(const struct strip_place &at) const /* rows; not kept in a register while strips are multiplied */
    {
        return by_expert() ? at.n : p.n;
    }
    __device__ __forceinline__ uint32_t
    input_row(const struct strip_place &at, uint32_t row) const /* the row whose activations are this row's input */
    {
        if (!by_expert() || (p.down && !p.shared))
            return at.first + row;
        return p.kv_cache->expert_rows[at.first + row].row;
    }
    /* Lanes of missing rows read the activations of the tiles' first row, which are in L1; their results are
     * dropped. */
    __device__ __forceinline__ of_lane
    look_up(const struct strip_place &at, uint32_t tile, uint32_t lane, uint32_t next) const
    {
        struct of_lane own = {{}, find(next)};
#pragma unroll
        for (uint32_t j = 0; EXPERTS && j < NT; j++) {
            const uint32_t row = (tile + j) * TILE + lane / 4;
            own.row[j] = input_row(at, row < count(at) ? row : tile * TILE);
        }
        return own;
    }
    /* Returns the address of a lane's activations of tile number tile + j, from a unit on. */
    template <bool SMEM>
    __device__ __forceinline__ const uint4 *
    activations(const of_lane &own, uint32_t tile, uint32_t j, uint32_t unit, uint32_t units, uint32_t lane) const
    {
        const uint4 *const x = (const uint4 *)p.x;
        const size_t stride = (size_t)units * WARP; /* of a tile */
        const bool there = (tile + j) * TILE + lane / 4 < p.n;
        if (SMEM)
            return x +
                   (EXPERTS          ? own.row[j]
                    : lane / 4 < p.n ? lane / 4
                                     : 0) *
                       smem_stride(units) +
                   unit * 4 + lane % 4;
        if (EXPERTS)
            return opaque(x + own.row[j] / TILE * stride + own.row[j] % TILE * 4 + lane % 4 + (size_t)unit * WARP);
        return opaque(x + (there ? (tile + j) * stride + lane : tile * stride + lane % 4) + (size_t)unit * WARP);
    }
};

/* Stores a warp's partial sums of a turn in its buffer. The owners add them and process the outputs. */
template <enum weight_type T, int NT, class Rows, class Then>
static __device__ __forceinline__ void
end_turn(const Rows &rows, const struct strip_place &at, uint32_t tile, uint32_t turn, uint2 packed,
         const float (&sum)[NT][4], float *shared, uint32_t thread, Then &then)
{
    const uint32_t index = parity(turn), warp = thread / WARP, lane = thread % WARP;
    const uint32_t number = owner_number<NT>(turn, thread_here()); /* computed here to save a register in the ring */
    float2 *const buffer = (float2 *)shared + index * (BLOCK_WARPS * NT * TILE * STRIP / 2);
    if (turn >= 2)
        wait_for_owners<NT>(turn - 2, thread);
    put_sums<NT>(sum, buffer, warp, lane);
    if (number >= NT * 2 * WARP) {
        barrier_arrive(BUFFER_FULL + index, BLOCK_THREADS);
        return;
    }
    const uint32_t row = tile * TILE + number / (2 * WARP) * TILE + lane % 4 * 2 + warp % 2;
    barrier_sync(BUFFER_FULL + index, BLOCK_THREADS);
    const float2 y = add_sums<NT>(buffer, number);
    barrier_sync(BUFFER_READ + index, NT * 2 * WARP);
    barrier_arrive(BUFFER_FREE + index, BLOCK_THREADS);
    const uint2 outputs = own_outputs(at, packed);
    if (row < rows.count(at))
        then(at.matrix, at.first + row, outputs.x, outputs.y, y.x * unit_of<T>::FACTOR, y.y * unit_of<T>::FACTOR);
}

/* Multiplies all strips of this block. All rows of a strip are processed before the next strip, while its weights are
 * in the cache. `before()` is called once by all threads, after the first loads of weights have started. */
template <enum weight_type T, int NT, bool SMEM, class Rows, class Before, class Then>
static __device__ __forceinline__ void
all_strips(const Rows &rows, float *shared, Before before, Then &then)
{
    const struct product &p = rows.p;
    const uint32_t depth = ring_units<T, NT>, span = unit_of<T>::SPAN, strips = rows.end,
                   units = p.matrices[0]->units / span;
    const uint32_t thread = thread_here(), warp = thread / WARP, lane = thread % WARP;
    const uint32_t begin = warp * units / BLOCK_WARPS,
                   n = (warp + 1) * units / BLOCK_WARPS - begin; /* the warp's share */
    unit_of<T> ring[ring_units<T, NT>] = {};
    if (rows.begin() >= strips) {
        before();
        return;
    }

    const struct strip_place first = rows.find(rows.begin());
    const typename unit_of<T>::place at_first = unit_of<T>::place_of(*first.m, first.packed, begin, lane);
#pragma unroll
    for (int i = 0; i < ring_units<T, NT>; i++)
        ring[i].load(at_first, i, (uint32_t)i < n);
    before();

    uint32_t turn = 0;
    for (uint32_t strip = rows.begin(), pass = 0; strip < strips; turn++) {
        const struct strip_place at = rows.find(strip);
        const uint32_t tile = pass * NT, next = (tile + NT) * TILE < rows.count(at) ? strip : strip + rows.step();
        const bool owner = owner_number<NT>(turn, thread) < NT * 2 * WARP;
        const uint2 packed = look_up_outputs(at, lane / 4, owner);
        const typename Rows::of_lane own = rows.look_up(at, tile, lane, next < strips ? next : strip);
        float sum[NT][4] = {};
        for (uint32_t done = 0; done < n; done += depth) {
            const bool more = done + depth < n;
            const struct strip_place from = more ? at : own.following;
            const uint32_t after = more ? done + depth : 0, here = n - done,
                           left = more || next < strips ? n - after : 0;
            const uint4 *x[NT];
#pragma unroll
            for (int j = 0; j < NT; j++)
                x[j] = rows.template activations<SMEM>(own, tile, j, (begin + done) * span, units * span, lane);
            const auto at_next = unit_of<T>::place_of(*from.m, from.packed, begin + after, lane);
            if (NT < PRODUCT_TILES && here >= depth)
                advance_ring<T, NT, SMEM, true>(ring, sum, x, at_next, here, left);
            else
                advance_ring<T, NT, SMEM, false>(ring, sum, x, at_next, here, left);
        }
        end_turn<T>(rows, at, tile, turn, packed, sum, shared, thread, then);
        pass = next == strip ? pass + 1 : 0;
        strip = next;
    }
#pragma unroll 1
    for (uint32_t t = turn > 2 ? turn - 2 : 0; t < turn; t++)
        wait_for_owners<NT>(t, thread);
}

/* ---- prefetching into L2 ---- */

/* Prefetches the bytes [from, to) of the weights that this block reads, and the scales of the strips that begin there.
 * Called by `n` threads; this one is number i. */
template <class Rows>
static __device__ __forceinline__ void
prefetch_strips(const Rows &rows, uint32_t from, uint32_t to, uint32_t i, uint32_t n)
{
    const struct dev_matrix &m = *rows.p.matrices[0];
    if (m.type == WEIGHT_F32) /* not packed */
        return;
    const uint32_t strips = rows.end, quants = (uint32_t)strip_quants(m.type, m.units),
                   scales = (uint32_t)strip_scales(m.type, m.units);
    for (uint32_t own = from / quants; own * quants < to && rows.begin() + own * rows.step() < strips; own++) {
        const struct strip_place at = rows.find(rows.begin() + own * rows.step());
        const uint32_t start = own * quants, begin = from > start ? from - start : 0,
                       end = to - start < quants ? to - start : quants;
        prefetch_l2((const unsigned char *)at.m->quants + (size_t)at.packed * quants + begin, end - begin, i, n);
        if (scales > 0 && begin == 0)
            prefetch_l2((const unsigned char *)at.m->scales + (size_t)at.packed * scales, scales, i, n);
    }
}

/* Products of exact models in F32: packed rows one after the other (layout.h), plain multiply-adds in one order. One
 * warp per output of a strip. Lanes process every 32nd column, and their sums are added in a tree. */
template <class Rows, class Then>
static __device__ __forceinline__ void
exact_strips(const Rows &rows, float *shared, Then &then)
{
    const uint32_t thread = thread_here(), warp = thread / WARP, lane = thread % WARP, g = thread % 8, own = thread / 8;
    uint32_t buffer_index = 0;
    for (uint32_t i = rows.begin(); i < rows.end; i += rows.step()) {
        const struct strip_place at = rows.find(i);
        const uint32_t cols = at.m->cols;
        const uint2 outputs = own_outputs(at, look_up_outputs(at, g, true));
        const bool there = at.m->source != NULL || at.strip * STRIP + warp < at.m->rows;
        const size_t row =
            at.m->ids != NULL && there ? (size_t)at.m->ids[at.strip * STRIP + warp] : (size_t)at.packed * STRIP + warp;
        const float *const w = (const float *)at.m->quants + row * cols;
        for (uint32_t first = 0, all = rows.count(at); first < all; first += TILE) {
            const uint32_t n = all - first < TILE ? all - first : TILE;
            float *buffer = shared + buffer_index * (STRIP * TILE);
            buffer_index = parity(buffer_index + 1);
            for (uint32_t r = 0; r < n; r++) {
                const float *x = (const float *)rows.p.x + (size_t)rows.input_row(at, first + r) * cols;
                float sum = 0;
                for (uint32_t k = lane; k < cols && there; k += WARP)
                    sum = fmaf(w[k], x[k], sum);
                sum = warp_sum(sum);
                if (lane == 0)
                    buffer[r * STRIP + warp] = sum;
            }
            __syncthreads();
            if (own < n)
                then(at.matrix, at.first + first + own, outputs.x, outputs.y, buffer[own * STRIP + g],
                     buffer[own * STRIP + g + 8]);
        }
    }
}
