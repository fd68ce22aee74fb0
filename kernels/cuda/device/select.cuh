/* The last token that stays: of a row of logits in order of rank (block.cuh), the first whose prefix sum reaches a goal.
 * Counting tokens it is top-k, adding their probabilities top-p.
 *
 * A descent over ranks, radix 4: each pass over the row cuts the interval that holds the answer into four and keeps
 * one. Ranks tell equal logits apart by id, so ties need no care. Once few tokens are left in the interval they are
 * listed in shared memory, and the passes go over the list. */
#ifndef KERNELS_CUDA_DEVICE_SELECT_CUH
#define KERNELS_CUDA_DEVICE_SELECT_CUH

#include "kernels/cuda/device/mass.cuh"

#define LISTED_MAX 4096 /* candidates in shared memory */
#define RANKED_MAX 256  /* candidates that are compared each with each, a thread each */

struct select_scratch {
    struct block_scratch block;
    uint64_t sums[3][ROW_WARPS];
    uint32_t counts[4][ROW_WARPS];
    uint64_t list[LISTED_MAX], ranked[RANKED_MAX], ranked_units[RANKED_MAX];
    uint32_t listed, n_ranked;
    uint64_t cut, prefix;
};

struct interval {
    uint64_t low, high; /* ranks, both within */
    uint64_t above;     /* the sum over all ranks beyond `high`; below the goal */
    uint32_t members;
};

struct cut {
    uint64_t rank;   /* of the last one that stays */
    uint64_t prefix; /* the sum up to it */
};

/* Where to divide: evenly in logits on even passes, which suits real ones, evenly in ranks on odd ones, which ends. */
static __device__ __forceinline__ uint64_t
pivot(const struct interval *in, int pass, int quarter)
{
    const uint64_t step = (in->high - in->low) / 4 * (uint64_t)quarter;
    uint64_t at = in->low + (step > 0 ? step : 1);
    const float low = key_logit(rank_key(in->low)), high = key_logit(rank_key(in->high));
    const float between = low + (high - low) * (0.25f * (float)quarter);
    if (pass % 2 == 0 && between > low && between < high)
        at = rank_of(logit_key(between), UINT32_MAX);
    return at;
}

/* Where ranks come from: a row of logits, or the list. get() says whether number i lies in the interval. */
struct row_ranks {
    const float *z;
    uint32_t n;
    __device__ __forceinline__ bool
    get(uint32_t i, const struct interval *in, float low, float high, uint64_t *rank) const
    {
        const float zi = z[i];
        if (!(zi >= low && zi <= high)) /* most are not; nor is NaN */
            return false;
        *rank = rank_of(logit_key(zi), i);
        return *rank >= in->low && *rank <= in->high;
    }
};

struct listed_ranks {
    const uint64_t *list;
    uint32_t n;
    __device__ __forceinline__ bool
    get(uint32_t i, const struct interval *in, float, float, uint64_t *rank) const
    {
        *rank = list[i];
        return *rank >= in->low && *rank <= in->high;
    }
};

/* Copies the ranks in the interval to `to`, in no particular order. All threads have met since they read *n_to. */
template <class Ranks>
static __device__ void
gather(Ranks ranks, const struct interval *in, uint64_t *to, uint32_t *n_to)
{
    const float low = key_logit(rank_key(in->low)), high = key_logit(rank_key(in->high));
    if (threadIdx.x == 0)
        *n_to = 0;
    __syncthreads();
#pragma unroll 8
    for (uint32_t i = threadIdx.x; i < ranks.n; i += ROW_THREADS) {
        uint64_t rank;
        if (ranks.get(i, in, low, high, &rank))
            to[atomicAdd(n_to, 1u)] = rank;
    }
    __syncthreads();
}

/* One pass: divides the interval. units(rank) is what a rank adds. */
template <class Ranks, class Units>
static __device__ void
descend(Ranks ranks, Units units, uint64_t goal, int pass, struct interval *in, struct select_scratch *s)
{
    const uint64_t p1 = pivot(in, pass, 1), p2 = max_op()(p1, pivot(in, pass, 2)),
                   p3 = max_op()(p2, pivot(in, pass, 3));
    const float low = key_logit(rank_key(in->low)), high = key_logit(rank_key(in->high));
    uint64_t s1 = 0, s2 = 0, s3 = 0; /* sums over the ranks from p1, p2, p3 on */
    uint32_t c0 = 0, c1 = 0, c2 = 0, c3 = 0;
#pragma unroll 8
    for (uint32_t i = threadIdx.x; i < ranks.n; i += ROW_THREADS) {
        uint64_t rank;
        if (!ranks.get(i, in, low, high, &rank))
            continue;
        c0++;
        if (rank < p1)
            continue;
        const uint64_t u = units(rank);
        c1++, s1 += u;
        c2 += rank >= p2, s2 += rank >= p2 ? u : 0;
        c3 += rank >= p3, s3 += rank >= p3 ? u : 0;
    }
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    s1 = warp_reduce(s1, add_op()), s2 = warp_reduce(s2, add_op()), s3 = warp_reduce(s3, add_op());
    c0 = warp_reduce(c0, add_op()), c1 = warp_reduce(c1, add_op());
    c2 = warp_reduce(c2, add_op()), c3 = warp_reduce(c3, add_op());
    __syncthreads();
    if (lane == 0) {
        s->sums[0][warp] = s1, s->sums[1][warp] = s2, s->sums[2][warp] = s3;
        s->counts[0][warp] = c0, s->counts[1][warp] = c1, s->counts[2][warp] = c2, s->counts[3][warp] = c3;
    }
    __syncthreads();
    const uint32_t part = lane % ROW_WARPS;
    s1 = warp_reduce<ROW_WARPS>(s->sums[0][part], add_op());
    s2 = warp_reduce<ROW_WARPS>(s->sums[1][part], add_op());
    s3 = warp_reduce<ROW_WARPS>(s->sums[2][part], add_op());
    c0 = warp_reduce<ROW_WARPS>(s->counts[0][part], add_op());
    c1 = warp_reduce<ROW_WARPS>(s->counts[1][part], add_op());
    c2 = warp_reduce<ROW_WARPS>(s->counts[2][part], add_op());
    c3 = warp_reduce<ROW_WARPS>(s->counts[3][part], add_op());
    if (in->above + s3 >= goal) {
        in->low = p3;
        in->members = c3;
    } else if (in->above + s2 >= goal) {
        in->above += s3;
        in->high = p3 - 1, in->low = p2;
        in->members = c2 - c3;
    } else if (in->above + s1 >= goal) {
        in->above += s2;
        in->high = p2 - 1, in->low = p1;
        in->members = c1 - c2;
    } else {
        in->above += s1;
        in->high = p1 - 1;
        in->members = c0 - c1;
    }
}

/* Of a row of logits z (n), the first rank at which the sum reaches the goal (>= 1). It lies in the interval, whose
 * `members` may be more than there are; the sum over all of them and `above` reaches the goal. */
template <class Units>
static __device__ struct cut
select_cut(const float *z, uint32_t n, Units units, uint64_t goal, struct interval in, struct select_scratch *s)
{
    const struct row_ranks row = {z, n};
    struct listed_ranks listed = {s->list, 0};
    for (int pass = 0; in.members > RANKED_MAX; pass++) {
        if (listed.n == 0 && in.members <= LISTED_MAX) {
            gather(row, &in, s->list, &s->listed);
            listed.n = s->listed;
        }
        if (listed.n > 0)
            descend(listed, units, goal, pass, &in, s);
        else
            descend(row, units, goal, pass, &in, s);
    }
    if (listed.n > 0)
        gather(listed, &in, s->ranked, &s->n_ranked);
    else
        gather(row, &in, s->ranked, &s->n_ranked);
    if (threadIdx.x < s->n_ranked)
        s->ranked_units[threadIdx.x] = units(s->ranked[threadIdx.x]);
    if (threadIdx.x == 0) /* should the sums not keep what they promise, nothing more is cut off */
        s->cut = in.low, s->prefix = in.above;
    __syncthreads();
    if (threadIdx.x < s->n_ranked) {
        const uint64_t mine = s->ranked[threadIdx.x], own = s->ranked_units[threadIdx.x];
        uint64_t prefix = in.above;
        for (uint32_t i = 0; i < s->n_ranked; i++)
            prefix += s->ranked[i] >= mine ? s->ranked_units[i] : 0;
        if (prefix >= goal && prefix - own < goal)
            s->cut = mine, s->prefix = prefix;
    }
    __syncthreads();
    const struct cut found = {s->cut, s->prefix};
    return found;
}

#endif
