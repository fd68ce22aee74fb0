/* Attention of rows to their paths, by warps.
 *
 * A row's path is cut into splits of ATTEND_SPLIT positions and these into blocks of ATTEND_BLOCK, at fixed positions. In
 * a block a lane scores one position; then a lane sums some dimensions of the values. A split's result is a partial
 * (maximum, sum, unnormalised output), and partials are merged in ascending order: by the warp that finishes last where
 * splits are different warps' work (few rows), by the one warp that walks them all otherwise. Both do the same
 * arithmetic in the same order (as flash-decoding, Dao et al. 2023).
 *
 * What shares a load of keys and values: up to PAIRS (row, head) pairs of a group of rows with one path, heads of one
 * key-value head. A pair whose row ends earlier gets weights of 0 behind its end, which change no bit of its sums. */
#ifndef KERNELS_CUDA_ATTENTION_CUH
#define KERNELS_CUDA_ATTENTION_CUH

#include <math.h>

#include "kernels/cuda/layout.h"
#include "kernels/cuda/norm.cuh"
#include "kernels/cuda/ptx.cuh"

#define ALL_OF_WARP 0xffffffffu

/* The rows that take part in a layer: what the sweep found out, in shared memory. */
struct active_rows {
    uint32_t n;
    const uint16_t *index; /* (sweep n) place of a row among the active ones, 0xffff: not active */
};

struct attend_scene {
    const struct dev_model *m;
    const struct dev_store *s;
    const struct sweep_args *sweep;
    uint32_t layer;
    struct active_rows active;
};

/* A warp's work: some pairs of a group of rows on one key-value head. */
template <int PAIRS> struct attend_job {
    uint32_t kv_head, n_pairs, last; /* the furthest position of any pair */
    const slot_t *trunk, *tail;      /* position p is trunk[p], or tail[p - n_trunk] */
    uint32_t n_trunk;
    uint32_t row[PAIRS];      /* among the active ones */
    uint32_t head[PAIRS];     /* query head */
    uint32_t position[PAIRS]; /* of the row */
};

/* F16 keys: 8 at a time; F32 (exact): 4. */
template <class KV> struct kv_load;
template <> struct kv_load<uint16_t> {
    static const int wide = 8;
    static __device__ __forceinline__ void
    load(const uint16_t *p, float (&x)[8])
    {
        const uint4 v = *(const uint4 *)p;
        const float2 a = unpack_halves(v.x), b = unpack_halves(v.y), c = unpack_halves(v.z), d = unpack_halves(v.w);
        x[0] = a.x, x[1] = a.y, x[2] = b.x, x[3] = b.y, x[4] = c.x, x[5] = c.y, x[6] = d.x, x[7] = d.y;
    }
    static __device__ __forceinline__ float
    one(const uint16_t *p)
    {
        return half_value(*p);
    }
};
template <> struct kv_load<float> {
    static const int wide = 4;
    static __device__ __forceinline__ void
    load(const float *p, float (&x)[4])
    {
        const float4 v = *(const float4 *)p;
        x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
    }
    static __device__ __forceinline__ float
    one(const float *p)
    {
        return *p;
    }
};

/* What has been summed: lane i holds dimensions i, i + 32, … */
template <int PAIRS, int DIMS> struct attend_sums {
    float max[PAIRS], sum[PAIRS], out[PAIRS][DIMS];
};

template <int PAIRS, int DIMS>
static __device__ __forceinline__ void
clear_sums(attend_sums<PAIRS, DIMS> &a)
{
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        a.max[i] = -INFINITY;
        a.sum[i] = 0;
#pragma unroll
        for (int d = 0; d < DIMS; d++)
            a.out[i][d] = 0;
    }
}

/* Scores of this lane's position with every pair's query: q (PAIRS, head_dim) in shared memory. */
template <class KV, int PAIRS>
static __device__ __forceinline__ void
score(const KV *key, const float *q, uint32_t dim, float (&z)[PAIRS])
{
    const uint32_t wide = kv_load<KV>::wide, whole = dim % wide == 0 ? dim : 0;
    for (uint32_t d = 0; d < whole; d += wide) {
        float k[kv_load<KV>::wide];
        kv_load<KV>::load(key + d, k);
#pragma unroll
        for (int i = 0; i < PAIRS; i++)
#pragma unroll
            for (int e = 0; e < kv_load<KV>::wide; e++)
                z[i] = fmaf(k[e], q[i * dim + d + e], z[i]);
    }
    for (uint32_t d = whole; d < dim; d++)
#pragma unroll
        for (int i = 0; i < PAIRS; i++)
            z[i] = fmaf(kv_load<KV>::one(key + d), q[i * dim + d], z[i]);
}

/* Positions [first, first + ATTEND_BLOCK) into the sums. weights: (PAIRS, ATTEND_BLOCK) shared memory of the warp. */
template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
absorb_block(const struct attend_scene &c, const attend_job<PAIRS> &job, uint32_t first, const float *q, float *weights,
             attend_sums<PAIRS, DIMS> &a)
{
    const uint32_t lane = threadIdx.x % WARP, dim = c.m->head_dim, position = first + lane;
    const size_t stride = (size_t)c.m->kv_heads * dim, at = (size_t)(c.layer - 1) * c.s->slots * stride;
    const KV *keys = (const KV *)c.s->keys + at + (size_t)job.kv_head * dim;
    const KV *values = (const KV *)c.s->values + at + (size_t)job.kv_head * dim;
    slot_t slot = 0;
    float z[PAIRS] = {};
    if (position <= job.last) {
        slot = position < job.n_trunk ? job.trunk[position] : job.tail[position - job.n_trunk];
        score<KV, PAIRS>(keys + slot * stride, q, dim, z);
    }
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        const uint32_t own = job.position[i];
        const bool seen =
            (uint32_t)i < job.n_pairs && position <= own && (c.m->window == 0 || position + c.m->window > own);
        const float score_here = seen ? z[i] : -INFINITY;
        float most = score_here;
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2)
            most = fmaxf(most, __shfl_xor_sync(ALL_OF_WARP, most, apart));
        most = fmaxf(most, a.max[i]);
        const float p = seen ? expf(score_here - most) : 0, keep = a.max[i] == most ? 1 : expf(a.max[i] - most);
        float sum = p;
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2)
            sum += __shfl_xor_sync(ALL_OF_WARP, sum, apart);
        if (most > -INFINITY) { /* somebody has been seen: the same in all lanes */
            a.max[i] = most;
            a.sum[i] = fmaf(a.sum[i], keep, sum);
#pragma unroll
            for (int d = 0; d < DIMS; d++)
                a.out[i][d] *= keep;
        }
        weights[i * ATTEND_BLOCK + lane] = p;
    }
    __syncwarp();
    const uint32_t n = job.last - first + 1 < ATTEND_BLOCK ? job.last - first + 1 : ATTEND_BLOCK;
    for (uint32_t j = 0; j < n; j++) {
        const KV *value = values + __shfl_sync(ALL_OF_WARP, slot, (int)j) * stride;
#pragma unroll
        for (int d = 0; d < DIMS; d++) {
            const float v = d * WARP + lane < dim ? kv_load<KV>::one(value + d * WARP + lane) : 0;
#pragma unroll
            for (int i = 0; i < PAIRS; i++)
                a.out[i][d] = fmaf(weights[i * ATTEND_BLOCK + j], v, a.out[i][d]);
        }
    }
    __syncwarp();
}

/* A partial after those before it. */
template <int DIMS>
static __device__ __forceinline__ void
merge(float &max, float &sum, float (&out)[DIMS], float more_max, float more_sum, const float (&more)[DIMS])
{
    if (!(more_max > -INFINITY)) /* nothing in that split is seen */
        return;
    const float most = fmaxf(max, more_max), keep = max == most ? 1 : expf(max - most),
                add = more_max == most ? 1 : expf(more_max - most);
    max = most;
    sum = fmaf(sum, keep, more_sum * add);
#pragma unroll
    for (int d = 0; d < DIMS; d++)
        out[d] = fmaf(out[d], keep, more[d] * add);
}

template <int DIMS>
static __device__ __forceinline__ void
put_attended(const struct attend_scene &c, uint32_t row, uint32_t head, float sum, const float (&out)[DIMS])
{
    const uint32_t lane = threadIdx.x % WARP, dim = c.m->head_dim, cols = c.m->heads * dim;
#pragma unroll
    for (int d = 0; d < DIMS; d++)
        if (d * WARP + lane < dim)
            put_activation(c.s->attended, c.m->exact, cols, row, head * dim + d * WARP + lane, out[d] / sum);
    if (head == 0 && !c.m->exact) /* the end of the last unit is nobody's */
        for (uint32_t k = cols + lane; k < units_of(cols) * UNIT; k += WARP)
            put_activation(c.s->attended, false, cols, row, k, 0);
}

static __device__ __forceinline__ float *
partial_at(const struct attend_scene &c, uint32_t row, uint32_t head, uint32_t split)
{
    return c.s->partials + (((size_t)row * c.m->heads + head) * c.s->max_splits + split) * (2 + c.m->head_dim);
}

/* One split of a job, put down as a partial; the last split to be done merges all of them. */
template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
attend_one_split(const struct attend_scene &c, const attend_job<PAIRS> &job, uint32_t split, uint32_t n_splits,
                 const float *q, float *weights)
{
    const uint32_t lane = threadIdx.x % WARP, dim = c.m->head_dim;
    attend_sums<PAIRS, DIMS> a;
    clear_sums(a);
    for (uint32_t at = split * ATTEND_SPLIT; at < (split + 1) * ATTEND_SPLIT && at <= job.last; at += ATTEND_BLOCK)
        absorb_block<KV, PAIRS, DIMS>(c, job, at, q, weights, a);
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        if ((uint32_t)i >= job.n_pairs || split > job.position[i] / ATTEND_SPLIT)
            continue;
        float *to = partial_at(c, job.row[i], job.head[i], split);
        if (lane == 0) {
            to[0] = a.max[i];
            to[1] = a.sum[i];
        }
#pragma unroll
        for (int d = 0; d < DIMS; d++)
            if (d * WARP + lane < dim)
                to[2 + d * WARP + lane] = a.out[i][d];
    }
    __syncwarp();
    uint32_t before = 0;
    uint32_t *arrivals = &c.s->arrivals[job.row[0] * c.m->heads + job.head[0]];
    if (lane == 0) {
        __threadfence();
        before = atomicAdd(arrivals, 1u);
        if (before == n_splits - 1)
            *arrivals = 0;
        __threadfence();
    }
    if (__shfl_sync(ALL_OF_WARP, before, 0) != n_splits - 1)
        return;
    for (uint32_t i = 0; i < job.n_pairs; i++) {
        float max = -INFINITY, sum = 0, out[DIMS] = {};
        for (uint32_t s = 0; s <= job.position[i] / ATTEND_SPLIT; s++) {
            const float *from = partial_at(c, job.row[i], job.head[i], s);
            float more[DIMS] = {};
#pragma unroll
            for (int d = 0; d < DIMS; d++)
                if (d * WARP + lane < dim)
                    more[d] = __ldcg(&from[2 + d * WARP + lane]);
            merge<DIMS>(max, sum, out, __ldcg(&from[0]), __ldcg(&from[1]), more);
        }
        put_attended<DIMS>(c, job.row[i], job.head[i], sum, out);
    }
}

/* All splits of a job, one after the other. */
template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
attend_all_splits(const struct attend_scene &c, const attend_job<PAIRS> &job, const float *q, float *weights)
{
    attend_sums<PAIRS, DIMS> all, a;
    clear_sums(all);
    for (uint32_t split = 0; split <= job.last / ATTEND_SPLIT; split++) {
        clear_sums(a);
        for (uint32_t at = split * ATTEND_SPLIT; at < (split + 1) * ATTEND_SPLIT && at <= job.last; at += ATTEND_BLOCK)
            absorb_block<KV, PAIRS, DIMS>(c, job, at, q, weights, a);
#pragma unroll
        for (int i = 0; i < PAIRS; i++)
            merge<DIMS>(all.max[i], all.sum[i], all.out[i], a.max[i], a.sum[i], a.out[i]);
    }
#pragma unroll
    for (int i = 0; i < PAIRS; i++)
        if ((uint32_t)i < job.n_pairs)
            put_attended<DIMS>(c, job.row[i], job.head[i], all.sum[i], all.out[i]);
}

/* Pairs [chunk * PAIRS, …) of the active rows of a group on one key-value head, and their queries to shared memory. */
template <int PAIRS>
static __device__ __forceinline__ void
set_job(const struct attend_scene &c, const struct row_group &group, uint32_t n_active, uint32_t kv_head,
        uint32_t chunk, attend_job<PAIRS> &job, float *q)
{
    const uint32_t share = c.m->heads / c.m->kv_heads, dim = c.m->head_dim, lane = threadIdx.x % WARP;
    const struct row *first = &c.sweep->rows[group.first];
    job.kv_head = kv_head;
    job.trunk = c.s->trunk + (size_t)first->seq * c.s->trunk_room;
    job.tail = c.sweep->tails + first->tail;
    job.n_trunk = first->n_trunk;
    job.last = 0;
    const uint32_t begin = chunk * PAIRS, end = n_active * share - begin < PAIRS ? n_active * share : begin + PAIRS;
    job.n_pairs = end - begin;
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        job.row[i] = job.head[i] = job.position[i] = 0;
        if ((uint32_t)i >= job.n_pairs)
            continue;
        uint32_t wanted = (begin + i) / share, r = group.first; /* the wanted-th active row of the group */
        for (;; r++)
            if (c.active.index[r] != 0xffff && wanted-- == 0)
                break;
        job.row[i] = c.active.index[r];
        job.head[i] = kv_head * share + (begin + i) % share;
        job.position[i] = c.sweep->rows[r].n_trunk + c.sweep->rows[r].n_tail - 1;
        job.last = job.position[i] > job.last ? job.position[i] : job.last;
    }
    __syncwarp();
    for (uint32_t i = 0; i < PAIRS; i++)
        for (uint32_t d = lane; d < dim; d += WARP)
            q[i * dim + d] =
                i < job.n_pairs ? c.s->q[(size_t)job.row[i] * c.m->heads * dim + (size_t)job.head[i] * dim + d] : 0;
    __syncwarp();
}

template <class KV, int PAIRS, int DIMS, bool APART>
static __device__ __noinline__ void
attend_rows(const struct attend_scene &c, float *shared)
{
    const uint32_t dim = c.m->head_dim, share = c.m->heads / c.m->kv_heads, warps = gridDim.x * SWEEP_WARPS;
    /* warps of different blocks come one after the other, so that few jobs spread over all multiprocessors */
    const uint32_t mine = threadIdx.x / WARP * gridDim.x + blockIdx.x;
    float *q = shared + threadIdx.x / WARP * (PAIRS * (dim + ATTEND_BLOCK)), *weights = q + PAIRS * dim;
    uint32_t done = 0; /* units of the groups before this one */
    for (uint32_t g = 0; g < c.sweep->n_groups; g++) {
        const struct row_group group = c.sweep->groups[g];
        uint32_t n_active = 0, last = 0;
        for (uint32_t r = group.first; r < group.first + group.n; r++)
            if (c.active.index[r] != 0xffff) {
                n_active++;
                last = c.sweep->rows[r].n_trunk + c.sweep->rows[r].n_tail - 1;
            }
        if (n_active == 0)
            continue;
        const uint32_t chunks = (n_active * share + PAIRS - 1) / PAIRS;
        const uint32_t splits = APART ? last / ATTEND_SPLIT + 1 : 1, units = c.m->kv_heads * chunks * splits;
        for (uint32_t u = (mine + warps - done % warps) % warps; u < units; u += warps) {
            const uint32_t split = u % splits, chunk = u / splits % chunks, kv_head = u / splits / chunks;
            attend_job<PAIRS> job;
            set_job<PAIRS>(c, group, n_active, kv_head, chunk, job, q);
            if (!APART)
                attend_all_splits<KV, PAIRS, DIMS>(c, job, q, weights);
            else if (split <= job.last / ATTEND_SPLIT) /* a chunk's rows may end before the group's */
                attend_one_split<KV, PAIRS, DIMS>(c, job, split, job.last / ATTEND_SPLIT + 1, q, weights);
        }
        done += units;
    }
}

/* Shared memory that attention needs: queries and weights of every warp. */
static inline HOST_DEVICE uint32_t
attend_pairs(uint32_t head_dim)
{
    return head_dim <= 128 ? ATTEND_PAIRS : ATTEND_PAIRS / 2;
}

static inline HOST_DEVICE size_t
attend_shared(uint32_t head_dim)
{
    return (size_t)SWEEP_WARPS * attend_pairs(head_dim) * (head_dim + ATTEND_BLOCK) * sizeof(float);
}

/* A warp that walks all splits holds the sums of two at a time, so it takes half as many pairs. */
template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
attend_either(const struct attend_scene &c, float *shared)
{
    if (c.active.n <= SPLIT_ROWS)
        attend_rows<KV, PAIRS, DIMS, true>(c, shared);
    else
        attend_rows<KV, PAIRS / 2, DIMS, false>(c, shared);
}

template <class KV>
static __device__ __forceinline__ void
attend_as(const struct attend_scene &c, float *shared)
{
    if (c.m->head_dim <= 64)
        attend_either<KV, ATTEND_PAIRS, 2>(c, shared);
    else if (c.m->head_dim <= 128)
        attend_either<KV, ATTEND_PAIRS, 4>(c, shared);
    else
        attend_either<KV, ATTEND_PAIRS / 2, 8>(c, shared);
}

#endif
