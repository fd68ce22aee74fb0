/* Computes which experts a row uses, and their weights (kernels/form.h, enum routing), one row per warp. It does the
 * same as kernels/cpu/route.c, except that exponentials are added in the order of a tree. */
#pragma once

#include <math.h>

#include "kernels/cuda/device/block.cuh"
#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/device/ptx.cuh"

/* Lane e % WARP computes expert e, which is its number e / WARP and one bit in the lane's masks. */
#define MOST_GROUPS (MOST_EXPERTS / 2)

struct route_place { /* shared memory of a warp */
    float choice[MOST_EXPERTS], groups[MOST_GROUPS];
};

struct best {
    float x;
    uint32_t at; /* UINT32_MAX: none */
};

/* Returns the larger value; of equal ones it returns the first. */
static __device__ __forceinline__ struct best
better(const struct best &a, const struct best &b)
{
    const bool second = a.at == UINT32_MAX || (b.at != UINT32_MAX && (b.x > a.x || (b.x == a.x && b.at < a.at)));
    return second ? b : a;
}

/* Returns the index of the largest of n numbers that is not taken, the same in all lanes. */
static __device__ __forceinline__ uint32_t
largest(const float *x, uint32_t taken, uint32_t n, uint32_t lane)
{
    struct best best = {0, UINT32_MAX};
    for (uint32_t e = lane, j = 0; e < n; e += WARP, j++)
        if ((taken >> j & 1u) == 0)
            best = better(best, {x[e], e});
#pragma unroll
    for (int apart = WARP / 2; apart > 0; apart /= 2)
        best =
            better(best, {__shfl_xor_sync(ALL_OF_WARP, best.x, apart), __shfl_xor_sync(ALL_OF_WARP, best.at, apart)});
    return __shfl_sync(ALL_OF_WARP, best.at, 0); /* lanes may disagree on values that are not numbers */
}

static __device__ __forceinline__ uint32_t
bit_of(uint32_t e, uint32_t lane)
{
    return e % WARP == lane ? 1u << e / WARP : 0;
}

/* Returns this lane's experts of groups that are not chosen. */
static __device__ __forceinline__ uint32_t
leave_groups_out(const struct experts_form &f, struct route_place *place, uint32_t lane)
{
    const uint32_t each = f.n / f.groups;
    uint32_t chosen = 0, left_out = 0;
    for (uint32_t g = lane; g < f.groups; g += WARP)
        place->groups[g] = experts_two_best(place->choice + g * each, each);
    for (uint32_t k = 0; k < f.groups_used; k++)
        chosen |= bit_of(largest(place->groups, chosen, f.groups, lane), lane); /* each lane reads only its own */
    for (uint32_t g = lane, j = 0; g < f.groups; g += WARP, j++)
        place->groups[g] = (float)(chosen >> j & 1u);
    __syncwarp();
    for (uint32_t e = lane, j = 0; e < f.n; e += WARP, j++)
        left_out |= place->groups[e / each] > 0 ? 0 : 1u << j;
    return left_out;
}

/* Converts logits to scores, and to the values that determine the choice. */
static __device__ __forceinline__ void
score_experts(const struct experts_form &f, float *z, const float *bias, const float *correction, float *choice,
              uint32_t lane)
{
    /* otherwise by logits, which have the same order as the scores */
    const bool by_scores = correction != NULL || f.groups > 1;
    float most = -INFINITY, sum = 0;
    for (uint32_t e = lane; e < f.n; e += WARP) {
        choice[e] = z[e] += bias != NULL ? bias[e] : 0;
        most = z[e] > most ? z[e] : most;
    }
    most = warp_reduce(most, max_op());
    for (uint32_t e = lane; e < f.n; e += WARP) {
        z[e] = f.routing == ROUTE_SOFTMAX ? expf(z[e] - most) : 1 / (1 + expf(-z[e]));
        sum += z[e];
    }
    sum = warp_sum(sum);
    for (uint32_t e = lane; e < f.n; e += WARP) {
        z[e] /= f.routing == ROUTE_SOFTMAX ? sum : 1;
        if (by_scores)
            choice[e] = z[e] + (correction != NULL ? correction[e] : 0);
    }
    __syncwarp();
}

/* Returns those of the lane's experts that are chosen by scores; z becomes weights. */
static __device__ __forceinline__ uint32_t
choose_by_scores(const struct experts_form &f, float *z, const float *bias, const float *correction,
                 struct route_place *place, uint32_t lane)
{
    uint32_t chosen = 0;
    float sum = 0;
    score_experts(f, z, bias, correction, place->choice, lane);
    uint32_t taken = f.groups > 1 ? leave_groups_out(f, place, lane) : 0;
    for (uint32_t k = 0; k < f.used; k++) {
        const uint32_t bit = bit_of(largest(place->choice, taken, f.n, lane), lane);
        taken |= bit;
        chosen |= bit;
    }
    for (uint32_t e = lane, j = 0; e < f.n; e += WARP, j++)
        sum += (chosen >> j & 1u) != 0 ? z[e] : 0;
    sum = warp_sum(sum);
    const float scale = f.scale / (f.renormalised && sum > 0 ? sum : 1);
    for (uint32_t e = lane; e < f.n; e += WARP)
        z[e] *= scale;
    return chosen;
}

/* Does the same for SparseMixer: chooses one expert after the other, each weighted among the logits close to it. A lane
 * reads only its own logits. */
static __device__ __forceinline__ uint32_t
mix_sparsely(const struct experts_form &f, float *z, const float *bias, uint32_t lane)
{
    uint32_t chosen = 0;
    for (uint32_t e = lane; e < f.n; e += WARP)
        z[e] += bias != NULL ? bias[e] : 0;
    for (uint32_t k = 0; k < f.used; k++) {
        const uint32_t best = largest(z, chosen, f.n, lane), own = bit_of(best, lane);
        const float m = __shfl_sync(ALL_OF_WARP, own != 0 ? z[best] : 0, (int)(best % WARP));
        float sum = 0;
        for (uint32_t e = lane, j = 0; e < f.n; e += WARP, j++) {
            const float size = fabsf(z[e]) > m ? fabsf(z[e]) : m;
            if ((chosen >> j & 1u) == 0 && !((m - z[e]) / size > 2 * f.jitter))
                sum += expf(z[e] - m);
        }
        sum = warp_sum(sum);
        if (own != 0)
            z[best] = 1 / sum;
        chosen |= own;
    }
    return chosen;
}

/* Computes the form's `used` routes of a row, in order of expert, by a warp. z (n): the router's outputs, which are
 * overwritten. The place may be used again at once, because other lanes' results are read before the next barrier. */
static __device__ __forceinline__ void
choose_experts(const struct experts_form &f, float *z, const float *bias, const float *correction,
               struct route_place *place, struct route *out)
{
    const uint32_t lane = thread_here() % WARP;
    const uint32_t chosen = f.routing == ROUTE_SPARSEMIXER ? mix_sparsely(f, z, bias, lane)
                                                           : choose_by_scores(f, z, bias, correction, place, lane);
    uint32_t before = 0;
    for (uint32_t j = 0; j * WARP < f.n; j++) {
        const bool mine = (chosen >> j & 1u) != 0;
        const uint32_t all = __ballot_sync(ALL_OF_WARP, mine), e = j * WARP + lane;
        if (mine)
            out[before + (uint32_t)__popc(all & ((1u << lane) - 1))] = {e, z[e]};
        before += (uint32_t)__popc(all);
    }
}
