/* Scores, weights and sums of a job's pairs over blocks of positions (attention.cuh says in which order). */
#ifndef KERNELS_CUDA_ATTENTION_SUMS_CUH
#define KERNELS_CUDA_ATTENTION_SUMS_CUH

#include <math.h>

#include "kernels/cuda/attention_job.cuh"
#include "kernels/cuda/kv.cuh"

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
        const float most =
            fmaxf(warp_reduce(seen ? z[i] : -INFINITY, [](float x, float y) { return fmaxf(x, y); }), a.max[i]);
        const float p = seen ? expf(z[i] - most) : 0, keep = a.max[i] == most ? 1 : expf(a.max[i] - most);
        a.max[i] = most;
        a.sum[i] = __fmaf_rn(a.sum[i], keep, warp_sum(p));
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

#endif
