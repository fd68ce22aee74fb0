/* A row of logits and the user's sampling settings make a law (struct row_law): the distribution over the next token
 * without the array. It is found by passes over the row; p(v) is then computed where it is asked for.
 * The semantics are kernels/cpu/sampling.h's: temperature, then top-k, then top-p on what top-k left; ties by lower id;
 * NaN counts as -infinity, and where nothing finite is left token 0 has it all. */
#ifndef KERNELS_CUDA_DEVICE_LAW_CUH
#define KERNELS_CUDA_DEVICE_LAW_CUH

#include <float.h>

#include "kernels/cuda/device/select.cuh"

/* exp((z - max)/T): what a logit weighs before anything is cut off. 1 where it is the max, also an infinite one. The
 * quotient is divided out to the last bit, from an inverse that is worked out once. */
static __device__ __forceinline__ float
logit_weight(const struct row_law *law, float z)
{
    const float below = z - law->max, near = below * law->inverse;
    const float quotient = fmaf(fmaf(-near, law->temperature, below), law->inverse, near);
    return !(below < 0) ? 1.0f : near > -104 ? expf(quotient) : 0.0f;
}

/* The unnormalised probability of token v with logit z. */
static __device__ __forceinline__ float
law_weight(const struct row_law *law, float z, uint32_t v)
{
    if (!(law->max > -INFINITY))
        return v == law->cut_id ? 1.0f : 0.0f;
    return z > law->cut || (z >= law->cut && v <= law->cut_id) ? logit_weight(law, z) : 0.0f; /* NaN: 0 */
}

static __device__ __forceinline__ float
law_p(const struct row_law *law, float z, uint32_t v)
{
    return __fmul_rn(law_weight(law, z, v), law->scale);
}

static __device__ __forceinline__ void
set_cut(struct row_law *law, uint64_t rank)
{
    law->cut = key_logit(rank_key(rank));
    law->cut_id = rank_id(rank);
}

/* Top-k, then top-p. `positive` tokens have a weight, `sum` in all; `sum` becomes that of those that stay. */
static __device__ void
cut_law(struct row_law *law, const float *z, uint32_t n, const struct sampling *sampling, uint64_t best,
        uint32_t positive, struct mass *sum, struct select_scratch *s)
{
    const struct row_law whole = *law;
    const int scale = sum->scale;
    const float lowest = law->max - 105 * law->temperature; /* nothing below weighs anything */
    struct interval in = {rank_of(logit_key(fmaxf(lowest, -FLT_MAX)), UINT32_MAX), best, 0, positive};
    if (sampling->top_k > 0 && sampling->top_k < positive) {
        const auto one = [=](uint64_t rank) { return (uint64_t)(logit_weight(&whole, key_logit(rank_key(rank))) > 0); };
        in.members = n;
        const struct cut cut = select_cut(z, n, one, sampling->top_k, in, s);
        set_cut(law, cut.rank);
        const struct row_law kept = *law;
        *sum = block_mass([=](uint32_t v) { return law_weight(&kept, z[v], v); }, n, &s->block);
        in.low = cut.rank, in.members = sampling->top_k;
    }
    if (!(sampling->top_p < 1))
        return;
    const auto units = [=](uint64_t rank) {
        return fixed_point(logit_weight(&whole, key_logit(rank_key(rank))), scale);
    };
    const double share = ceil((double)sampling->top_p * (double)sum->units);
    const uint64_t goal = share > 1 ? (uint64_t)share : 1;
    /* All tokens below this logit weigh less than what top-p may leave, even together. */
    const float spare = (1 - sampling->top_p) * (float)mass_value(*sum) / (float)n,
                idle = whole.max + whole.temperature * (logf(spare) - 1);
    if (idle > key_logit(rank_key(in.low)) && idle < whole.max)
        in.low = rank_of(logit_key(idle), UINT32_MAX);
    const struct cut cut = select_cut(z, n, units, goal, in, s);
    set_cut(law, cut.rank);
    sum->units = cut.prefix;
}

/* The law of logits z (n). All threads of the block get it; total and q_total are left at 1. */
static __device__ struct row_law
measure_law(const float *z, uint32_t n, const struct sampling *sampling, struct select_scratch *s)
{
    float max = -INFINITY;
    uint32_t argmax = UINT32_MAX;
#pragma unroll 8
    for (uint32_t v = threadIdx.x; v < n; v += ROW_THREADS) {
        const float zv = z[v];
        argmax = zv > max ? v : argmax; /* never true for NaN */
        max = zv > max ? zv : max;
    }
    const uint64_t best = block_reduce(rank_of(logit_key(max), argmax), max_op(), &s->block);

    struct row_law law = {key_logit(rank_key(best)), 1, 1, 0, rank_id(best), 1, 1, 1};
    law.cut = law.max;
    if (rank_key(best) == 0)
        law.cut_id = 0;
    if (!(sampling->temperature > 0) || rank_key(best) == 0)
        return law; /* all of it at the argmax */
    law.temperature = sampling->temperature;
    law.inverse = fminf(1 / sampling->temperature, 3e38f);
    law.cut = -INFINITY, law.cut_id = UINT32_MAX;

    struct mass sum = {0, unit_scale(n)};
    uint32_t positive = 0;
#pragma unroll 8
    for (uint32_t v = threadIdx.x; v < n; v += ROW_THREADS) {
        const float weight = law_weight(&law, z[v], v);
        sum.units += fixed_point(weight, sum.scale);
        positive += weight > 0;
    }
    sum.units = block_reduce(sum.units, add_op(), &s->block);
    if ((sampling->top_k > 0 && sampling->top_k < n) || sampling->top_p < 1) {
        positive = block_reduce(positive, add_op(), &s->block);
        cut_law(&law, z, n, sampling, best, positive, &sum, s);
    }
    law.scale = (float)(1 / mass_value(sum));
    return law;
}

#endif
