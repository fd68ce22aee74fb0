/* Attention of rows to their paths, by blocks.
 *
 * A row's path is cut into splits of ATTEND_SPLIT positions and these into blocks of ATTEND_BLOCK, at fixed positions, one
 * for each warp. A lane scores one position; then a lane sums DIMS dimensions of the values. The warps' partials (maximum,
 * sum, unnormalised output) are merged in ascending order to that of the split, and those of the splits in
 * ascending order again: by the block that finishes last where splits are different blocks' work (few rows), by
 * the one that walks them all otherwise. Both do the same arithmetic in the same order (flash-decoding: Dao, Haziza, Massa,
 * Sizov 2023).
 *
 * What shares a load of keys and values: up to PAIRS (row, head) pairs of a group of rows with one path, heads of one
 * key-value head. What a pair does not see has weight 0 for it, which changes no bit of its sums; blocks and splits of which
 * it sees nothing are not merged. */
#ifndef KERNELS_CUDA_DEVICE_ATTENTION_CUH
#define KERNELS_CUDA_DEVICE_ATTENTION_CUH

#include "kernels/cuda/device/attention_sums.cuh"
#include "kernels/cuda/device/norm.cuh"

#define MERGE_AHEAD 8 /* partials under way at once */

/* ---- a thread's share of merging: two dimensions of a pair ---- */

struct merged {
    float max, sum;
    float2 out;
};

struct merge_place {
    uint32_t pair, d; /* its first dimension; not below head_dim, or a pair that is not there: nothing to do */
    uint32_t row, head;
    uint2 seen;
    bool any;
};

template <int DIMS>
static __device__ __forceinline__ struct merge_place
merge_place_of(const struct attend_scene &c, const struct attend_job &job, uint32_t thread)
{
    struct merge_place at;
    at.pair = 2 * thread / (WARP * DIMS);
    at.d = 2 * thread % (WARP * DIMS);
    at.row = __shfl_sync(ALL_OF_WARP, job.row, (int)at.pair);
    at.head = __shfl_sync(ALL_OF_WARP, job.head, (int)at.pair);
    at.seen.x = __shfl_sync(ALL_OF_WARP, job.seen.x, (int)at.pair);
    at.seen.y = __shfl_sync(ALL_OF_WARP, job.seen.y, (int)at.pair);
    at.any = at.pair < job.n && at.d < c.m->head_dim && at.seen.x <= at.seen.y;
    return at;
}

/* A partial joins those before it (online softmax: Milakov and Gimelshein 2018). */
static __device__ __forceinline__ void
merge(struct merged &a, const float2 head, const float2 out)
{
    const float most = fmaxf(a.max, head.x), kept = expf(a.max - most), added = expf(head.x - most);
    const float keep = a.max == most ? 1 : kept, add = head.x == most ? 1 : added;
    a.max = most;
    a.sum = fmaf(a.sum, keep, head.y * add);
    a.out.x = fmaf(a.out.x, keep, out.x * add);
    a.out.y = fmaf(a.out.y, keep, out.y * add);
}

/* What the warps found of a split. */
template <int PAIRS>
static __device__ __forceinline__ struct merged
merge_blocks(const struct attend_place *place, const struct merge_place &at, uint32_t split, uint32_t thread)
{
    struct merged a = {-INFINITY, 0, {0, 0}};
    const uint32_t begin = split * ATTEND_SPLIT, end = begin + ATTEND_SPLIT - 1;
    if (!at.any || at.seen.x > end || at.seen.y < begin)
        return a;
    const uint32_t first = at.seen.x > begin ? (at.seen.x - begin) / ATTEND_BLOCK : 0;
    const uint32_t last = at.seen.y < end ? (at.seen.y - begin) / ATTEND_BLOCK : SWEEP_WARPS - 1;
#pragma unroll 4
    for (uint32_t w = first; w <= last; w++)
        merge(a, place->heads[w][at.pair], ((const float2 *)place->out[w])[thread]);
    return a;
}

static __device__ __forceinline__ float *
partial_at(const struct attend_scene &c, const struct merge_place &at, uint32_t split)
{
    const struct dev_store &s = c.sweep->store;
    return s.partials + (((size_t)at.row * c.m->heads + at.head) * s.max_splits + split) * (2 + c.m->head_dim);
}

static __device__ __forceinline__ void
put_partial(const struct attend_scene &c, const struct merge_place &at, uint32_t split, const struct merged &a)
{
    float *to = partial_at(c, at, split);
    if (at.d == 0)
        *(float2 *)to = make_float2(a.max, a.sum);
    *(float2 *)(to + 2 + at.d) = a.out;
}

/* All partials of the pair, which are there. */
static __device__ __forceinline__ struct merged
merge_splits(const struct attend_scene &c, const struct merge_place &at)
{
    struct merged a = {-INFINITY, 0, {0, 0}};
    const uint32_t last = at.seen.y / ATTEND_SPLIT;
    for (uint32_t from = at.seen.x / ATTEND_SPLIT; from <= last; from += MERGE_AHEAD) {
        float2 heads[MERGE_AHEAD] = {}, outs[MERGE_AHEAD] = {};
#pragma unroll
        for (uint32_t i = 0; i < MERGE_AHEAD; i++)
            if (from + i <= last) {
                const float *partial = partial_at(c, at, from + i);
                heads[i] = __ldcg((const float2 *)partial);
                outs[i] = __ldcg((const float2 *)(partial + 2 + at.d));
            }
#pragma unroll
        for (uint32_t i = 0; i < MERGE_AHEAD; i++)
            if (from + i <= last)
                merge(a, heads[i], outs[i]);
    }
    return a;
}

static __device__ __forceinline__ void
put_attended(const struct attend_scene &c, const struct merge_place &at, struct merged a)
{
    if (c.sinks != NULL)
        merge(a, make_float2(c.sinks[at.head], 1), make_float2(0, 0));
    put_two(c.sweep->store.attended, c.m->exact, c.m->heads * c.m->head_dim, at.row, at.head * c.m->head_dim + at.d,
            a.out.x / a.sum, a.out.y / a.sum);
}

/* ---- all of it ---- */

/* A split of a job, by all warps. */
template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ struct merged
attend_split(const struct attend_scene &c, const struct attend_job &job, struct attend_place *place,
             const struct merge_place &at, uint32_t split)
{
    const uint32_t thread = thread_here(), warp = thread / WARP, first = split * ATTEND_SPLIT + warp * ATTEND_BLOCK;
    static_assert(PAIRS * DIMS * WARP == ATTEND_SUMS && PAIRS <= ATTEND_PAIRS, "two sums a thread");
    __syncthreads(); /* queries are there, and what the warps found before has been read */
    if (first <= job.last && first + ATTEND_BLOCK > job.first)
        absorb_block<KV, PAIRS, DIMS>(c, job, first, place->q, place->heads[warp], place->out[warp]);
    __syncthreads();
    return merge_blocks<PAIRS>(place, at, split, thread);
}

/* The block has put down its partials of a split. Is it the last one of the job's? */
static __device__ __forceinline__ bool
is_last_split(const struct attend_scene &c, const struct attend_job &job)
{
    const uint32_t others = job.last / ATTEND_SPLIT - job.first / ATTEND_SPLIT;
    bool last = false;
    __syncthreads(); /* what thread 0 releases is the whole block's, and so is what it acquires */
    if (thread_here() == 0) {
        uint32_t *arrivals = &c.sweep->store.arrivals[job.counter];
        last = add_acquire_release(arrivals, 1) == others;
        if (last)
            *arrivals = 0;
    }
    return __syncthreads_or(last);
}

template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
attend_job_splits(const struct attend_scene &c, const struct attend_job &job, struct attend_place *place,
                  uint32_t first, uint32_t last)
{
    const struct merge_place at = merge_place_of<DIMS>(c, job, thread_here());
    const bool partial = job.first / ATTEND_SPLIT < first || job.last / ATTEND_SPLIT > last;
    struct merged all = {-INFINITY, 0, {0, 0}};
    put_queries(c, job, place);
    for (uint32_t split = first; split <= last; split++) {
        const struct merged a = attend_split<KV, PAIRS, DIMS>(c, job, place, at, split);
        const bool sees = at.any && at.seen.x / ATTEND_SPLIT <= split && at.seen.y / ATTEND_SPLIT >= split;
        if (sees && partial)
            put_partial(c, at, split, a);
        else if (sees)
            merge(all, make_float2(a.max, a.sum), a.out);
    }
    if (partial && !is_last_split(c, job))
        return;
    if (at.any)
        put_attended(c, at, partial ? merge_splits(c, at) : all);
}

/* Jobs are numbered with key-value heads innermost and pieces of groups, most of which are empty, outermost, so that few
 * jobs spread over all multiprocessors. */
template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
attend_rows(const struct attend_scene &c, struct attend_place *place)
{
    const uint32_t share = c.m->heads / c.m->kv_heads, pieces = (ATTEND_PAIRS * share + PAIRS - 1) / PAIRS;
    const uint32_t splits = c.apart ? c.splits : 1, groups = c.sweep->n_groups;
    const uint32_t jobs = pieces * groups * splits * c.m->kv_heads;
    for (uint32_t u = blockIdx.x; u < jobs; u += gridDim.x) {
        const uint32_t kv_head = u % c.m->kv_heads, split = u / c.m->kv_heads % splits,
                       group = u / c.m->kv_heads / splits % groups, piece = u / c.m->kv_heads / splits / groups;
        struct attend_job job;
        job.lane = thread_here() % WARP;
        if (!find_job<PAIRS>(c, c.sweep->groups[group], piece, kv_head, &job))
            continue;
        const uint32_t first = job.first / ATTEND_SPLIT, last = job.last / ATTEND_SPLIT;
        if (c.apart && (split < first || split > last))
            continue;
        attend_job_splits<KV, PAIRS, DIMS>(c, job, place, c.apart ? split : first, c.apart ? split : last);
    }
}

#endif
