/* Attention of rows to their paths, by blocks.
 *
 * A row's path is cut into splits of ATTEND_SPLIT positions, these into quarters and these into blocks of ATTEND_BLOCK, at
 * fixed positions, a block for each warp. A lane scores one position; then a lane sums DIMS dimensions of the values. The
 * warps' partials (maximum, sum, unnormalised output) are merged in ascending order to that of the quarter, the quarters'
 * to that of the split, and those of the splits in ascending order again. A part is what one thread block computes at
 * a time: a split, or a quarter where there are few splits. Parts of few rows are different blocks' work, and the
 * block that finishes last merges them; otherwise one block walks them all. All do the same arithmetic in the same order
 * (flash-decoding: Dao, Haziza, Massa, Sizov 2023).
 *
 * What shares a load of keys and values: up to PAIRS (row, head) pairs of a group of rows with one trunk, heads of one
 * key-value head. In blocks that reach behind the trunk, each run of pairs with one tail is computed by another warp. A
 * position that a pair does not see is skipped in its sums; blocks and quarters of which it sees nothing are not merged. */
#ifndef KERNELS_CUDA_DEVICE_ATTENTION_CUH
#define KERNELS_CUDA_DEVICE_ATTENTION_CUH

#include <math.h>

#include "kernels/cuda/device/block.cuh"
#include "kernels/cuda/device/forms.cuh"
#include "kernels/cuda/device/kv.cuh"
#include "kernels/cuda/device/norm.cuh"
#include "kernels/cuda/device/ptx.cuh"

/* Parameters of a block's attention, for (row, head) pairs that share keys and values; their queries are in shared
 * memory. */

struct attend_scene {
    const struct forward_args *forward;
    const struct dev_model *m;
    uint32_t layer;             /* layer of the rows that take part: those with from < layer */
    uint32_t part, parts;       /* positions in a part; parts of the longest path in the forward pass */
    uint32_t window;            /* the layer's; 0: none */
    bool apart;                 /* parts are computed by different blocks */
    const float *sinks = NULL;  /* (heads) logits of a virtual position with value zero; NULL: none */
    const float *slopes = NULL; /* (heads) slopes of form.alibi; NULL: none */
};

/* ---- shared memory ---- */

/* Pairs times dimensions whose sums a block keeps: two per thread. */
#define ATTEND_SUMS (2 * BLOCK_THREADS)

/* Queries (PAIRS, head_room); for each block of positions and pair maximum and sum, and the unnormalised outputs (PAIRS,
 * dimensions); the weights that a warp is summing with, (ATTEND_BLOCK, PAIRS). */
struct attend_place {
    float q[ATTEND_SUMS];
    float2 heads[BLOCK_WARPS][ATTEND_PAIRS];
    float out[BLOCK_WARPS][ATTEND_SUMS];
    float weights[BLOCK_WARPS][ATTEND_BLOCK * ATTEND_PAIRS];
};
#define ATTEND_SHARED sizeof(struct attend_place)

/* ---- a job ---- */

/* Several pairs of a group of rows on one key-value head. Lane i of every warp is responsible for pair i. */
struct attend_job {
    uint32_t lane;
    uint32_t n;               /* pairs */
    uint32_t row, head;       /* this lane's pair, if it has one */
    float slope;              /* of its head */
    uint2 seen;               /* first and last position visible to the pair; none: {1, 0} */
    uint32_t first, last;     /* range visible to any pair */
    uint32_t tail, run, runs; /* the pair's tail, the number of its run of pairs with one tail, and of runs */
    uint32_t counter;         /* index of this job in arrivals */
    const slot_t *trunk;      /* position p is trunk[p], or tails[tail + p - n_trunk] */
    uint32_t n_trunk;
    size_t base; /* offset of the layer's keys and values of this head at slot 0, in elements */
};

/* Pairs [from, from + n) of a job, which have the same slots at the positions of a block; none: n is 0. */
struct attend_run {
    uint32_t from, n;
    uint32_t first, last; /* range visible to any of them */
    uint32_t tail;
};

/* Returns run number r of the block that begins at position `begin`. */
static __device__ __forceinline__ struct attend_run
run_of(const struct attend_job &job, uint32_t r, uint32_t begin)
{
    const bool own = job.lane < job.n && (begin + ATTEND_BLOCK <= job.n_trunk ? r == 0 : job.run == r);
    const bool sees = own && job.seen.x <= job.seen.y;
    const uint32_t pairs = __ballot_sync(ALL_OF_WARP, own);
    struct attend_run run;
    run.from = pairs != 0 ? (uint32_t)__ffs((int)pairs) - 1 : 0;
    run.n = (uint32_t)__popc(pairs);
    run.first = __reduce_min_sync(ALL_OF_WARP, sees ? job.seen.x : UINT32_MAX);
    run.last = __reduce_max_sync(ALL_OF_WARP, sees ? job.seen.y : 0);
    run.tail = __shfl_sync(ALL_OF_WARP, job.tail, (int)run.from);
    return run;
}

/* Finds pairs [piece * PAIRS, …) of a group. Returns false if none of them takes part. */
template <int PAIRS>
static __device__ __forceinline__ bool
find_job(const struct attend_scene &c, const struct row_group &group, uint32_t piece, uint32_t kv_head,
         struct attend_job *job)
{
    const uint32_t share = c.m->heads / c.m->kv_heads, lane = job->lane, pair = piece * PAIRS + lane;
    const uint32_t pairs = group.n * share, begin = piece * PAIRS;
    if (begin >= pairs)
        return false;
    const struct row *rows = c.forward->rows;
    job->n = pairs - begin < PAIRS ? pairs - begin : PAIRS;
    job->row = group.first + pair / share;
    job->head = kv_head * share + pair % share;
    job->slope = c.slopes != NULL ? c.slopes[job->head] : 0;
    job->seen = make_uint2(1, 0);
    job->tail = lane < job->n ? rows[job->row].tail : 0;
    if (lane < job->n && rows[job->row].from < c.layer) {
        const uint32_t last = rows[job->row].n_trunk + rows[job->row].n_tail - 1, window = c.window;
        job->seen = make_uint2(window > 0 && last >= window ? last + 1 - window : 0, last);
    }
    const uint32_t before = __shfl_up_sync(ALL_OF_WARP, job->tail, 1);
    const uint32_t turns = __ballot_sync(ALL_OF_WARP, lane > 0 && lane < job->n && job->tail != before);
    job->run = (uint32_t)__popc(turns & ((2u << lane) - 1));
    job->runs = (uint32_t)__popc(turns) + 1;
    const bool takes_part = job->seen.x <= job->seen.y;
    job->first = __reduce_min_sync(ALL_OF_WARP, takes_part ? job->seen.x : UINT32_MAX);
    job->last = __reduce_max_sync(ALL_OF_WARP, takes_part ? job->seen.y : 0);
    if (job->first == UINT32_MAX)
        return false;
    job->counter = (group.first + begin / share) * c.m->heads + kv_head * share + begin % share;
    const struct row &row = rows[group.first];
    job->trunk = c.forward->kv_cache.trunk + (size_t)row.seq * c.forward->kv_cache.trunk_room;
    job->n_trunk = row.n_trunk;
    job->base =
        ((size_t)(c.layer - 1) * c.forward->kv_cache.slots * c.m->kv_heads + kv_head) * head_room(c.m->head_dim);
    return true;
}

/* Copies the queries of a job's pairs to shared memory, with all threads. The queries of the previous job must have
 * been read. */
static __device__ __forceinline__ void
put_queries(const struct attend_scene &c, const struct attend_job &job, struct attend_place *place)
{
    const uint32_t dim = c.m->head_dim, room = head_room(dim), warp = thread_here() / WARP;
    for (uint32_t i = 0; i < job.n; i++) {
        const uint32_t row = __shfl_sync(ALL_OF_WARP, job.row, (int)i),
                       head = __shfl_sync(ALL_OF_WARP, job.head, (int)i);
        const float *from = c.forward->kv_cache.q + ((size_t)row * c.m->heads + head) * dim;
        const float grown = growth_at(c.m->form, __shfl_sync(ALL_OF_WARP, job.seen.y, (int)i));
        for (uint32_t d = (warp + BLOCK_WARPS - i) % BLOCK_WARPS * WARP + job.lane; d < room; d += BLOCK_THREADS)
            place->q[i * room + d] = d < dim ? from[d] * grown : 0;
    }
}

/* Scores, weights and sums of a job's pairs over a block of positions, by one warp (in the order above).
 *
 * A lane's loads go out many at once, with nothing between them that asks for which pair or where a head ends; then all of
 * them are used. A ring, where each place is filled again as soon as it is used, would be one load at a time: its loads
 * are told apart by what the machine code waits for, and the compiler has them all wait for the newest. */

#define KEYS_AHEAD   8   /* loads of 16 bytes per lane */
#define VALUES_AHEAD 128 /* bytes per lane: 16 positions of 4 halves */

/* Multiplies PER elements of a key with the same elements of the queries q, for each pair, in order. */
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

/* Computes the scores of the lane's position, whose key is at `key`. */
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

/* Adds ALiBi's biases to scores. Scores of positions that a pair does not see are undefined. */
template <int PAIRS>
static __device__ __forceinline__ void
add_alibi(const struct alibi &form, const struct attend_job &job, const struct attend_run &run, uint32_t position,
          float (&z)[PAIRS])
{
#pragma unroll
    for (uint32_t i = 0; i < PAIRS; i++) {
        if (i >= run.n)
            break;
        const float slope = __shfl_sync(ALL_OF_WARP, job.slope, (int)(run.from + i));
        z[i] += form_leaning(&form, slope, __shfl_sync(ALL_OF_WARP, job.seen.y, (int)(run.from + i)), position);
    }
}

/* Converts scores to weights exp(z - max), (ATTEND_BLOCK, PAIRS); writes maxima and sums of the weights to `heads`. */
template <int PAIRS>
static __device__ __forceinline__ void
softmax_block(const struct attend_job &job, const struct attend_run &run, uint32_t position, const float (&z)[PAIRS],
              float *weights, float2 *heads)
{
    float p[PAIRS] = {};
#pragma unroll
    for (uint32_t i = 0; i < PAIRS; i++) {
        if (i >= run.n)
            break;
        const int pair = (int)(run.from + i);
        const uint32_t begin = __shfl_sync(ALL_OF_WARP, job.seen.x, pair),
                       end = __shfl_sync(ALL_OF_WARP, job.seen.y, pair);
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

/* Adds a position's value times the pairs' weights. A pair that does not see the position has weight 0 and is skipped,
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

/* The address of a lane's dimensions of the values at positions [begin, end) of a block. */
template <class KV> struct values_place {
    const KV *base; /* at slot 0 */
    size_t stride;  /* of a slot */
    slot_t slot;    /* slot of position number `lane` */
    uint32_t begin, end;
};

/* Loads AHEAD values from `from` on, asynchronously; after the end the last one is repeated. */
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

/* Computes positions [first, first + ATTEND_BLOCK) for a run of pairs, of which some are visible: their maxima, sums and
 * outputs. q, heads and own are the run's. */
template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
attend_block(const struct attend_scene &c, const struct attend_job &job, const struct attend_run &run, uint32_t first,
             const float *q, float *weights, float2 *heads, float *own)
{
    const uint32_t lane = job.lane, room = head_room(c.m->head_dim);
    const uint32_t position = first + lane, there = position < run.last ? position : run.last;
    const size_t stride = (size_t)c.m->kv_heads * room;
    const slot_t slot = there < job.n_trunk ? job.trunk[there] : c.forward->tails[run.tail + (there - job.n_trunk)];
    const int ahead = VALUES_AHEAD / (DIMS * sizeof(KV));
    const uint32_t own_dims = lane * DIMS < room ? lane * DIMS : 0; /* unused in lanes after the head's end */
    const struct values_place<KV> at = {
        (const KV *)c.forward->kv_cache.values + job.base + own_dims, stride, slot,
            run.first > first ? run.first - first : 0,
            run.last - first < ATTEND_BLOCK ? run.last - first + 1 : ATTEND_BLOCK
    };
    float z[PAIRS] = {}, out[PAIRS][DIMS] = {};
    lane_values<KV, DIMS> values[ATTEND_BLOCK / ahead][ahead]; /* only one of them is in use at a time */
    score<KV, PAIRS>((const KV *)c.forward->kv_cache.keys + job.base + slot * stride, q, room, run.n, z);
    load_values<ahead>(at, at.begin, values[0]); /* loads while weights are computed */
    if (c.m->form.attention_cap > 0)
#pragma unroll
        for (int i = 0; i < PAIRS; i++)
            z[i] = capped(c.m->form.attention_cap, z[i]);
    if (c.slopes != NULL)
        add_alibi<PAIRS>(c.m->form.alibi, job, run, position, z);
    softmax_block<PAIRS>(job, run, position, z, weights, heads);
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
            add_value<KV, PAIRS, DIMS>(values[b][i], weights + (from + i) * PAIRS, run.n, out);
        }
    }
    __syncwarp(); /* the weights have been read, before those of the warp's next run */
#pragma unroll
    for (uint32_t i = 0; i < PAIRS; i++) {
        if (i >= run.n)
            break;
#pragma unroll
        for (int d = 0; d < DIMS; d += 4)
            *(float4 *)(own + (i * WARP + lane) * DIMS + d) =
                make_float4(out[i][d], out[i][d + 1], out[i][d + 2], out[i][d + 3]);
    }
}

#define MERGE_AHEAD 8 /* partials that are loaded at once */

/* ---- a thread's share of merging: two dimensions of a pair ---- */

struct merged {
    float max, sum;
    float2 out;
};

struct merge_place {
    uint32_t pair, d; /* d: first dimension; if it is at least head_dim, or the pair is absent, there is nothing to */
                      /* do */
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

/* Merges a partial with the previous ones (online softmax: Milakov and Gimelshein 2018). */
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

/* Merges the blocks' partials of a part that begins at this position: to quarters, and these. */
static __device__ __forceinline__ struct merged
merge_blocks(const struct attend_place *place, const struct merge_place &at, uint32_t begin, uint32_t part,
             uint32_t thread)
{
    struct merged all = {-INFINITY, 0, {0, 0}};
    for (uint32_t q = 0; q < part; q += ATTEND_QUARTER) {
        const uint32_t from = begin + q, end = from + ATTEND_QUARTER - 1;
        struct merged a = {-INFINITY, 0, {0, 0}};
        if (!at.any || at.seen.x > end || at.seen.y < from)
            continue;
        const uint32_t first = at.seen.x > from ? (at.seen.x - begin) / ATTEND_BLOCK : q / ATTEND_BLOCK;
        const uint32_t last = ((at.seen.y < end ? at.seen.y : end) - begin) / ATTEND_BLOCK;
#pragma unroll 4
        for (uint32_t w = first; w <= last; w++)
            merge(a, place->heads[w][at.pair], ((const float2 *)place->out[w])[thread]);
        merge(all, make_float2(a.max, a.sum), a.out);
    }
    return all;
}

static __device__ __forceinline__ float *
partial_at(const struct attend_scene &c, const struct merge_place &at, uint32_t part)
{
    return c.forward->kv_cache.partials +
           (((size_t)at.row * c.m->heads + at.head) * c.parts + part) * (2 + c.m->head_dim);
}

static __device__ __forceinline__ void
put_partial(const struct attend_scene &c, const struct merge_place &at, uint32_t part, const struct merged &a)
{
    float *to = partial_at(c, at, part);
    if (at.d == 0)
        *(float2 *)to = make_float2(a.max, a.sum);
    *(float2 *)(to + 2 + at.d) = a.out;
}

/* Merges all partials of the pair, which must be complete: to splits, and these. */
static __device__ __forceinline__ struct merged
merge_parts(const struct attend_scene &c, const struct merge_place &at)
{
    struct merged all = {-INFINITY, 0, {0, 0}}, split = all;
    const uint32_t last = at.seen.y / c.part, each = ATTEND_SPLIT / c.part;
    for (uint32_t from = at.seen.x / c.part; from <= last; from += MERGE_AHEAD) {
        float2 heads[MERGE_AHEAD] = {}, outs[MERGE_AHEAD] = {};
#pragma unroll
        for (uint32_t i = 0; i < MERGE_AHEAD; i++)
            if (from + i <= last) {
                const float *partial = partial_at(c, at, from + i);
                heads[i] = __ldcg((const float2 *)partial);
                outs[i] = __ldcg((const float2 *)(partial + 2 + at.d));
            }
#pragma unroll
        for (uint32_t i = 0; i < MERGE_AHEAD; i++) {
            if (from + i <= last)
                merge(split, heads[i], outs[i]);
            if (from + i == last || (from + i < last && (from + i + 1) % each == 0)) {
                merge(all, make_float2(split.max, split.sum), split.out);
                split = {-INFINITY, 0, {0, 0}};
            }
        }
    }
    return all;
}

static __device__ __forceinline__ void
put_attended(const struct attend_scene &c, const struct merge_place &at, struct merged a)
{
    if (c.sinks != NULL)
        merge(a, make_float2(c.sinks[at.head], 1), make_float2(0, 0));
    const uint32_t cols = c.m->heads * c.m->head_dim, k = at.head * c.m->head_dim + at.d;
    put_activation(c.forward->kv_cache.attended, c.m->exact, cols, at.row, k, a.out.x / a.sum);
    put_activation(c.forward->kv_cache.attended, c.m->exact, cols, at.row, k + 1, a.out.y / a.sum);
}

/* ---- all of it ---- */

/* Computes a part of a job, with all warps. Run r of a block is the work of the r-th warp from the block's own on. */
template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ struct merged
attend_part(const struct attend_scene &c, const struct attend_job &job, struct attend_place *place,
            const struct merge_place &at, uint32_t part)
{
    const uint32_t thread = thread_here(), warp = thread / WARP, begin = part * c.part, room = head_room(c.m->head_dim);
    static_assert(PAIRS * DIMS * WARP == ATTEND_SUMS && PAIRS <= ATTEND_PAIRS, "two sums a thread");
    __syncthreads(); /* queries are complete, and the previous partials have been read */
    for (uint32_t r = 0; r < job.runs; r++) {
        const uint32_t block = (warp - r) % BLOCK_WARPS, first = begin + block * ATTEND_BLOCK;
        if (block * ATTEND_BLOCK >= c.part || first > job.last || first + ATTEND_BLOCK <= job.first)
            continue;
        const struct attend_run run = run_of(job, r, first);
        if (first <= run.last && first + ATTEND_BLOCK > run.first)
            attend_block<KV, PAIRS, DIMS>(c, job, run, first, place->q + run.from * room, place->weights[warp],
                                          place->heads[block] + run.from, place->out[block] + run.from * WARP * DIMS);
    }
    __syncthreads();
    return merge_blocks(place, at, begin, c.part, thread);
}

template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
attend_job_parts(const struct attend_scene &c, const struct attend_job &job, struct attend_place *place, uint32_t first,
                 uint32_t last)
{
    const struct merge_place at = merge_place_of<DIMS>(c, job, thread_here());
    const bool partial = job.first / c.part < first || job.last / c.part > last;
    struct merged all = {-INFINITY, 0, {0, 0}};
    put_queries(c, job, place);
    for (uint32_t part = first; part <= last; part++) {
        const struct merged a = attend_part<KV, PAIRS, DIMS>(c, job, place, at, part);
        const bool sees = at.any && at.seen.x / c.part <= part && at.seen.y / c.part >= part;
        if (sees && partial)
            put_partial(c, at, part, a);
        else if (sees)
            merge(all, make_float2(a.max, a.sum), a.out);
    }
    const uint32_t others = job.last / c.part - job.first / c.part;
    if (partial && !is_last(&c.forward->kv_cache.arrivals[job.counter], others))
        return;
    if (at.any)
        put_attended(c, at, partial ? merge_parts(c, at) : all);
}

/* Jobs are numbered with key-value heads innermost and pieces of groups, most of which are empty, outermost, so that a
 * small number of jobs spreads over all multiprocessors. */
template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
attend_rows(const struct attend_scene &c, struct attend_place *place)
{
    const uint32_t share = c.m->heads / c.m->kv_heads, pieces = (ATTEND_PAIRS * share + PAIRS - 1) / PAIRS;
    const uint32_t parts = c.apart ? c.parts : 1, groups = c.forward->n_groups;
    const uint32_t jobs = pieces * groups * parts * c.m->kv_heads;
    for (uint32_t u = blockIdx.x; u < jobs; u += gridDim.x) {
        const uint32_t kv_head = u % c.m->kv_heads, part = u / c.m->kv_heads % parts,
                       group = u / c.m->kv_heads / parts % groups, piece = u / c.m->kv_heads / parts / groups;
        struct attend_job job;
        job.lane = thread_here() % WARP;
        if (!find_job<PAIRS>(c, c.forward->groups[group], piece, kv_head, &job))
            continue;
        const uint32_t first = job.first / c.part, last = job.last / c.part;
        if (c.apart && (part < first || part > last))
            continue;
        attend_job_parts<KV, PAIRS, DIMS>(c, job, place, c.apart ? part : first, c.apart ? part : last);
    }
}

#endif
