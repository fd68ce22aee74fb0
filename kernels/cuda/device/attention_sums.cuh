/* Scores, weights and sums of a job's pairs over a block of positions, by one warp (attention.cuh says in which order).
 *
 * A lane's loads go out many at once, with nothing between them that asks for which pair or where a head ends; then all of
 * them are used. A ring, where each place is filled again as soon as it is used, would be one load at a time: its loads
 * are told apart by what the machine code waits for, and the compiler has them all wait for the newest. */
#ifndef KERNELS_CUDA_DEVICE_ATTENTION_SUMS_CUH
#define KERNELS_CUDA_DEVICE_ATTENTION_SUMS_CUH

#include <math.h>

#include "kernels/cuda/device/attention_job.cuh"
#include "kernels/cuda/device/kv.cuh"

#define KEYS_AHEAD   8   /* loads of 16 bytes a lane */
#define VALUES_AHEAD 128 /* bytes a lane: 16 positions of 4 halves */

/* PER elements of a key times the same of the queries q, for each pair; in order. */
template <class KV, int PAIRS>
static __device__ __forceinline__ void
add_scores(const uint4 &words, const float *q, uint32_t room, uint32_t pairs, float (&z)[PAIRS])
{
    const int per = 16 / sizeof(KV);
    float k[per];
    numbers_of(words, KV(), k);
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        if ((uint32_t)i >= pairs)
            break;
#pragma unroll
        for (int d = 0; d < per; d += 4) {
            const float4 y = *(const float4 *)(q + i * room + d);
            z[i] = fmaf(k[d + 3], y.w, fmaf(k[d + 2], y.z, fmaf(k[d + 1], y.y, fmaf(k[d], y.x, z[i]))));
        }
    }
}

/* Scores of the lane's position, whose key is at `key`. */
template <class KV, int PAIRS>
static __device__ __forceinline__ void
score(const KV *key, const float *q, uint32_t room, uint32_t pairs, float (&z)[PAIRS])
{
    const uint32_t per = 16 / sizeof(KV), loads = room / per;
    for (uint32_t done = 0; done < loads; done += KEYS_AHEAD) {
        uint4 words[KEYS_AHEAD];
#pragma unroll
        for (uint32_t i = 0; i < KEYS_AHEAD; i++)
            load_state(&words[i], key + (done + i < loads ? done + i : 0) * per);
#pragma unroll
        for (uint32_t i = 0; i < KEYS_AHEAD; i++) {
            if (done + i >= loads)
                break;
            add_scores<KV, PAIRS>(words[i], q + (done + i) * per, room, pairs, z);
        }
    }
}

/* Scores grow with positions; of pairs that do not see this one they may become anything. */
template <int PAIRS>
static __device__ __forceinline__ void
lean(const struct alibi &form, const struct attend_job &job, uint32_t position, float (&z)[PAIRS])
{
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        if ((uint32_t)i >= job.n)
            break;
        const float slope = __shfl_sync(ALL_OF_WARP, job.slope, i);
        z[i] += form_leaning(&form, slope, __shfl_sync(ALL_OF_WARP, job.seen.y, i), position);
    }
}

/* Scores become weights exp(z - max), (ATTEND_BLOCK, PAIRS); maxima and sums of the weights go to `heads`. */
template <int PAIRS>
static __device__ __forceinline__ void
weigh(const struct attend_job &job, uint32_t position, const float (&z)[PAIRS], float *weights, float2 *heads)
{
    float p[PAIRS] = {};
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        if ((uint32_t)i >= job.n)
            break;
        const uint32_t begin = __shfl_sync(ALL_OF_WARP, job.seen.x, i), end = __shfl_sync(ALL_OF_WARP, job.seen.y, i);
        const bool seen = position >= begin && position <= end;
        const float most = warp_reduce(seen ? z[i] : -INFINITY, [](float x, float y) { return fmaxf(x, y); });
        p[i] = seen ? expf(z[i] - most) : 0;
        const float sum = warp_sum(p[i]);
        if (job.lane == 0)
            heads[i] = make_float2(most, sum);
    }
#pragma unroll
    for (int i = 0; i < PAIRS; i += 4)
        *(float4 *)(weights + job.lane * PAIRS + i) = make_float4(p[i], p[i + 1], p[i + 2], p[i + 3]);
}

/* Adds a position's value times the weights that the pairs give it. A pair that does not see the position has weight 0: it is skipped,
 * because the value may be infinite, and 0 times infinity is not a number. */
template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
add_value(const lane_values<KV, DIMS> &value, const float *weights, uint32_t pairs, float (&out)[PAIRS][DIMS])
{
    float v[DIMS], p[PAIRS];
    value.numbers(v);
#pragma unroll
    for (int i = 0; i < PAIRS; i += 4) {
        const float4 four = *(const float4 *)(weights + i);
        p[i] = four.x, p[i + 1] = four.y, p[i + 2] = four.z, p[i + 3] = four.w;
    }
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        if ((uint32_t)i >= pairs)
            break;
#pragma unroll
        for (int d = 0; d < DIMS; d++)
            out[i][d] = p[i] != 0 ? fmaf(p[i], v[d], out[i][d]) : out[i][d];
    }
}

/* How a lane finds its dimensions of the values of a block's positions [begin, end). */
template <class KV> struct values_place {
    const KV *base; /* at slot 0 */
    size_t stride;  /* of a slot */
    slot_t slot;    /* of position number `lane` */
    uint32_t begin, end;
};

/* AHEAD of them from `from` on, on their way; behind the end the last one again. */
template <int AHEAD, class KV, int DIMS>
static __device__ __forceinline__ void
load_values(const struct values_place<KV> &at, uint32_t from, lane_values<KV, DIMS> (&values)[AHEAD])
{
#pragma unroll
    for (uint32_t i = 0; i < AHEAD; i++) {
        const slot_t slot = __shfl_sync(ALL_OF_WARP, at.slot, (int)min(from + i, at.end - 1));
        values[i].load(at.base + slot * at.stride);
    }
}

/* Positions [first, first + ATTEND_BLOCK), of which some are seen: the warp's maxima, sums and outputs, from nothing. */
template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
absorb_block(const struct attend_scene &c, const struct attend_job &job, uint32_t first, const float *q, float2 *heads,
             float *own)
{
    const uint32_t lane = job.lane, room = head_room(c.m->head_dim);
    const uint32_t position = first + lane, there = position < job.last ? position : job.last;
    const size_t stride = (size_t)c.m->kv_heads * room;
    const slot_t slot = there < job.n_trunk ? job.trunk[there] : job.tail[there - job.n_trunk];
    const int ahead = VALUES_AHEAD / (DIMS * sizeof(KV));
    const uint32_t own_dims = lane * DIMS < room ? lane * DIMS : 0; /* of lanes behind the head's end: nobody's */
    const struct values_place<KV> at = {
        (const KV *)c.sweep->store.values + job.base + own_dims, stride, slot,
            job.first > first ? job.first - first : 0,
            job.last - first < ATTEND_BLOCK ? job.last - first + 1 : ATTEND_BLOCK
    };
    float z[PAIRS] = {}, out[PAIRS][DIMS] = {};
    lane_values<KV, DIMS> values[ATTEND_BLOCK / ahead][ahead]; /* one of them alive at a time */
    score<KV, PAIRS>((const KV *)c.sweep->store.keys + job.base + slot * stride, q, room, job.n, z);
    load_values<ahead>(at, at.begin, values[0]); /* under way while weights are computed */
    if (c.m->form.attention_cap > 0)
#pragma unroll
        for (int i = 0; i < PAIRS; i++)
            z[i] = capped(c.m->form.attention_cap, z[i]);
    if (c.slopes != NULL)
        lean<PAIRS>(c.m->form.alibi, job, position, z);
    weigh<PAIRS>(job, position, z, own, heads);
    __syncwarp();
#pragma unroll
    for (int b = 0; b < ATTEND_BLOCK / ahead; b++) {
        const uint32_t from = at.begin + b * ahead;
        if (from >= at.end)
            break;
        if (b > 0)
            load_values<ahead>(at, from, values[b]);
#pragma unroll
        for (uint32_t i = 0; i < ahead; i++) {
            if (from + i >= at.end)
                break;
            add_value<KV, PAIRS, DIMS>(values[b][i], own + (from + i) * PAIRS, job.n, out);
        }
    }
    __syncwarp(); /* the weights have been read */
#pragma unroll
    for (int i = 0; i < PAIRS; i++)
#pragma unroll
        for (int d = 0; d < DIMS; d += 4)
            *(float4 *)(own + (i * WARP + lane) * DIMS + d) =
                make_float4(out[i][d], out[i][d + 1], out[i][d + 2], out[i][d + 3]);
}

#endif
