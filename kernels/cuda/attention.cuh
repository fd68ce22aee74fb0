/* Attention of rows to their paths, by warps.
 *
 * A row's path is cut into splits of ATTEND_SPLIT positions and these into blocks of ATTEND_BLOCK, at fixed positions. In
 * a block a lane scores one position; then a lane sums DIMS dimensions of the values. A split's result is a partial
 * (maximum, sum, unnormalised output), and partials are merged in ascending order: by the warp that finishes last where
 * splits are different warps' work (few rows), by the one warp that walks them all otherwise. Both do the same
 * arithmetic in the same order (flash-decoding: Dao, Haziza, Massa, Sizov 2023).
 *
 * What shares a load of keys and values: up to PAIRS (row, head) pairs of a group of rows with one path, heads of one
 * key-value head. What a pair does not see has weight 0 for it, which changes no bit of its sums. */
#ifndef KERNELS_CUDA_ATTENTION_CUH
#define KERNELS_CUDA_ATTENTION_CUH

#include <math.h>

#include "kernels/cuda/kv.cuh"
#include "kernels/cuda/norm.cuh"

#define ALL_OF_WARP 0xffffffffu

struct attend_scene {
    const struct sweep_args *sweep;
    const struct dev_model *m;
    uint32_t layer;  /* its rows are those with from < layer */
    uint32_t splits; /* of the longest path in the sweep */
};

/* ---- a warp's place in shared memory ---- */

/* Queries (PAIRS, dim rounded up to 8), weights (ATTEND_BLOCK, PAIRS), and of each pair the first and last position that
 * it sees. */
template <int PAIRS> struct attend_place {
    float *q, *weights;
    uint2 *seen;
};

static inline HOST_DEVICE uint32_t
padded_dim(uint32_t dim)
{
    return (dim + 7) / 8 * 8;
}

static inline HOST_DEVICE size_t
attend_floats(uint32_t pairs, uint32_t dim)
{
    return pairs * (padded_dim(dim) + ATTEND_BLOCK + 2);
}

/* Of a block, whatever the head: up to 128 dimensions 8 pairs, up to 256 4. */
#define ATTEND_SHARED (SWEEP_WARPS * ATTEND_PAIRS * (128 + ATTEND_BLOCK + 2) * sizeof(float))

template <int PAIRS>
static __device__ __forceinline__ struct attend_place<PAIRS>
place_of_warp(float *shared, uint32_t warp, uint32_t dim) {
    float *own = shared + warp * attend_floats(PAIRS, dim);
    float *weights = own + PAIRS * padded_dim(dim);
    return {own, weights, (uint2 *)(weights + ATTEND_BLOCK * PAIRS)};
}

/* ---- a job ---- */

/* Some pairs of a group of rows on one key-value head. Lane i knows pair i. */
struct attend_job {
    uint32_t lane;
    uint32_t n;                 /* pairs */
    uint32_t row, head;         /* of this lane's pair, if it has one */
    uint2 seen;                 /* by it: first and last position; none: {1, 0} */
    uint32_t first, last;       /* seen by any */
    uint32_t counter;           /* which of the arrivals is this job's */
    const slot_t *trunk, *tail; /* position p is trunk[p], or tail[p - n_trunk] */
    uint32_t n_trunk;
    size_t base; /* of the layer's keys and values of this head at slot 0, in elements */
};

/* Pairs [piece * PAIRS, …) of a group. False: none of them takes part. */
template <int PAIRS>
static __device__ __forceinline__ bool
find_job(const struct attend_scene &c, const struct row_group &group, uint32_t piece, uint32_t kv_head,
         struct attend_job *job)
{
    const uint32_t share = c.m->heads / c.m->kv_heads, lane = job->lane, pair = piece * PAIRS + lane;
    const uint32_t pairs = group.n * share, begin = piece * PAIRS;
    if (begin >= pairs)
        return false;
    const struct row *rows = c.sweep->rows;
    job->n = pairs - begin < PAIRS ? pairs - begin : PAIRS;
    job->row = group.first + pair / share;
    job->head = kv_head * share + pair % share;
    job->seen = make_uint2(1, 0);
    if (lane < job->n && rows[job->row].from < c.layer) {
        const uint32_t last = rows[job->row].n_trunk + rows[job->row].n_tail - 1, window = c.m->window;
        job->seen = make_uint2(window > 0 && last >= window ? last + 1 - window : 0, last);
    }
    const bool takes_part = job->seen.x <= job->seen.y;
    job->first = __reduce_min_sync(ALL_OF_WARP, takes_part ? job->seen.x : UINT32_MAX);
    job->last = __reduce_max_sync(ALL_OF_WARP, takes_part ? job->seen.y : 0);
    if (job->first == UINT32_MAX)
        return false;
    job->counter = (group.first + begin / share) * c.m->heads + kv_head * share + begin % share;
    const struct row &row = rows[group.first];
    job->trunk = c.sweep->store.trunk + (size_t)row.seq * c.sweep->store.trunk_room;
    job->tail = c.sweep->tails + row.tail;
    job->n_trunk = row.n_trunk;
    job->base = ((size_t)(c.layer - 1) * c.sweep->store.slots * c.m->kv_heads + kv_head) * c.m->head_dim;
    return true;
}

/* The queries and bounds of a job's pairs to shared memory. */
template <int PAIRS>
static __device__ __forceinline__ void
put_queries(const struct attend_scene &c, const struct attend_job &job, const struct attend_place<PAIRS> &place)
{
    const uint32_t lane = job.lane, dim = c.m->head_dim, padded = padded_dim(dim);
    __syncwarp(); /* the job before has been read */
    if (lane < PAIRS)
        place.seen[lane] = job.seen;
    for (uint32_t i = 0; i < job.n; i++) {
        const uint32_t row = __shfl_sync(ALL_OF_WARP, job.row, (int)i),
                       head = __shfl_sync(ALL_OF_WARP, job.head, (int)i);
        const float *from = c.sweep->store.q + ((size_t)row * c.m->heads + head) * dim;
        for (uint32_t d = lane; d < padded; d += WARP)
            place.q[i * padded + d] = d < dim ? from[d] : 0;
    }
    __syncwarp();
}

/* ---- sums ---- */

/* What has been summed of each pair: lane i holds dimensions [i * DIMS, (i + 1) * DIMS) of the output. */
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

/* A partial joins those before it. */
template <int DIMS>
static __device__ __forceinline__ void
merge(float &max, float &sum, float (&out)[DIMS], float more_max, float more_sum, const float (&more)[DIMS])
{
    if (more_max == -INFINITY && more_sum == 0) /* of positions that are not seen */
        return;
    const float most = fmaxf(max, more_max), keep = max == most ? 1 : expf(max - most),
                add = more_max == most ? 1 : expf(more_max - most);
    max = most;
    sum = __fmaf_rn(sum, keep, __fmul_rn(more_sum, add));
#pragma unroll
    for (int d = 0; d < DIMS; d++)
        out[d] = __fmaf_rn(out[d], keep, __fmul_rn(more[d], add));
}

/* Scores of the lane's position become weights exp(z - max) in shared memory; the sums so far are scaled to the new
 * maximum (online softmax: Milakov and Gimelshein 2018). */
template <int PAIRS, int DIMS>
static __device__ __forceinline__ void
weigh(const struct attend_job &job, const struct attend_place<PAIRS> &place, uint32_t position, const float (&z)[PAIRS],
      attend_sums<PAIRS, DIMS> &a)
{
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        if ((uint32_t)i >= job.n)
            break;
        const uint2 bounds = place.seen[i];
        const bool seen = position >= bounds.x && position <= bounds.y;
        float most = seen ? z[i] : -INFINITY;
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2)
            most = fmaxf(most, __shfl_xor_sync(ALL_OF_WARP, most, apart));
        most = fmaxf(most, a.max[i]);
        const float p = seen ? expf(z[i] - most) : 0, keep = a.max[i] == most ? 1 : expf(a.max[i] - most);
        float sum = p;
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2)
            sum += __shfl_xor_sync(ALL_OF_WARP, sum, apart);
        a.max[i] = most;
        a.sum[i] = __fmaf_rn(a.sum[i], keep, sum);
#pragma unroll
        for (int d = 0; d < DIMS; d++)
            a.out[i][d] = __fmul_rn(a.out[i][d], keep);
        place.weights[job.lane * PAIRS + i] = p;
    }
}

/* Positions [first, first + ATTEND_BLOCK), of which some are seen, into the sums. */
template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
absorb_block(const struct attend_scene &c, const struct attend_job &job, const struct attend_place<PAIRS> &place,
             uint32_t first, attend_sums<PAIRS, DIMS> &a)
{
    const uint32_t lane = job.lane, dim = c.m->head_dim, padded = padded_dim(dim);
    const uint32_t position = first + lane, there = position < job.last ? position : job.last;
    const size_t stride = (size_t)c.m->kv_heads * dim;
    const slot_t slot = there < job.n_trunk ? job.trunk[there] : job.tail[there - job.n_trunk];
    const KV *key = (const KV *)c.sweep->store.keys + job.base + slot * stride;
    float z[PAIRS] = {};
#pragma unroll 2
    for (uint32_t d = 0; d < padded; d += 8) {
        float k[8];
        load_values<8>(key, d, dim, k);
#pragma unroll
        for (int i = 0; i < PAIRS; i++) {
            if ((uint32_t)i >= job.n)
                break;
            const float4 low = *(const float4 *)(place.q + i * padded + d);
            const float4 high = *(const float4 *)(place.q + i * padded + d + 4);
            z[i] = __fmaf_rn(k[3], low.w, __fmaf_rn(k[2], low.z, __fmaf_rn(k[1], low.y, __fmaf_rn(k[0], low.x, z[i]))));
            z[i] = __fmaf_rn(k[7], high.w,
                             __fmaf_rn(k[6], high.z, __fmaf_rn(k[5], high.y, __fmaf_rn(k[4], high.x, z[i]))));
        }
    }
    weigh(job, place, position, z, a);
    __syncwarp();
    const KV *values = (const KV *)c.sweep->store.values + job.base;
    const uint32_t begin = job.first > first ? job.first - first : 0;
    const uint32_t end = job.last - first < ATTEND_BLOCK ? job.last - first + 1 : ATTEND_BLOCK;
#pragma unroll 4
    for (uint32_t j = begin; j < end; j++) {
        float v[DIMS];
        load_values<DIMS>(values + __shfl_sync(ALL_OF_WARP, slot, (int)j) * stride, lane * DIMS, dim, v);
#pragma unroll
        for (int i = 0; i < PAIRS; i++) {
            if ((uint32_t)i >= job.n)
                break;
            const float p = place.weights[j * PAIRS + i];
#pragma unroll
            for (int d = 0; d < DIMS; d++)
                a.out[i][d] = __fmaf_rn(p, v[d], a.out[i][d]);
        }
    }
    __syncwarp(); /* weights are written again */
}

/* A split, from nothing. */
template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
absorb_split(const struct attend_scene &c, const struct attend_job &job, const struct attend_place<PAIRS> &place,
             uint32_t split, attend_sums<PAIRS, DIMS> &a)
{
    const uint32_t from =
        split * ATTEND_SPLIT > job.first ? split * ATTEND_SPLIT : job.first / ATTEND_BLOCK * ATTEND_BLOCK;
    clear_sums(a);
    for (uint32_t at = from; at < (split + 1) * ATTEND_SPLIT && at <= job.last; at += ATTEND_BLOCK)
        absorb_block<KV, PAIRS, DIMS>(c, job, place, at, a);
}

/* ---- results ---- */

template <int DIMS>
static __device__ __forceinline__ void
put_attended(const struct attend_scene &c, uint32_t lane, uint32_t row, uint32_t head, float sum,
             const float (&out)[DIMS])
{
    const uint32_t first = lane * DIMS, dim = c.m->head_dim;
#pragma unroll
    for (int d = 0; d < DIMS; d += 2)
        if (first + d < dim)
            put_two(c.sweep->store.attended, c.m->exact, c.m->heads * dim, row, head * dim + first + d, out[d] / sum,
                    out[d + 1] / sum);
}

static __device__ __forceinline__ float *
partial_at(const struct attend_scene &c, uint32_t row, uint32_t head, uint32_t split)
{
    const struct dev_store &s = c.sweep->store;
    return s.partials + (((size_t)row * c.m->heads + head) * s.max_splits + split) * (2 + c.m->head_dim);
}

template <int PAIRS, int DIMS>
static __device__ __forceinline__ void
put_partials(const struct attend_scene &c, const struct attend_job &job, uint32_t split,
             const attend_sums<PAIRS, DIMS> &a)
{
    const uint32_t lane = job.lane, dim = c.m->head_dim;
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        if ((uint32_t)i >= job.n)
            break;
        float *to = partial_at(c, __shfl_sync(ALL_OF_WARP, job.row, i), __shfl_sync(ALL_OF_WARP, job.head, i), split);
        if (lane == 0)
            *(float2 *)to = make_float2(a.max[i], a.sum[i]);
#pragma unroll
        for (int d = 0; d < DIMS; d += 2)
            if (lane * DIMS + d < dim)
                *(float2 *)(to + 2 + lane * DIMS + d) = make_float2(a.out[i][d], a.out[i][d + 1]);
    }
}

/* All partials of a job's pairs are there. */
template <int DIMS>
static __device__ __forceinline__ void
merge_partials(const struct attend_scene &c, const struct attend_job &job)
{
    const uint32_t lane = job.lane, dim = c.m->head_dim;
    for (uint32_t i = 0; i < job.n; i++) {
        const uint32_t row = __shfl_sync(ALL_OF_WARP, job.row, (int)i),
                       head = __shfl_sync(ALL_OF_WARP, job.head, (int)i),
                       first = __shfl_sync(ALL_OF_WARP, job.seen.x, (int)i),
                       last = __shfl_sync(ALL_OF_WARP, job.seen.y, (int)i);
        if (first > last)
            continue;
        float max = -INFINITY, sum = 0, out[DIMS] = {};
#pragma unroll 2
        for (uint32_t s = first / ATTEND_SPLIT; s <= last / ATTEND_SPLIT; s++) {
            const float *from = partial_at(c, row, head, s);
            const float2 head_of = __ldcg((const float2 *)from);
            float more[DIMS] = {};
#pragma unroll
            for (int d = 0; d < DIMS; d += 2)
                if (lane * DIMS + d < dim) {
                    const float2 two = __ldcg((const float2 *)(from + 2 + lane * DIMS + d));
                    more[d] = two.x;
                    more[d + 1] = two.y;
                }
            merge(max, sum, out, head_of.x, head_of.y, more);
        }
        put_attended(c, job.lane, row, head, sum, out);
    }
}

/* ---- few rows: a warp a split ---- */

template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
attend_one_split(const struct attend_scene &c, const struct attend_job &job, const struct attend_place<PAIRS> &place,
                 uint32_t split)
{
    attend_sums<PAIRS, DIMS> a;
    absorb_split<KV, PAIRS, DIMS>(c, job, place, split, a);
    put_partials(c, job, split, a);
    __threadfence();
    __syncwarp();
    uint32_t before = 0;
    const uint32_t wanted = job.last / ATTEND_SPLIT - job.first / ATTEND_SPLIT;
    if (job.lane == 0) {
        uint32_t *arrivals = &c.sweep->store.arrivals[job.counter];
        before = add_acquire_release(arrivals, 1);
        if (before == wanted)
            *arrivals = 0;
    }
    before = __shfl_sync(ALL_OF_WARP, before, 0);
    if (before != wanted)
        return;
    __threadfence();
    merge_partials<DIMS>(c, job);
}

/* ---- many rows: a warp walks all splits ---- */

template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
attend_all_splits(const struct attend_scene &c, const struct attend_job &job, const struct attend_place<PAIRS> &place)
{
    attend_sums<PAIRS, DIMS> all, a;
    clear_sums(all);
    for (uint32_t split = job.first / ATTEND_SPLIT; split <= job.last / ATTEND_SPLIT; split++) {
        absorb_split<KV, PAIRS, DIMS>(c, job, place, split, a);
#pragma unroll
        for (int i = 0; i < PAIRS; i++)
            merge(all.max[i], all.sum[i], all.out[i], a.max[i], a.sum[i], a.out[i]);
    }
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        if ((uint32_t)i >= job.n)
            break;
        const uint32_t row = __shfl_sync(ALL_OF_WARP, job.row, i), head = __shfl_sync(ALL_OF_WARP, job.head, i),
                       first = __shfl_sync(ALL_OF_WARP, job.seen.x, i), last = __shfl_sync(ALL_OF_WARP, job.seen.y, i);
        if (first <= last)
            put_attended(c, job.lane, row, head, all.sum[i], all.out[i]);
    }
}

/* ---- all of it ---- */

/* Jobs are numbered with key-value heads innermost and pieces of groups, most of which are empty, outermost, and given to
 * the blocks' warps so that few jobs spread over all multiprocessors. */
template <class KV, int PAIRS, int DIMS, bool APART>
static __device__ __forceinline__ void
attend_rows(const struct attend_scene &c, float *shared)
{
    const uint32_t thread = thread_here(), share = c.m->heads / c.m->kv_heads,
                   pieces = (ATTEND_PAIRS * share + PAIRS - 1) / PAIRS;
    const uint32_t splits = APART ? c.splits : 1, groups = c.sweep->n_groups;
    const uint32_t jobs = pieces * groups * splits * c.m->kv_heads;
    const struct attend_place<PAIRS> place = place_of_warp<PAIRS>(shared, thread / WARP, c.m->head_dim);
    for (uint32_t u = thread / WARP * gridDim.x + blockIdx.x; u < jobs; u += gridDim.x * SWEEP_WARPS) {
        const uint32_t kv_head = u % c.m->kv_heads, split = u / c.m->kv_heads % splits,
                       group = u / c.m->kv_heads / splits % groups, piece = u / c.m->kv_heads / splits / groups;
        struct attend_job job;
        job.lane = thread % WARP;
        if (!find_job<PAIRS>(c, c.sweep->groups[group], piece, kv_head, &job))
            continue;
        if (APART && (split < job.first / ATTEND_SPLIT || split > job.last / ATTEND_SPLIT))
            continue;
        put_queries(c, job, place);
        if (APART)
            attend_one_split<KV, PAIRS, DIMS>(c, job, place, split);
        else
            attend_all_splits<KV, PAIRS, DIMS>(c, job, place);
    }
}

#endif
