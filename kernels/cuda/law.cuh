/* A row of logits and the user's sampling settings make a law (struct row_law): the distribution over the next token
 * without the array. It is found by passes over the row; p(v) is then computed where it is asked for.
 * The semantics are kernels/cpu/sampling.h's: temperature, then top-k, then top-p on what top-k left; ties by lower id;
 * NaN counts as -infinity, and where nothing finite is left token 0 has it all. */
#ifndef KERNELS_CUDA_LAW_CUH
#define KERNELS_CUDA_LAW_CUH

#include "kernels/cuda/select.cuh"

/* exp((z - max)/T): what a logit weighs before anything is cut off. 1 where it is the max, also an infinite one. */
static __device__ __forceinline__ float
logit_weight(float z, float max, float temperature)
{
    const float below = z - max;
    return below < 0 ? expf(below / temperature) : 1.0f;
}

/* The unnormalised probability of token v with logit z. */
static __device__ __forceinline__ float
law_weight(const struct row_law *law, float z, uint32_t v)
{
    const uint32_t key = logit_key(z);
    return key < law->cut_key || (key == law->cut_key && v > law->cut_id) ? 0.0f
                                                                          : logit_weight(z, law->max, law->temperature);
}

static __device__ __forceinline__ float
law_p(const struct row_law *law, float z, uint32_t v)
{
    return __fmul_rn(law_weight(law, z, v), law->scale);
}

/* The rank of token i in the row where it is still there, 0 where not. */
struct row_member {
    const float *z;
    const struct row_law *law;
    __device__ __forceinline__ uint64_t
    operator()(uint32_t i) const
    {
        const float zi = z[i];
        const uint32_t key = logit_key(zi);
        return key < law->cut_key || (key == law->cut_key && i > law->cut_id) ? 0 : rank_of(key, i);
    }
};

/* The first `k` tokens of `positive`; then the least number whose share is at least top_p. */
static __device__ void
cut_law(struct row_law *law, const float *z, uint32_t n, const struct sampling *sampling, uint64_t lowest,
        uint64_t best, uint32_t positive, struct mass *sum, struct select_scratch *s)
{
    const float max = law->max, temperature = law->temperature;
    const int scale = sum->scale;
    struct interval in = {lowest, best, 0, positive};
    if (sampling->top_k > 0 && sampling->top_k < positive) {
        const auto one = [](uint64_t) { return (uint64_t)1; };
        const struct row_member member = {z, law};
        const struct cut cut = select_cut(member, n, one, sampling->top_k, in, s);
        law->cut_key = rank_key(cut.rank), law->cut_id = rank_id(cut.rank);
        const struct row_law *const kept = law;
        *sum = block_mass([=](uint32_t v) { return law_weight(kept, z[v], v); }, n, &s->block);
        in.low = cut.rank, in.members = sampling->top_k;
    }
    if (!(sampling->top_p < 1))
        return;
    const auto units = [=](uint64_t rank) {
        return fixed_point(logit_weight(key_logit(rank_key(rank)), max, temperature), scale);
    };
    const double share = ceil((double)sampling->top_p * (double)sum->units);
    const uint64_t goal = share > 1 ? (uint64_t)share : 1;
    /* All tokens below this logit weigh less than what top-p may leave, even together. */
    const float idle = max + temperature * (logf((1 - sampling->top_p) * (float)mass_value(*sum) / (float)n) - 1);
    if (idle > key_logit(rank_key(in.low)) && idle < max)
        in.low = rank_of(logit_key(idle), UINT32_MAX);
    const struct row_member member = {z, law};
    const struct cut cut = select_cut(member, n, units, goal, in, s);
    law->cut_key = rank_key(cut.rank), law->cut_id = rank_id(cut.rank);
    sum->units = cut.prefix;
}

/* The law of logits z (n). All threads of the block get it; total and q_total are left at 1. */
static __device__ struct row_law
measure_law(const float *z, uint32_t n, const struct sampling *sampling, struct select_scratch *s)
{
    uint64_t best = 0;
#pragma unroll 8
    for (uint32_t v = threadIdx.x; v < n; v += ROW_THREADS)
        best = max_op()(best, rank_of(logit_key(z[v]), v));
    best = block_reduce(best, max_op(), &s->block);

    struct row_law law = {key_logit(rank_key(best)), 1, rank_key(best), rank_id(best), 1, 1, 1};
    if (!(sampling->temperature > 0) || rank_key(best) == 0)
        return law; /* all of it at the argmax */
    law.temperature = sampling->temperature;
    law.cut_key = 1, law.cut_id = UINT32_MAX;

    struct mass sum = {0, unit_scale(n)};
    uint64_t lowest = best;
    uint32_t positive = 0;
#pragma unroll 8
    for (uint32_t v = threadIdx.x; v < n; v += ROW_THREADS) {
        const float zv = z[v], weight = law_weight(&law, zv, v);
        sum.units += fixed_point(weight, sum.scale);
        if (weight > 0) {
            positive++;
            lowest = min_op()(lowest, rank_of(logit_key(zv), v));
        }
    }
    sum.units = block_reduce(sum.units, add_op(), &s->block);
    if ((sampling->top_k > 0 && sampling->top_k < n) || sampling->top_p < 1) {
        positive = block_reduce(positive, add_op(), &s->block);
        lowest = block_reduce(lowest, min_op(), &s->block);
        cut_law(&law, z, n, sampling, lowest, best, positive, &sum, s);
    }
    law.scale = (float)(1 / mass_value(sum));
    return law;
}

#endif
