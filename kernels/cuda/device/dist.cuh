/* Distributions over the vocabulary: sums of probabilities, draws, the cut by top-k and top-p, and the distribution
 * that a row of logits and sampling settings define (struct row_dist). */
#pragma once

#include <float.h>

#include "base/rng.h"
#include "kernels/cuda/device/block.cuh"

/* Sums of probabilities. A sum of floats depends on the order of its terms. So masses are added as integers, in fixed
 * point: sums and their comparisons are the same in any order, and prefix sums agree with totals. */
struct mass {
    uint64_t units;
    int scale; /* the value is units * 2^-scale */
};

static __device__ __forceinline__ double
mass_value(struct mass m)
{
    return ldexp((double)m.units, -m.scale);
}

/* Returns the scale at which n numbers up to 1 have a sum of at most 2^62. */
static __device__ __forceinline__ int
unit_scale(uint32_t n)
{
    return 62 - (32 - __clz((int)n));
}

/* Returns p * 2^scale rounded down; p >= 0, and p * 2^scale < 2^63. */
static __device__ __forceinline__ uint64_t
fixed_point(float p, int scale)
{
    const uint32_t bits = __float_as_uint(p),
                   mantissa = (bits & 0x7fffffu) | 0x800000u; /* subnormal numbers count as 0 */
    const int right = 189 - scale - (int)(bits >> 23);        /* right shift from 63 bits */
    return right < 64 && bits >> 23 > 0 ? (uint64_t)mantissa << 39 >> right : 0;
}

/* Returns the scale that uses most of the 64 bits if the largest of n numbers is `most` (bits of a float). */
static __device__ __forceinline__ int
fitting_scale(uint32_t n, uint32_t most)
{
    return unit_scale(n) + 126 - (int)(most >> 23);
}

/* Returns whether a sum of n numbers is too coarse. Each number was rounded down by less than a unit. */
static __device__ __forceinline__ bool
too_coarse(uint64_t units, uint32_t n)
{
    return units >> 24 < n;
}

/* Returns the sum of p(v) >= 0 for v < n; p may be evaluated twice for the same v, always by the same thread. */
template <class P>
static __device__ struct mass
block_mass(P p, uint32_t n, struct block_scratch *scratch)
{
    struct mass m = {0, unit_scale(n)};
    for (bool again = false;; again = true) {
        uint32_t most = 0;
        m.units = 0;
#pragma unroll 8
        for (uint32_t v = threadIdx.x; v < n; v += BLOCK_THREADS) {
            const float pv = p(v);
            m.units += fixed_point(pv, m.scale);
            most = max_op()(most, __float_as_uint(pv));
        }
        m.units = block_reduce(m.units, add_op(), scratch);
        if (again || !too_coarse(m.units, n))
            return m;
        most = block_reduce(most, max_op(), scratch);
        if (most == 0 || fitting_scale(n, most) <= m.scale)
            return m;
        m.scale = fitting_scale(n, most);
    }
}

/* Draws by inversion: the first token at which the prefix sum passes u times the total. */

static __device__ __forceinline__ bool
listed_among(const token_t *tokens, size_t n, uint32_t v)
{
    for (size_t i = 0; i < n; i++)
        if (tokens[i] == (token_t)v)
            return true;
    return false;
}

/* A stored distribution without the excluded tokens. */
struct stored_p {
    const float *p;
    const token_t *without; /* (n_without) */
    size_t n_without;
    __device__ __forceinline__ float
    operator()(uint32_t v) const
    {
        const float pv = p[v]; /* an element that was never written may have any value */
        return pv > 0 && !listed_among(without, n_without, v) ? fminf(pv, 1.0f) : 0.0f;
    }
};

/* Draws from p(v) >= 0, v < n; returns TOKEN_NONE if all are 0. Each step divides the range that contains the answer by
 * the number of warps, so a vocabulary takes four steps. The sums are integers, so the sum of a range is exactly that
 * of its parts. */
template <class P>
static __device__ token_t
block_draw(P p, uint32_t n, const struct rng_key *key, struct block_scratch *scratch)
{
    const struct mass total = block_mass(p, n, scratch);
    if (total.units == 0)
        return TOKEN_NONE;
    uint64_t target = (uint64_t)(rng_uniform(key) * (double)total.units);
    if (target >= total.units)
        target = total.units - 1;
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    uint32_t first = 0, length = n;
    while (length > 1) {
        const uint32_t part = (length + BLOCK_WARPS - 1) / BLOCK_WARPS;
        const uint32_t from = first + warp * part, until = from + part < first + length ? from + part : first + length;
        uint64_t sum = 0;
#pragma unroll 4
        for (uint32_t v = from + lane; v < until; v += WARP)
            sum += fixed_point(p(v), total.scale);
        sum = warp_reduce(sum, add_op());
        __syncthreads();
        if (lane == 0)
            scratch->words[warp] = sum;
        __syncthreads();
        uint32_t chosen = 0;
        while (chosen < BLOCK_WARPS - 1 && target >= scratch->words[chosen])
            target -= scratch->words[chosen++];
        const uint32_t end = first + length;
        first += chosen * part;
        length = end - first < part ? end - first : part;
    }
    return (token_t)first;
}

/* Finds the last token that is kept: in a row of logits in order of rank (block.cuh), the first token whose prefix sum
 * reaches a goal. The sum counts tokens for top-k, and adds their probabilities for top-p.
 *
 * The search descends over ranks, radix 4: each pass over the row cuts the interval that contains the answer into four
 * and keeps one. Ranks order equal logits by id, so ties need no special case. When few tokens are left in the
 * interval, they are listed in shared memory, and further passes read the list. */

#define LISTED_MAX 4096 /* candidates in shared memory */
#define RANKED_MAX 256  /* candidates that are compared pairwise, one thread each */

struct select_scratch {
    struct block_scratch block;
    uint64_t sums[4][BLOCK_WARPS];
    uint32_t counts[4][BLOCK_WARPS];
    uint64_t list[LISTED_MAX], ranked[RANKED_MAX], ranked_units[RANKED_MAX];
    uint32_t listed, n_ranked;
    uint64_t cut, prefix;
};

struct interval {
    uint64_t low, high; /* interval of ranks, both included */
    uint64_t above;     /* the sum over all ranks above `high`; below the goal */
    uint32_t members;
};

struct cut {
    uint64_t rank;   /* of the last token that is kept */
    uint64_t prefix; /* the sum up to this rank */
};

/* Returns where to divide the interval: evenly in logits on even passes, which is fast for real logits, evenly in ranks
 * on odd passes, which guarantees termination. */
static __device__ __forceinline__ uint64_t
pivot(const struct interval *in, int pass, int quarter)
{
    const uint64_t step = (in->high - in->low) / 4 * (uint64_t)quarter;
    uint64_t at = in->low + (step > 0 ? step : 1);
    const float low = key_logit(rank_key(in->low)), high = key_logit(rank_key(in->high));
    const float middle = low + (high - low) * (0.25f * (float)quarter);
    if (pass % 2 == 0 && middle > low && middle < high)
        at = rank_of(logit_key(middle), UINT32_MAX);
    return at;
}

/* The source of ranks: a row of logits, or the list. get() returns whether element i is in the interval. */
struct row_ranks {
    const float *z;
    uint32_t n;
    __device__ __forceinline__ bool
    get(uint32_t i, const struct interval *in, float low, float high, uint64_t *rank) const
    {
        const float zi = z[i];
        if (!(zi >= low && zi <= high)) /* most tokens are not in the interval; NaN never is */
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

/* Copies the ranks in the interval to `to`, in no particular order. A barrier must separate this call from earlier
 * reads of *n_to. */
template <class Ranks>
static __device__ void
gather(Ranks ranks, const struct interval *in, uint64_t *to, uint32_t *n_to)
{
    const float low = key_logit(rank_key(in->low)), high = key_logit(rank_key(in->high));
    if (threadIdx.x == 0)
        *n_to = 0;
    __syncthreads();
#pragma unroll 8
    for (uint32_t i = threadIdx.x; i < ranks.n; i += BLOCK_THREADS) {
        uint64_t rank;
        if (ranks.get(i, in, low, high, &rank))
            to[atomicAdd(n_to, 1u)] = rank;
    }
    __syncthreads();
}

/* One pass: divides the interval. units(rank) is the summand of a rank. */
template <class Ranks, class Units>
static __device__ void
descend(Ranks ranks, Units units, uint64_t goal, int pass, struct interval *in, struct select_scratch *s)
{
    const uint64_t p1 = pivot(in, pass, 1), p2 = max_op()(p1, pivot(in, pass, 2)),
                   p3 = max_op()(p2, pivot(in, pass, 3));
    const float low = key_logit(rank_key(in->low)), high = key_logit(rank_key(in->high));
    const uint64_t from[4] = {in->low, p1, p2, p3};
    uint64_t sums[4] = {}; /* sums from each of the dividing ranks on, except the first */
    uint32_t counts[4] = {};
#pragma unroll 8
    for (uint32_t i = threadIdx.x; i < ranks.n; i += BLOCK_THREADS) {
        uint64_t rank;
        if (!ranks.get(i, in, low, high, &rank))
            continue;
        const uint64_t u = rank < p1 ? 0 : units(rank);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            counts[j] += rank >= from[j];
            sums[j] += j > 0 && rank >= from[j] ? u : 0;
        }
    }
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 4; j++) {
        sums[j] = j == 0 ? 0 : warp_reduce(sums[j], add_op());
        counts[j] = warp_reduce(counts[j], add_op());
        if (lane == 0)
            s->sums[j][warp] = sums[j], s->counts[j][warp] = counts[j];
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 4; j++) {
        sums[j] = j == 0 ? 0 : warp_reduce<BLOCK_WARPS>(s->sums[j][lane % BLOCK_WARPS], add_op());
        counts[j] = warp_reduce<BLOCK_WARPS>(s->counts[j][lane % BLOCK_WARPS], add_op());
    }
    uint64_t end = in->high + 1, above = 0;
    uint32_t others = 0;
#pragma unroll
    for (int j = 3; j >= 0; j--) {
        if (j == 0 || in->above + sums[j] >= goal) {
            *in = {from[j], end - 1, in->above + above, counts[j] - others};
            break;
        }
        end = from[j], above = sums[j], others = counts[j];
    }
}

/* Returns the first rank of a row of logits z (n) at which the sum reaches the goal (>= 1). The rank is in the
 * interval. The interval's `members` may exceed the true number. The sum over all of them and `above` reaches the
 * goal. */
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
    if (threadIdx.x == 0) /* if the sum does not reach the goal, nothing more is cut off */
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

/* A row of logits and the user's sampling settings define a distribution (struct row_dist) over the next token without
 * storing it as an array. It is computed by passes over the row; p(v) is then computed when needed. The semantics are
 * those of kernels/cpu/sampling.h: temperature, then top-k, then top-p on the tokens kept by top-k; ties by lower id;
 * NaN counts as -infinity, and if no logit is finite token 0 has probability 1. */

/* Returns exp((z - max)/T), the weight of a logit before the cuts; 1 for the max, even if it is infinite. The quotient
 * is correctly rounded, using a precomputed inverse. */
static __device__ __forceinline__ float
logit_weight(const struct row_dist *dist, float z)
{
    const float below = z - dist->max, rough = below * dist->inverse;
    const float quotient = fmaf(fmaf(-rough, dist->temperature, below), dist->inverse, rough);
    return !(below < 0) ? 1.0f : rough > -104 ? expf(quotient) : 0.0f;
}

/* Returns the unnormalised probability of token v with logit z. */
static __device__ __forceinline__ float
dist_weight(const struct row_dist *dist, float z, uint32_t v)
{
    if (!(dist->max > -INFINITY))
        return v == dist->cut_id ? 1.0f : 0.0f;
    return z > dist->cut || (z >= dist->cut && v <= dist->cut_id) ? logit_weight(dist, z) : 0.0f; /* NaN: 0 */
}

static __device__ __forceinline__ float
dist_p(const struct row_dist *dist, float z, uint32_t v)
{
    return __fmul_rn(dist_weight(dist, z, v), dist->scale);
}

static __device__ __forceinline__ void
set_cut(struct row_dist *dist, uint64_t rank)
{
    dist->cut = key_logit(rank_key(rank));
    dist->cut_id = rank_id(rank);
}

/* Applies top-k, then top-p. `positive` tokens have a weight, `sum` in total; `sum` becomes the sum of the kept
 * weights. */
static __device__ void
cut_dist(struct row_dist *dist, const float *z, uint32_t n, const struct sampling *sampling, uint64_t best,
         uint32_t positive, struct mass *sum, struct select_scratch *s)
{
    const struct row_dist whole = *dist;
    const int scale = sum->scale;
    const float lowest = dist->max - 105 * dist->temperature; /* smaller logits have weight 0 */
    struct interval in = {rank_of(logit_key(fmaxf(lowest, -FLT_MAX)), UINT32_MAX), best, 0, positive};
    if (sampling->top_k > 0 && sampling->top_k < positive) {
        const auto one = [=](uint64_t rank) { return (uint64_t)(logit_weight(&whole, key_logit(rank_key(rank))) > 0); };
        in.members = n;
        const struct cut cut = select_cut(z, n, one, sampling->top_k, in, s);
        set_cut(dist, cut.rank);
        const struct row_dist kept = *dist;
        *sum = block_mass([=](uint32_t v) { return dist_weight(&kept, z[v], v); }, n, &s->block);
        in.low = cut.rank, in.members = sampling->top_k;
    }
    if (!(sampling->top_p < 1))
        return;
    const auto units = [=](uint64_t rank) {
        return fixed_point(logit_weight(&whole, key_logit(rank_key(rank))), scale);
    };
    const double share = ceil((double)sampling->top_p * (double)sum->units);
    const uint64_t goal = share > 1 ? (uint64_t)share : 1;
    /* All tokens below this logit together weigh less than top-p may cut off. */
    const float spare = (1 - sampling->top_p) * (float)mass_value(*sum) / (float)n,
                idle = whole.max + whole.temperature * (logf(spare) - 1);
    if (idle > key_logit(rank_key(in.low)) && idle < whole.max)
        in.low = rank_of(logit_key(idle), UINT32_MAX);
    const struct cut cut = select_cut(z, n, units, goal, in, s);
    set_cut(dist, cut.rank);
    sum->units = cut.prefix;
}

/* Computes the distribution of logits z (n), with all threads of the block; total and q_total remain 1. */
static __device__ struct row_dist
measure_dist(const float *z, uint32_t n, const struct sampling *sampling, struct select_scratch *s)
{
    float max = -INFINITY;
    uint32_t argmax = UINT32_MAX;
#pragma unroll 8
    for (uint32_t v = threadIdx.x; v < n; v += BLOCK_THREADS) {
        const float zv = z[v];
        argmax = zv > max ? v : argmax; /* never true for NaN */
        max = zv > max ? zv : max;
    }
    const uint64_t best = block_reduce(rank_of(logit_key(max), argmax), max_op(), &s->block);

    struct row_dist dist = {key_logit(rank_key(best)), 1, 1, 0, rank_id(best), 1, 1, 1};
    dist.cut = dist.max;
    if (rank_key(best) == 0)
        dist.cut_id = 0;
    if (!(sampling->temperature > 0) || rank_key(best) == 0)
        return dist; /* probability 1 at the argmax */
    dist.temperature = sampling->temperature;
    dist.inverse = fminf(1 / sampling->temperature, 3e38f);
    dist.cut = -INFINITY, dist.cut_id = UINT32_MAX;

    struct mass sum = {0, unit_scale(n)};
    uint32_t positive = 0;
#pragma unroll 8
    for (uint32_t v = threadIdx.x; v < n; v += BLOCK_THREADS) {
        const float weight = dist_weight(&dist, z[v], v);
        sum.units += fixed_point(weight, sum.scale);
        positive += weight > 0;
    }
    sum.units = block_reduce(sum.units, add_op(), &s->block);
    if ((sampling->top_k > 0 && sampling->top_k < n) || sampling->top_p < 1) {
        positive = block_reduce(positive, add_op(), &s->block);
        cut_dist(&dist, z, n, sampling, best, positive, &sum, s);
    }
    dist.scale = (float)(1 / mass_value(sum));
    return dist;
}
