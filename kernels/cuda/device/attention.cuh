/* Attention of rows to their paths, by blocks.
 *
 * A row's path is cut at fixed positions into splits of ATTEND_SPLIT positions, these into quarters, and these into
 * blocks of ATTEND_BLOCK positions, one per warp. A warp multiplies queries with keys, and weights with values. The
 * warps' partials (maximum, sum, unnormalised output) are merged in ascending order into the quarter's, the quarters'
 * into the split's, and the splits' into the row's. A part is what one thread block computes at a time: a split, or a
 * quarter if there are few splits. If there are few rows, different thread blocks compute the parts, and the block that
 * finishes last merges them. Otherwise one block computes all of them. Either way the arithmetic and its order are the
 * same (flash-decoding: Dao, Haziza, Massa, Sizov 2023).
 *
 * Up to PAIRS (row, head) pairs share a load of keys and values. Their rows are of a group with one trunk, and their
 * heads have the same key-value head. In blocks that reach past the trunk, each run of pairs with one tail is computed
 * by another warp. Blocks and quarters in which a pair sees no position are not merged. */
#pragma once

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
    uint32_t layer;             /* layer of the rows that take part, which have from < layer */
    uint32_t part, parts;       /* positions in a part; parts of the longest path in the forward pass */
    uint32_t window;            /* the layer's; 0: none */
    bool apart;                 /* parts are computed by different blocks */
    const float *sinks = NULL;  /* (heads) logits of a virtual position with value zero; NULL: none */
    const float *slopes = NULL; /* (heads) slopes of form.alibi; NULL: none */
    bool causal = false;        /* rows attend to no later rows of their block */
};

/* ---- shared memory ---- */

/* Pairs times dimensions whose sums a block keeps: two per thread. */
#define ATTEND_SUMS (2 * BLOCK_THREADS)

/* The weight of a position, and the slot of its value. */
struct weighed {
    float weight;
    slot_t slot;
};

/* Queries (PAIRS, dimensions) in F32, or (2, PAIRS, dimensions) in F16; the maximum and the sum for each block of
 * positions and pair; the unnormalised outputs (PAIRS, dimensions); exact: the terms that a warp sums. */
struct attend_place {
    uint4 q[ATTEND_SUMS * sizeof(float) / sizeof(uint4)];
    float2 heads[BLOCK_WARPS][ATTEND_PAIRS];
    float out[BLOCK_WARPS][ATTEND_SUMS];
    struct weighed weights[BLOCK_WARPS][ATTEND_BLOCK];
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
    uint32_t after;           /* positions of them after its own */
    uint32_t first, last;     /* range visible to any pair */
    uint32_t tail, run, runs; /* the pair's tail; the number of its run of pairs with one tail; number of runs */
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
    job->after = 0;
    job->tail = lane < job->n ? rows[job->row].tail : 0;
    if (lane < job->n && rows[job->row].from < c.layer) {
        const uint32_t own = rows[job->row].n_trunk + rows[job->row].n_tail - 1, window = c.window;
        job->after = c.causal ? 0 : rows[job->row].n_after;
        job->seen = make_uint2(window > 0 && own >= window ? own + 1 - window : 0, own + job->after);
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

/* Splits each of two numbers into two F16 numbers: the rounded number and the remainder. */
static __device__ __forceinline__ void
split_halves(float x, float y, uint32_t *high, uint32_t *low)
{
    *high = pack_halves(x, y);
    const float2 rounded = unpack_halves(*high);
    *low = pack_halves(x - rounded.x, y - rounded.y);
}

/* Copies the queries of a job's pairs to shared memory, with all threads, padded with zeros. The queries of the
 * previous job must have been read. */
template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ void
put_queries(const struct attend_scene &c, const struct attend_job &job, struct attend_place *place)
{
    const uint32_t dim = c.m->head_dim, warp = thread_here() / WARP, room = WARP * DIMS;
    for (uint32_t i = 0; i < job.n; i++) {
        const uint32_t row = __shfl_sync(ALL_OF_WARP, job.row, (int)i),
                       head = __shfl_sync(ALL_OF_WARP, job.head, (int)i);
        const float *from = c.forward->kv_cache.q + ((size_t)row * c.m->heads + head) * dim;
        const float grown = growth_at(c.m->form, __shfl_sync(ALL_OF_WARP, job.seen.y - job.after, (int)i));
        const uint32_t d = ((warp + BLOCK_WARPS - i) % BLOCK_WARPS * WARP + job.lane) * 2, pair = (i * room + d) / 2;
        if (d >= room)
            continue;
        const float x = d < dim ? from[d] * grown : 0, y = d + 1 < dim ? from[d + 1] * grown : 0;
        if (sizeof(KV) == sizeof(float))
            ((float2 *)place->q)[pair] = make_float2(x, y);
        else
            split_halves(x, y, (uint32_t *)place->q + pair, (uint32_t *)place->q + PAIRS * room / 2 + pair);
    }
}

/* A warp's block of positions, for a run of pairs of which some are visible. */
template <class KV> struct attend_block {
    const struct attend_scene &c;
    const struct attend_job &job;
    const struct attend_run &run;
    uint32_t first; /* position */
    slot_t slot;    /* of position number `lane`; lanes after the last position have the last one's */
    uint32_t room;
    size_t stride; /* of a slot */
    const KV *keys, *values;

    __device__ __forceinline__
    attend_block(const struct attend_scene &c, const struct attend_job &job, const struct attend_run &run,
                 uint32_t first)
        : c(c), job(job), run(run), first(first), room(head_room(c.m->head_dim)), stride((size_t)c.m->kv_heads * room),
          keys((const KV *)c.forward->kv_cache.keys + job.base),
          values((const KV *)c.forward->kv_cache.values + job.base)
    {
        const uint32_t position = min(first + job.lane, run.last);
        slot = position < job.n_trunk ? job.trunk[position] : c.forward->tails[run.tail + (position - job.n_trunk)];
    }
};

/* The positions that one pair sees. */
struct attend_view {
    uint2 seen;
    float slope;  /* with ALiBi, */
    uint32_t own; /* and the pair's own position */
};

static __device__ __forceinline__ struct attend_view
view_of(const struct attend_scene &c, const struct attend_job &job, uint32_t pair)
{
    return {
        make_uint2(__shfl_sync(ALL_OF_WARP, job.seen.x, (int)pair), __shfl_sync(ALL_OF_WARP, job.seen.y, (int)pair)),
        c.slopes != NULL ? __shfl_sync(ALL_OF_WARP, job.slope, (int)pair) : 0,
        c.slopes != NULL ? __shfl_sync(ALL_OF_WARP, job.seen.y - job.after, (int)pair) : 0};
}

/* Returns the score of a position from its product, or -infinity if the pair does not see it. */
static __device__ __forceinline__ float
score_of(const struct attend_scene &c, const struct attend_view &view, uint32_t position, float z)
{
    if (c.m->form.attention_cap > 0)
        z = capped(c.m->form.attention_cap, z);
    if (c.slopes != NULL)
        z += form_alibi_bias(&c.m->form.alibi, view.slope, view.own, position);
    return position >= view.seen.x && position <= view.seen.y ? z : -INFINITY;
}

static __device__ __forceinline__ float
weight_of(float score, float most)
{
    return score == -INFINITY ? 0 : expf(score - most);
}

/* Attends exactly, in F32, by multiply-adds in order. A position that a pair does not see is skipped, because its value
 * may be infinite, and 0 times infinity is not a number. q (PAIRS, dimensions), heads and own (PAIRS, dimensions)
 * belong to the run. */
template <int DIMS>
static __device__ __forceinline__ void
attend_exactly(const struct attend_block<float> &b, const float *q, struct weighed *weights, float2 *heads, float *own)
{
    const uint32_t lane = b.job.lane;
    for (uint32_t i = 0; i < b.run.n; i++, q += WARP * DIMS, own += WARP * DIMS) {
        const float *const key = b.keys + b.slot * b.stride;
        float z = 0;
        for (uint32_t d = 0; d < b.room; d++)
            z = fmaf(key[d], q[d], z);
        z = score_of(b.c, view_of(b.c, b.job, b.run.from + i), b.first + lane, z);
        const float most = warp_reduce(z, max_op()), weight = weight_of(z, most), sum = warp_sum(weight);
        if (lane == 0)
            heads[i] = make_float2(most, sum);
        weights[lane] = {weight, b.slot};
        __syncwarp();
        for (uint32_t d = lane; d < b.room; d += WARP) {
            float out = 0;
            for (uint32_t p = 0; p < ATTEND_BLOCK; p++)
                if (weights[p].weight != 0)
                    out = fmaf(weights[p].weight, b.values[weights[p].slot * b.stride + d], out);
            own[d] = out;
        }
        __syncwarp(); /* the weights have been read */
    }
}

/* Attends in F16, by products of matrices (ptx.cuh). Rows g and g+8 of A belong to pair g of the run: the two F16
 * numbers whose sum is its query, then its weight (split_halves). B is keys (16 dimensions, 8 positions), then values
 * (16 positions, 8 dimensions). The order of dimensions is free, so 16 bytes of a key, or of four values, are a lane's
 * share of B. The scores that a lane gets are its share of the weights as A. Positions that a pair does not see have
 * weight 0, and their values are finite (kv.cuh). */

#define ATTEND_DIMS 64 /* dimensions of values that are loaded together: 128 bytes per lane */

/* Multiplies with the keys of 8 positions at a time. z[t][0] + z[t][2] belongs to position 8t + 2c of the block,
 * z[t][1] + z[t][3] to the next one. */
static __device__ __forceinline__ void
multiply_keys(const struct attend_block<uint16_t> &b, const uint4 *high, const uint4 *low,
              float (&z)[ATTEND_BLOCK / 8][4])
{
    const uint32_t g = b.job.lane / 4, c = b.job.lane % 4;
    const uint16_t *key[ATTEND_BLOCK / 8];
#pragma unroll
    for (uint32_t t = 0; t < ATTEND_BLOCK / 8; t++)
        key[t] = b.keys + __shfl_sync(ALL_OF_WARP, b.slot, (int)(t * 8 + g)) * b.stride;
    for (uint32_t d = c * 8; d < b.room + c * 8; d += UNIT) {
        uint4 k[ATTEND_BLOCK / 8];
#pragma unroll
        for (uint32_t t = 0; t < ATTEND_BLOCK / 8; t++)
            load_state(&k[t], key[t] + (d < b.room ? d : 0)); /* 0: is multiplied by zero */
        const uint4 h = load_smem(high + d / 8), l = load_smem(low + d / 8);
        const uint32_t first[4] = {h.x, l.x, h.y, l.y}, second[4] = {h.z, l.z, h.w, l.w};
#pragma unroll
        for (uint32_t t = 0; t < ATTEND_BLOCK / 8; t++) {
            mma_f16(z[t], first, k[t].x, k[t].y);
            mma_f16(z[t], second, k[t].z, k[t].w);
        }
    }
}

/* Converts products to weights exp(z - max), as A of 16 positions each; writes maxima and sums of the weights to
 * `heads`. */
static __device__ __forceinline__ void
weigh_block(const struct attend_block<uint16_t> &b, float (&z)[ATTEND_BLOCK / 8][4],
            uint32_t (&p)[ATTEND_BLOCK / 16][4], float2 *heads)
{
    const uint32_t g = b.job.lane / 4, c = b.job.lane % 4;
    const struct attend_view view = view_of(b.c, b.job, b.run.from + (g < b.run.n ? g : 0));
    float most = -INFINITY, sum = 0;
#pragma unroll
    for (uint32_t i = 0; i < ATTEND_BLOCK / 4; i++) {
        float &own = z[i / 2][i % 2];
        own = score_of(b.c, view, b.first + i / 2 * 8 + c * 2 + i % 2, own + z[i / 2][i % 2 + 2]);
        most = fmaxf(most, own);
    }
    most = warp_reduce<4>(most, max_op());
#pragma unroll
    for (uint32_t t = 0; t < ATTEND_BLOCK / 8; t++) {
        const float x = weight_of(z[t][0], most), y = weight_of(z[t][1], most);
        split_halves(x, y, &p[t / 2][t % 2 * 2], &p[t / 2][t % 2 * 2 + 1]);
        sum += x + y;
    }
    sum = warp_reduce<4>(sum, add_op());
    if (c == 0 && g < b.run.n)
        heads[g] = make_float2(most, sum);
}

/* Loads ATTEND_DIMS dimensions of the values, from d on. For each 16 positions these are numbers 2c and 2c + 1 of the
 * first eight and of the other eight. */
static __device__ __forceinline__ void
load_values(const struct attend_block<uint16_t> &b, uint32_t d, uint4 (&v)[ATTEND_BLOCK / 16][4])
{
    const uint32_t own = d + b.job.lane / 4 * 8, c = b.job.lane % 4;
#pragma unroll
    for (uint32_t i = 0; i < ATTEND_BLOCK / 4; i++) {
        const uint32_t p = i / 4 * 16 + i / 2 % 2 * 8 + c * 2 + i % 2;
        const slot_t slot = __shfl_sync(ALL_OF_WARP, b.slot, (int)p);
        load_state(&v[i / 4][i % 4], b.values + slot * b.stride + (own < b.room ? own : 0)); /* 0: not read */
    }
}

/* Multiplies weights and values, and writes the dimensions from d on of each pair's outputs. */
template <int DIMS>
static __device__ __forceinline__ void
multiply_values(const struct attend_block<uint16_t> &b, uint32_t d, const uint32_t (&p)[ATTEND_BLOCK / 16][4],
                const uint4 (&v)[ATTEND_BLOCK / 16][4], float *own)
{
    const uint32_t g = b.job.lane / 4, c = b.job.lane % 4;
    float out[2][8];
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) { /* the i-th of eight dimensions of each lane */
        float sum[4] = {};
#pragma unroll
        for (uint32_t s = 0; s < ATTEND_BLOCK / 16; s++) {
            uint32_t word[4];
#pragma unroll
            for (uint32_t j = 0; j < 4; j++)
                word[j] = i / 2 == 0 ? v[s][j].x : i / 2 == 1 ? v[s][j].y : i / 2 == 2 ? v[s][j].z : v[s][j].w;
            const uint32_t halves = i % 2 == 0 ? 0x5410 : 0x7632; /* the lower ones of two words, or the upper ones */
            mma_f16(sum, p[s], __byte_perm(word[0], word[1], halves), __byte_perm(word[2], word[3], halves));
        }
        out[0][i] = sum[0] + sum[2];
        out[1][i] = sum[1] + sum[3];
    }
    float4 *const to = (float4 *)(own + g * WARP * DIMS + d + c * 16);
#pragma unroll
    for (uint32_t i = 0; i < 4 && g < b.run.n; i++) {
        const float *const four = &out[i / 2][i % 2 * 4];
        to[i] = make_float4(four[0], four[1], four[2], four[3]);
    }
}

/* Attends in F16; high, low, heads and own belong to the run. */
template <int DIMS>
static __device__ __forceinline__ void
attend_halves(const struct attend_block<uint16_t> &b, const uint4 *high, const uint4 *low, float2 *heads, float *own)
{
    const uint32_t row = (b.job.lane / 4 < b.run.n ? b.job.lane / 4 : 0) * (WARP * DIMS / 8);
    float z[ATTEND_BLOCK / 8][4] = {};
    uint32_t p[ATTEND_BLOCK / 16][4];
    uint4 v[ATTEND_BLOCK / 16][4];
    multiply_keys(b, high + row, low + row, z);
    load_values(b, 0, v); /* loads while weights are computed */
    weigh_block(b, z, p, heads);
    multiply_values<DIMS>(b, 0, p, v, own);
    for (uint32_t d = ATTEND_DIMS; d < b.room; d += ATTEND_DIMS) {
        load_values(b, d, v);
        multiply_values<DIMS>(b, d, p, v, own);
    }
}

#define MERGE_AHEAD 8 /* partials that are loaded at once */

/* ---- a thread's share of merging: two dimensions of a pair ---- */

struct merged {
    float max, sum;
    float2 out;
};

struct merge_place {
    /* d: the first dimension. There is nothing to do if it is at least head_dim, or if the pair is absent. */
    uint32_t pair, d;
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

/* Merges the blocks' partials of a part that begins at this position, first into quarters, then these. */
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

/* Merges all partials of the pair, which must be complete, first into splits, then these. */
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

/* ---- parts and jobs ---- */

/* Computes a part of a job, with all warps. Run r of a block is computed by the r-th warp counted from the block's
 * own. */
template <class KV, int PAIRS, int DIMS>
static __device__ __forceinline__ struct merged
attend_part(const struct attend_scene &c, const struct attend_job &job, struct attend_place *place,
            const struct merge_place &at, uint32_t part)
{
    const uint32_t thread = thread_here(), warp = thread / WARP, begin = part * c.part, room = WARP * DIMS;
    static_assert(PAIRS * DIMS * WARP == ATTEND_SUMS && PAIRS <= ATTEND_PAIRS, "two sums a thread");
    __syncthreads(); /* queries are complete, and the previous partials have been read */
    for (uint32_t r = 0; r < job.runs; r++) {
        const uint32_t block = (warp - r) % BLOCK_WARPS, first = begin + block * ATTEND_BLOCK;
        if (block * ATTEND_BLOCK >= c.part || first > job.last || first + ATTEND_BLOCK <= job.first)
            continue;
        const struct attend_run run = run_of(job, r, first);
        if (first > run.last || first + ATTEND_BLOCK <= run.first)
            continue;
        const struct attend_block<KV> b(c, job, run, first);
        float2 *const heads = place->heads[block] + run.from;
        float *const own = place->out[block] + run.from * room;
        const uint4 *const q = place->q + run.from * room * sizeof(KV) / sizeof *q;
        if constexpr (sizeof(KV) == sizeof(float))
            attend_exactly<DIMS>(b, (const float *)q, place->weights[warp], heads, own);
        else
            attend_halves<DIMS>(b, q, q + PAIRS * room * sizeof(KV) / sizeof *q, heads, own);
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
    put_queries<KV, PAIRS, DIMS>(c, job, place);
    for (uint32_t part = first; part <= last; part++) {
        const struct merged a = attend_part<KV, PAIRS, DIMS>(c, job, place, at, part);
        const bool sees = at.any && at.seen.x / c.part <= part && at.seen.y / c.part >= part;
        if (sees && partial)
            put_partial(c, at, part, a);
        else if (sees)
            merge(all, make_float2(a.max, a.sum), a.out);
    }
    const uint32_t others = job.last / c.part - job.first / c.part;
    if (partial) {
        __syncthreads(); /* partials are stored */
        if (!is_last(&c.forward->kv_cache.arrivals[job.counter], others))
            return;
    }
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
