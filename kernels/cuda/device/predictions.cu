/* Statistics of rows of logits. A row is cut into pieces of fixed size, one per block. So one row occupies many
 * multiprocessors, and a row's prediction does not depend on other rows. Two launches:
 *   summarise: maximum, best five and sums of exponentials of each piece; reads the logits once;
 *   conclude:  if requested, compares each piece with the final layer's row; the last block of a row to finish
 *              merges its pieces, in order.
 * The formulas are those of kernels/cpu/head.c. */
#include "kernels/cuda/device/block.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/launch.h"

#define PIECE_WARPS   8
#define PIECE_THREADS (PIECE_WARPS * WARP)
#define THREAD_LOGITS (HEAD_PIECE / PIECE_THREADS)
#define LANE_RANKS                                                                                                     \
    ((PIECE_WARPS * PREDICTION_RANKS + WARP - 1) / WARP) /* of all warps' best, by lane of the first warp */

#define COUNTS_AS_ZERO (-100.0f) /* logits below it count as zero; avoids 0 * -infinity in the sums */

struct prediction_row {
    const float *z; /* (n) */
    uint32_t n;
    struct dev_set set;
    const struct head_piece *pieces;
    float temperature;
    int32_t final;
    struct prediction *out;
};

/* Finds the inputs and outputs of row i; returns false if there is no such row. */
static __device__ bool
find_row(const struct prediction_args *a, uint32_t i, struct prediction_row *row)
{
    row->z = a->logits + (size_t)i * a->vocab;
    row->pieces = a->pieces + (size_t)i * head_pieces_of(a->vocab);
    row->final = -1;
    row->set = a->rows != NULL ? a->rows[i].set : a->set;
    row->n = row->set.number > 0 ? row->set.n : a->vocab;
    if (a->rows != NULL) {
        row->temperature = a->rows[i].temperature;
        row->final = a->rows[i].final;
        row->out = &a->predictions[i];
        return true;
    }
    if (i >= a->until->probes)
        return false;
    const uint32_t layer = a->until->probed[i];
    row->temperature = a->temperature[layer];
    row->out = &a->predictions[layer];
    return true;
}

/* ---- pieces ---- */

/* Returns the best of the ranks offered by a warp's lanes; 0 if there is none. */
static __device__ __forceinline__ uint64_t
warp_best(uint64_t rank)
{
    const uint32_t key = __reduce_max_sync(ALL_OF_WARP, rank_key(rank));
    return rank_of(key, __reduce_min_sync(ALL_OF_WARP, rank_key(rank) == key ? rank_id(rank) : UINT32_MAX));
}

static __device__ __forceinline__ void
list_rank(struct head_piece *p, int place, uint64_t rank)
{
    p->top[place] = rank_key(rank) == 0 ? TOKEN_NONE : (token_t)rank_id(rank);
    p->top_z[place] = key_logit(rank_key(rank));
}

struct piece_scratch {
    uint64_t best[PIECE_WARPS * PREDICTION_RANKS];
    float sums[3][PIECE_WARPS];
    float max;
};

/* Writes the best ten of a block's logits z, ids first + i * PIECE_THREADS + threadIdx.x, to the piece, and the best
 * one to s->max, valid for all threads after a barrier. Each warp finds its own best, and the first warp merges
 * them. */
static __device__ void
find_top(const float z[THREAD_LOGITS], uint32_t first, struct head_piece *p, struct piece_scratch *s)
{
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    uint32_t taken = 0;
    for (int place = 0; place < PREDICTION_RANKS; place++) {
        uint32_t key = 0;
        int at = 0;
#pragma unroll
        for (int i = 0; i < THREAD_LOGITS; i++) {
            const uint32_t k = taken >> i & 1 ? 0 : logit_key(z[i]);
            at = k > key ? i : at;
            key = k > key ? k : key;
        }
        const uint64_t mine = rank_of(key, first + (uint32_t)at * PIECE_THREADS + threadIdx.x), best = warp_best(mine);
        if (best == mine)
            taken |= 1u << at;
        if (lane == 0)
            s->best[warp * PREDICTION_RANKS + place] = best;
    }
    __syncthreads();
    if (warp == 0) {
        uint64_t own[LANE_RANKS];
#pragma unroll
        for (uint32_t i = 0; i < LANE_RANKS; i++)
            own[i] = lane + i * WARP < PIECE_WARPS * PREDICTION_RANKS ? s->best[lane + i * WARP] : 0;
        for (int place = 0; place < PREDICTION_RANKS; place++) {
            uint64_t best = 0;
#pragma unroll
            for (uint32_t i = 0; i < LANE_RANKS; i++)
                best = max_op()(best, own[i]);
            best = warp_best(best);
#pragma unroll
            for (uint32_t i = 0; i < LANE_RANKS; i++)
                own[i] = own[i] == best ? 0 : own[i];
            if (lane == 0)
                list_rank(p, place, best);
            if (lane == 0 && place == 0)
                s->max = p->top_z[0];
        }
    }
}

/* Sums the threads' parts; the result is in thread 0. */
static __device__ void
add_up(float sum[3], float scratch[3][PIECE_WARPS])
{
    for (int i = 0; i < 3; i++) {
        const float part = warp_reduce(sum[i], add_op());
        if (threadIdx.x % WARP == 0)
            scratch[i][threadIdx.x / WARP] = part;
    }
    __syncthreads();
    for (int i = 0; threadIdx.x == 0 && i < 3; i++) {
        sum[i] = 0;
        for (int w = 0; w < PIECE_WARPS; w++)
            sum[i] += scratch[i][w];
    }
}

/* Grid: (rows, pieces). */
__global__ void
__launch_bounds__(PIECE_THREADS) summarise(struct prediction_args a)
{
    __shared__ struct piece_scratch scratch;
    struct prediction_row row;
    const uint32_t first = blockIdx.y * HEAD_PIECE;
    if (!find_row(&a, blockIdx.x, &row) || first >= row.n)
        return;
    struct head_piece *const p = &a.pieces[(size_t)blockIdx.x * gridDim.y + blockIdx.y];
    float z[THREAD_LOGITS];
    bool good = true;
#pragma unroll
    for (uint32_t i = 0; i < THREAD_LOGITS; i++) {
        const uint32_t v = first + i * PIECE_THREADS + threadIdx.x;
        z[i] = v < row.n ? row.z[v] : -INFINITY;
        good = good && z[i] < INFINITY; /* also false for NaN */
    }
    find_top(z, first, p, &scratch);
    good = __syncthreads_and(good);
    const float max = scratch.max, cold = fminf(1 / row.temperature, 3e38f);
    float sum[3] = {0, 0, 0}; /* plain, weighted, annealed */
#pragma unroll
    for (uint32_t i = 0; i < THREAD_LOGITS && max > -INFINITY; i++) {
        const float d = fmaxf(COUNTS_AS_ZERO, z[i] - max), e = expf(d);
        sum[0] += e;
        sum[1] = fmaf(e, d, sum[1]);
        if (row.temperature < 1 || row.temperature > 1)
            sum[2] += expf(fmaxf(COUNTS_AS_ZERO, (z[i] - max) * cold));
    }
    add_up(sum, scratch.sums);
    if (threadIdx.x != 0)
        return;
    p->max = max;
    p->sum = good ? sum[0] : NAN;
    p->weighted = sum[1];
    p->annealed = row.temperature < 1 || row.temperature > 1 ? sum[2] : sum[0];
    p->cross = 0;
    p->above = p->arrived = 0;
}

/* ---- rows ---- */

/* Merging pieces, with all lanes of a warp: */

struct softmax {
    float max;
    double sum; /* of exp(z - max) */
};

static __device__ struct softmax
row_softmax(const struct head_piece *pieces, uint32_t n)
{
    const uint32_t lane = threadIdx.x % WARP;
    struct softmax s = {-INFINITY, 0};
    for (uint32_t c = lane; c < n; c += WARP)
        s.max = max_op()(s.max, pieces[c].max);
    s.max = warp_reduce(s.max, max_op());
    for (uint32_t c = lane; c < n; c += WARP)
        if (pieces[c].max > -INFINITY || isnan(pieces[c].sum))
            s.sum += exp((double)pieces[c].max - (double)s.max) * (double)pieces[c].sum;
    s.sum = warp_reduce(s.sum, add_op());
    return s;
}

/* Returns the best rank in a row's lists that is after `last`. */
static __device__ uint64_t
next_best(const struct head_piece *pieces, uint32_t n, uint64_t last)
{
    uint64_t best = 0;
    for (uint32_t c = threadIdx.x % WARP; c < n; c += WARP)
        for (int i = 0; i < PREDICTION_RANKS; i++) {
            const token_t token = pieces[c].top[i];
            const uint64_t rank = token == TOKEN_NONE ? 0 : rank_of(logit_key(pieces[c].top_z[i]), (uint32_t)token);
            best = rank < last ? max_op()(best, rank) : best;
        }
    return warp_best(best);
}

static __device__ double
finite_or_nan(double x)
{
    return isfinite(x) ? x : (double)NAN;
}

/* Computes a row's prediction from its n pieces, with one warp. */
static __device__ void
merge(const struct prediction_args *a, const struct prediction_row *row, uint32_t n)
{
    const uint32_t lane = threadIdx.x % WARP;
    const struct softmax mine = row_softmax(row->pieces, n);
    double weighted = 0, annealed = 0;
    for (uint32_t c = lane; c < n; c += WARP) {
        const struct head_piece *p = &row->pieces[c];
        const double below = (double)p->max - (double)mine.max;
        if (!(p->max > -INFINITY))
            continue;
        weighted += exp(below) * ((double)p->weighted + below * (double)p->sum);
        annealed += exp(below / (double)row->temperature) * (double)p->annealed;
    }
    weighted = warp_reduce(weighted, add_op());
    annealed = warp_reduce(annealed, add_op());

    struct prediction g;
    uint64_t last = UINT64_MAX;
    for (int i = 0; i < PREDICTION_RANKS; i++) {
        last = last > 0 ? next_best(row->pieces, n, last) : 0;
        const bool there = rank_key(last) > 0;
        g.top[i] = !there              ? TOKEN_NONE
                   : a->tokens != NULL ? a->tokens[rank_id(last)]
                                       : (token_t)set_token(&row->set, rank_id(last));
        if (i < PREDICTION_TOP)
            g.top_p[i] = there ? (float)(exp((double)key_logit(rank_key(last)) - (double)mine.max) / mine.sum) : 0;
        last = there ? last : 0;
    }
    g.token = g.top[0];
    g.confidence = (float)finite_or_nan(1 / mine.sum);
    g.annealed = (float)finite_or_nan(1 / annealed);
    g.entropy = (float)fmax(0.0, log(mine.sum) - weighted / mine.sum);
    g.kl_final = NAN;
    g.rank_final = -1;
    if (row->final >= 0) { /* KL(f || z) = sum_v f(v) (f_v - z_v) - lse(f) + lse(z), where f_v and z_v are logits */
        const struct head_piece *const theirs = a->pieces + (size_t)row->final * n;
        const struct softmax f = row_softmax(theirs, n);
        double cross = 0;
        uint32_t above = 0;
        for (uint32_t c = lane; c < n; c += WARP) {
            if (theirs[c].max > -INFINITY)
                cross += exp((double)theirs[c].max - (double)f.max) * (double)__ldcg(&row->pieces[c].cross);
            above += __ldcg(&row->pieces[c].above);
        }
        cross = warp_reduce(cross, add_op());
        const double kl = cross / f.sum - ((double)f.max + log(f.sum)) + ((double)mine.max + log(mine.sum));
        g.kl_final = kl < 0 ? 0 : (float)kl;
        g.rank_final = (int32_t)warp_reduce(above, add_op());
    }
    if (lane == 0)
        *row->out = g;
}

/* Compares a piece of z with that of the final layer's row f: computes the cross term, and the number of logits ranked
 * before that of f's argmax. Returns true in all threads of the last block of the row. */
static __device__ bool
compare(const struct prediction_args *a, const struct prediction_row *row, struct head_piece *mine,
        struct piece_scratch *s)
{
    const struct head_piece *const theirs = a->pieces + (size_t)row->final * gridDim.y;
    const float *const f = a->logits + (size_t)row->final * a->vocab, f_max = theirs[blockIdx.y].max;
    const uint32_t first = blockIdx.y * HEAD_PIECE, end = a->vocab - first < HEAD_PIECE ? a->vocab : first + HEAD_PIECE;
    const uint32_t best = rank_id(next_best(theirs, gridDim.y, UINT64_MAX)); /* if none, all of f is -infinity */
    const float bar = best < a->vocab ? row->z[best] : INFINITY;
    float sum[3] = {0, 0, 0};
    uint32_t above = 0;
    for (uint32_t v = first + threadIdx.x; v < end; v += PIECE_THREADS) {
        const float zv = row->z[v], fv = f[v], e = expf(fv - f_max);
        if (e > 0)
            sum[0] = fmaf(e, fv - zv, sum[0]);
        above += zv > bar || (zv >= bar && v < best) ? 1 : 0;
    }
    sum[1] = (float)above; /* at most HEAD_PIECE: exact */
    add_up(sum, s->sums);
    if (threadIdx.x == 0) {
        mine->cross = sum[0];
        mine->above = (uint32_t)sum[1];
    }
    return is_last(&a->pieces[(size_t)blockIdx.x * gridDim.y].arrived, gridDim.y - 1);
}

/* Grid: (rows, pieces). */
__global__ void
__launch_bounds__(PIECE_THREADS) conclude(struct prediction_args a)
{
    __shared__ struct piece_scratch scratch;
    struct prediction_row row;
    if (!find_row(&a, blockIdx.x, &row) || (row.final < 0 && blockIdx.y > 0))
        return;
    struct head_piece *const mine = &a.pieces[(size_t)blockIdx.x * gridDim.y + blockIdx.y];
    if (row.final >= 0 && !compare(&a, &row, mine, &scratch))
        return;
    if (threadIdx.x < WARP)
        merge(&a, &row, head_pieces_of(row.n));
}

cudaError_t
launch_predictions(struct prediction_args a, cudaStream_t stream)
{
    const dim3 grid(a.n, head_pieces_of(a.vocab));
    const cudaError_t status = launch(summarise, grid, PIECE_THREADS, a, stream);
    return status == cudaSuccess ? launch(conclude, grid, PIECE_THREADS, a, stream) : status;
}
