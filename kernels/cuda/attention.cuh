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

#include "kernels/cuda/attention_sums.cuh"
#include "kernels/cuda/norm.cuh"

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
