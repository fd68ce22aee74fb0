/* Products y = W x, strip by strip (layout.h).
 *
 * A strip is one block's work. Its warps share the units: warp w takes units [w U / 16, (w + 1) U / 16), so which terms
 * are added in which order depends on the shape of W alone. Each warp streams its units through registers, the next
 * ones being loaded while the last ones are multiplied, across the end of a strip too. Then the 16 partial sums meet in
 * shared memory and are added in the order of the warps.
 *
 * Shared memory: PRODUCT_SHARED bytes, two buffers used in turn, so that one __syncthreads() a strip is enough. */
#ifndef KERNELS_CUDA_MATMUL_CUH
#define KERNELS_CUDA_MATMUL_CUH

#include "kernels/cuda/layout.h"
#include "kernels/cuda/ptx.cuh"

#define PRODUCT_TILES  (SWEEP_TILE / TILE)
#define PRODUCT_SHARED (2 * SWEEP_WARPS * STRIP * SWEEP_TILE * sizeof(float))

/* Matrices of one type and width that are multiplied with the same rows, one after the other. */
struct product {
    const struct dev_matrix *matrices[3];
    uint32_t n_matrices;
    const void *x; /* packed activations of n rows; exact: (n, cols) F32 */
    uint32_t n;
};

/* How outputs lie in the strips of an exact matrix, which is not packed: as pack_heads and pack_gate_up would have it. */
enum pairing { PAIR_NONE, PAIR_HEADS, PAIR_GATE_UP };

/* ---- units ---- */

/* A lane's part of a unit, loaded and then turned into the fragments of A of k-step s. scale() is for rows g and g+8; a
 * unit's sum is multiplied by it before it is added to the others. */
template <enum weight_type T> struct unit_of;

template <> struct unit_of<WEIGHT_F16> {
    static const bool scaled = false;
    uint4 q[2];
    __device__ __forceinline__ void
    load(const struct dev_matrix &m, size_t unit, uint32_t lane)
    {
        const unsigned char *p = (const unsigned char *)m.quants + unit * (STRIP * UNIT * 2) + lane * 16;
        q[0] = load_weights<uint4>(p);
        q[1] = load_weights<uint4>(p + WARP * 16);
    }
    __device__ __forceinline__ void
    multiply(uint32_t s, const uint4 &x, float (&sum)[4]) const
    {
        const uint32_t a[4] = {q[s].x, q[s].y, q[s].z, q[s].w};
        mma_f16(sum, a, s == 0 ? x.x : x.z, s == 0 ? x.y : x.w);
    }
    __device__ __forceinline__ float2
    scale() const
    {
        return make_float2(1, 1);
    }
};

template <> struct unit_of<WEIGHT_BF16> : unit_of<WEIGHT_F16> {
    /* A half is the sum of two BF16 numbers: the first holds its leading 8 bits, the second the other 3. */
    static __device__ __forceinline__ void
    split(uint32_t halves, uint32_t *first, uint32_t *second)
    {
        const float2 x = unpack_halves(halves);
        *first = pack_bf16s(x.x, x.y);
        const float2 y = unpack_bf16s(*first);
        *second = pack_bf16s(x.x - y.x, x.y - y.y);
    }
    __device__ __forceinline__ void
    multiply(uint32_t s, const uint4 &x, float (&sum)[4]) const
    {
        const uint32_t a[4] = {q[s].x, q[s].y, q[s].z, q[s].w};
        uint32_t first[2], second[2];
        split(s == 0 ? x.x : x.z, &first[0], &second[0]);
        split(s == 0 ? x.y : x.w, &first[1], &second[1]);
        mma_bf16(sum, a, first[0], first[1]);
        mma_bf16(sum, a, second[0], second[1]);
    }
};

template <> struct unit_of<WEIGHT_Q8_0> {
    static const bool scaled = true;
    uint4 q;
    uint32_t d;
    __device__ __forceinline__ void
    load(const struct dev_matrix &m, size_t unit, uint32_t lane)
    {
        q = load_weights<uint4>((const unsigned char *)m.quants + unit * (STRIP * UNIT) + lane * 16);
        d = load_weights<uint32_t>((const unsigned char *)m.scales + unit * (STRIP * 2) + lane / 4 * 4);
    }
    __device__ __forceinline__ void
    multiply(uint32_t s, const uint4 &x, float (&sum)[4]) const
    {
        uint32_t a[4];
        bytes_to_halves(s == 0 ? q.x : q.z, &a[0], &a[1]);
        bytes_to_halves(s == 0 ? q.y : q.w, &a[2], &a[3]);
        mma_f16(sum, a, s == 0 ? x.x : x.z, s == 0 ? x.y : x.w);
    }
    __device__ __forceinline__ float2
    scale() const
    {
        return unpack_halves(d);
    }
};

/* ---- strips ---- */

/* The place of the product's strip number `strip`: which matrix, which strip of it. */
struct strip_place {
    uint32_t matrix, strip;
};

static __device__ __forceinline__ struct strip_place
find_strip(const struct product &p, uint32_t strip)
{
    uint32_t i = 0;
    while (i + 1 < p.n_matrices && strip >= p.matrices[i]->strips) {
        strip -= p.matrices[i]->strips;
        i++;
    }
    return {i, strip};
}

static __device__ __forceinline__ uint32_t
count_strips(const struct product &p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p.n_matrices; i++)
        n += p.matrices[i]->strips;
    return n;
}

/* A warp's sum of a strip to shared memory: (SWEEP_WARPS, NT * TILE, STRIP). */
template <int NT>
static __device__ __forceinline__ void
put_sums(const float (&sum)[NT][4], float *buffer, uint32_t warp, uint32_t lane)
{
    const uint32_t g = lane / 4, c = lane % 4;
#pragma unroll
    for (int j = 0; j < NT; j++) {
        float *to = buffer + (warp * NT + j) * (TILE * STRIP) + g;
        to[2 * c * STRIP] = sum[j][0];
        to[(2 * c + 1) * STRIP] = sum[j][1];
        to[2 * c * STRIP + 8] = sum[j][2];
        to[(2 * c + 1) * STRIP + 8] = sum[j][3];
    }
}

/* What becomes of a strip: then(matrix, row, o0, o1, y0, y1) for every row of activations and every pair of packed rows
 * g, g+8; o is an output of the matrix or UINT32_MAX. Called by different threads in no order. */
template <int NT, class Then>
static __device__ __forceinline__ void
take_sums(const struct product &p, const struct strip_place &at, uint32_t first_row, const float *buffer, Then &then)
{
    const uint32_t t = threadIdx.x, g = t % 8, row = t / 8;
    if (row >= NT * TILE || first_row + row >= p.n)
        return;
    float y0 = 0, y1 = 0;
#pragma unroll
    for (int w = 0; w < SWEEP_WARPS; w++) {
        const float *from = buffer + (w * NT * TILE + row) * STRIP + g;
        y0 += from[0];
        y1 += from[8];
    }
    const struct dev_matrix &m = *p.matrices[at.matrix];
    uint32_t o0 = at.strip * STRIP + g, o1 = o0 + 8;
    if (m.source != NULL) {
        o0 = m.source[o0];
        o1 = m.source[o1];
    }
    then(at.matrix, first_row + row, o0 < m.rows ? o0 : UINT32_MAX, o1 < m.rows ? o1 : UINT32_MAX, y0, y1);
}

#define BATCH 4 /* units whose weights are on their way while others are multiplied */

/* All strips of this block, for rows [first_row, first_row + NT tiles). */
template <enum weight_type T, int NT, class Then>
static __device__ __noinline__ void
packed_strips(const struct product &p, uint32_t first_row, float *shared, uint32_t *turn, Then &then)
{
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, units = p.matrices[0]->units;
    const uint32_t from = warp * units / SWEEP_WARPS, n = (warp + 1) * units / SWEEP_WARPS - from;
    const uint32_t strips = count_strips(p), batches = (n + BATCH - 1) / BATCH;
    const uint4 *x = (const uint4 *)p.x + ((size_t)(first_row / TILE) * units + from) * WARP + lane;
    unit_of<T> now[BATCH], next[BATCH];

    auto load = [&](unit_of<T>(&to)[BATCH], uint32_t strip, uint32_t batch) {
        const struct strip_place at = find_strip(p, strip);
        const struct dev_matrix &m = *p.matrices[at.matrix];
#pragma unroll
        for (int i = 0; i < BATCH; i++)
            if (batch * BATCH + i < n)
                to[i].load(m, (size_t)at.strip * units + from + batch * BATCH + i, lane);
    };
    if (blockIdx.x < strips && batches > 0)
        load(next, blockIdx.x, 0);
    for (uint32_t strip = blockIdx.x; strip < strips; strip += gridDim.x) {
        float sum[NT][4] = {};
        for (uint32_t batch = 0; batch < batches; batch++) {
#pragma unroll
            for (int i = 0; i < BATCH; i++)
                now[i] = next[i];
            if (batch + 1 < batches)
                load(next, strip, batch + 1);
            else if (strip + gridDim.x < strips)
                load(next, strip + gridDim.x, 0);
#pragma unroll
            for (int i = 0; i < BATCH; i++) {
                if (batch * BATCH + i >= n)
                    continue;
                const float2 d = now[i].scale();
#pragma unroll
                for (int j = 0; j < NT; j++) {
                    const uint4 b = x[((size_t)j * units + batch * BATCH + i) * WARP];
                    if (unit_of<T>::scaled) {
                        float part[4] = {};
                        now[i].multiply(0, b, part);
                        now[i].multiply(1, b, part);
                        sum[j][0] = fmaf(d.x, part[0], sum[j][0]);
                        sum[j][1] = fmaf(d.x, part[1], sum[j][1]);
                        sum[j][2] = fmaf(d.y, part[2], sum[j][2]);
                        sum[j][3] = fmaf(d.y, part[3], sum[j][3]);
                    } else {
                        now[i].multiply(0, b, sum[j]);
                        now[i].multiply(1, b, sum[j]);
                    }
                }
            }
        }
        float *buffer = shared + *turn * (SWEEP_WARPS * STRIP * SWEEP_TILE);
        *turn ^= 1;
        put_sums<NT>(sum, buffer, warp, lane);
        __syncthreads();
        take_sums<NT>(p, find_strip(p, strip), first_row, buffer, then);
    }
}

/* ---- exact: plain rows, plain multiply-adds ---- */

/* Output of packed row r (0..15) of a strip, were the matrix packed. */
static __device__ __forceinline__ uint32_t
exact_output(const struct dev_matrix &m, enum pairing pairing, uint32_t strip, uint32_t r, uint32_t head_dim,
             uint32_t rotated, bool halves)
{
    const uint32_t g = r % 8, second = r / 8;
    if (pairing == PAIR_GATE_UP) {
        const uint32_t unit = strip * 8 + g, ffn = m.rows / 2;
        return unit < ffn ? second * ffn + unit : UINT32_MAX;
    }
    if (pairing == PAIR_HEADS) {
        const uint32_t pairs = head_dim / 2, strips = (pairs + 7) / 8, head = strip / strips,
                       i = strip % strips * 8 + g;
        if (i >= pairs)
            return UINT32_MAX;
        return head * head_dim + (halves && i < rotated ? i + second * rotated : 2 * i + second);
    }
    const uint32_t o = strip * STRIP + r;
    return o < m.rows ? o : UINT32_MAX;
}

static __device__ __forceinline__ uint32_t
exact_strips(const struct dev_matrix &m, enum pairing pairing, uint32_t head_dim)
{
    if (pairing == PAIR_GATE_UP)
        return (m.rows / 2 + 7) / 8;
    if (pairing == PAIR_HEADS)
        return m.rows / head_dim * ((head_dim / 2 + 7) / 8);
    return (m.rows + STRIP - 1) / STRIP;
}

/* A warp an output; lanes take every 32nd column and add up in a tree. */
template <class Then>
static __device__ __noinline__ void
exact_product(const struct product &p, enum pairing pairing, const struct dev_model &model, float *shared,
              uint32_t *turn, Then &then)
{
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const bool halves = model.rope == ROPE_HALVES;
    for (uint32_t i = 0; i < p.n_matrices; i++) {
        const struct dev_matrix &m = *p.matrices[i];
        const enum pairing own = pairing == PAIR_HEADS && i == 2 ? PAIR_NONE : pairing; /* v is not rotated */
        const uint32_t strips = exact_strips(m, own, model.head_dim);
        for (uint32_t strip = blockIdx.x; strip < strips; strip += gridDim.x) {
            const uint32_t o = exact_output(m, own, strip, warp, model.head_dim, model.rope_dims / 2, halves);
            const float *w = (const float *)m.quants + (o != UINT32_MAX ? (size_t)o * m.cols : 0);
            for (uint32_t first = 0; first < p.n; first += TILE) {
                const uint32_t rows = p.n - first < TILE ? p.n - first : TILE;
                float *buffer = shared + *turn * (STRIP * TILE);
                *turn ^= 1;
                for (uint32_t r = 0; r < rows; r++) {
                    const float *x = (const float *)p.x + (size_t)(first + r) * m.cols;
                    float sum = 0;
                    for (uint32_t k = lane; k < m.cols && o != UINT32_MAX; k += WARP)
                        sum = fmaf(w[k], x[k], sum);
#pragma unroll
                    for (int apart = 16; apart > 0; apart /= 2)
                        sum += __shfl_xor_sync(0xffffffffu, sum, apart);
                    if (lane == 0)
                        buffer[r * STRIP + warp] = sum;
                }
                __syncthreads();
                const uint32_t g = threadIdx.x % 8, row = threadIdx.x / 8;
                if (row < rows)
                    then(i, first + row, exact_output(m, own, strip, g, model.head_dim, model.rope_dims / 2, halves),
                         exact_output(m, own, strip, g + 8, model.head_dim, model.rope_dims / 2, halves),
                         buffer[row * STRIP + g], buffer[row * STRIP + g + 8]);
            }
        }
    }
}

/* ---- any product ---- */

template <int NT, class Then>
static __device__ __forceinline__ void
typed_strips(const struct product &p, uint32_t first_row, float *shared, uint32_t *turn, Then &then)
{
    switch (p.matrices[0]->type) {
    case WEIGHT_Q8_0: packed_strips<WEIGHT_Q8_0, NT>(p, first_row, shared, turn, then); break;
    case WEIGHT_BF16: packed_strips<WEIGHT_BF16, NT>(p, first_row, shared, turn, then); break;
    default: packed_strips<WEIGHT_F16, NT>(p, first_row, shared, turn, then); break;
    }
}

/* The whole product, by all blocks of the grid. `turn` (0 or 1) says which half of shared memory is free; it goes on
 * from product to product. The matrices have one type unless the model is exact. */
template <class Then>
static __device__ __forceinline__ void
multiply(const struct product &p, enum pairing pairing, const struct dev_model &model, float *shared, uint32_t *turn,
         Then &then)
{
    if (model.exact) {
        exact_product(p, pairing, model, shared, turn, then);
        return;
    }
    for (uint32_t first = 0; first < p.n; first += SWEEP_TILE) {
        const uint32_t rows = p.n - first;
        if (rows <= TILE)
            typed_strips<1>(p, first, shared, turn, then);
        else if (rows <= 2 * TILE)
            typed_strips<2>(p, first, shared, turn, then);
        else
            typed_strips<PRODUCT_TILES>(p, first, shared, turn, then);
    }
}

/* Brings the first strip that this block will read of each matrix into L2. */
static __device__ __forceinline__ void
prefetch_product(const struct product &p)
{
    const uint32_t strips = count_strips(p);
    if (blockIdx.x >= strips)
        return;
    const struct strip_place at = find_strip(p, blockIdx.x);
    const struct dev_matrix &m = *p.matrices[at.matrix];
    const size_t unit = m.type == WEIGHT_Q8_0 ? STRIP * UNIT : m.type == WEIGHT_F32 ? 0 : STRIP * UNIT * 2;
    const size_t bytes = (size_t)m.units * unit, scales = m.type == WEIGHT_Q8_0 ? (size_t)m.units * (STRIP * 2) : 0;
    for (size_t i = (size_t)threadIdx.x * 128; i < bytes; i += (size_t)SWEEP_THREADS * 128)
        prefetch_l2((const unsigned char *)m.quants + at.strip * bytes + i);
    for (size_t i = (size_t)threadIdx.x * 128; i < scales; i += (size_t)SWEEP_THREADS * 128)
        prefetch_l2((const unsigned char *)m.scales + at.strip * scales + i);
}

#endif
