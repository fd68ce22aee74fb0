/* What a warp attends to at a time: some (row, head) pairs that share keys and values, their queries in shared memory. */
#ifndef KERNELS_CUDA_ATTENTION_JOB_CUH
#define KERNELS_CUDA_ATTENTION_JOB_CUH

#include "kernels/cuda/warp.cuh"

struct attend_scene {
    const struct sweep_args *sweep;
    const struct dev_model *m;
    uint32_t layer;  /* its rows are those with from < layer */
    uint32_t splits; /* of the longest path in the sweep */
};

/* ---- a warp's place in shared memory ---- */

/* Queries (PAIRS, dim rounded up to 8), weights (ATTEND_BLOCK, PAIRS), and of each pair the first and last position that
 * it sees. */
template <int PAIRS> struct attend_place {
    float *q, *weights;
    uint2 *seen;
};

static inline HOST_DEVICE uint32_t
padded_dim(uint32_t dim)
{
    return (dim + 7) / 8 * 8;
}

static inline HOST_DEVICE size_t
attend_floats(uint32_t pairs, uint32_t dim)
{
    return pairs * (padded_dim(dim) + ATTEND_BLOCK + 2);
}

/* Of a block, whatever the head: up to 128 dimensions 8 pairs, up to 256 4. */
#define ATTEND_SHARED (SWEEP_WARPS * ATTEND_PAIRS * (128 + ATTEND_BLOCK + 2) * sizeof(float))

template <int PAIRS>
static __device__ __forceinline__ struct attend_place<PAIRS>
place_of_warp(float *shared, uint32_t warp, uint32_t dim) {
    float *own = shared + warp * attend_floats(PAIRS, dim);
    float *weights = own + PAIRS * padded_dim(dim);
    return {own, weights, (uint2 *)(weights + ATTEND_BLOCK * PAIRS)};
}

/* ---- a job ---- */

/* Some pairs of a group of rows on one key-value head. Lane i knows pair i. */
struct attend_job {
    uint32_t lane;
    uint32_t n;                 /* pairs */
    uint32_t row, head;         /* of this lane's pair, if it has one */
    uint2 seen;                 /* by it: first and last position; none: {1, 0} */
    uint32_t first, last;       /* seen by any */
    uint32_t counter;           /* which of the arrivals is this job's */
    const slot_t *trunk, *tail; /* position p is trunk[p], or tail[p - n_trunk] */
    uint32_t n_trunk;
    size_t base; /* of the layer's keys and values of this head at slot 0, in elements */
};

/* Pairs [piece * PAIRS, …) of a group. False: none of them takes part. */
template <int PAIRS>
static __device__ __forceinline__ bool
find_job(const struct attend_scene &c, const struct row_group &group, uint32_t piece, uint32_t kv_head,
         struct attend_job *job)
{
    const uint32_t share = c.m->heads / c.m->kv_heads, lane = job->lane, pair = piece * PAIRS + lane;
    const uint32_t pairs = group.n * share, begin = piece * PAIRS;
    if (begin >= pairs)
        return false;
    const struct row *rows = c.sweep->rows;
    job->n = pairs - begin < PAIRS ? pairs - begin : PAIRS;
    job->row = group.first + pair / share;
    job->head = kv_head * share + pair % share;
    job->seen = make_uint2(1, 0);
    if (lane < job->n && rows[job->row].from < c.layer) {
        const uint32_t last = rows[job->row].n_trunk + rows[job->row].n_tail - 1, window = c.m->window;
        job->seen = make_uint2(window > 0 && last >= window ? last + 1 - window : 0, last);
    }
    const bool takes_part = job->seen.x <= job->seen.y;
    job->first = __reduce_min_sync(ALL_OF_WARP, takes_part ? job->seen.x : UINT32_MAX);
    job->last = __reduce_max_sync(ALL_OF_WARP, takes_part ? job->seen.y : 0);
    if (job->first == UINT32_MAX)
        return false;
    job->counter = (group.first + begin / share) * c.m->heads + kv_head * share + begin % share;
    const struct row &row = rows[group.first];
    job->trunk = c.sweep->store.trunk + (size_t)row.seq * c.sweep->store.trunk_room;
    job->tail = c.sweep->tails + row.tail;
    job->n_trunk = row.n_trunk;
    job->base = ((size_t)(c.layer - 1) * c.sweep->store.slots * c.m->kv_heads + kv_head) * c.m->head_dim;
    return true;
}

/* The queries and bounds of a job's pairs to shared memory. */
template <int PAIRS>
static __device__ __forceinline__ void
put_queries(const struct attend_scene &c, const struct attend_job &job, const struct attend_place<PAIRS> &place)
{
    const uint32_t lane = job.lane, dim = c.m->head_dim, padded = padded_dim(dim);
    __syncwarp(); /* the job before has been read */
    if (lane < PAIRS)
        place.seen[lane] = job.seen;
    for (uint32_t i = 0; i < job.n; i++) {
        const uint32_t row = __shfl_sync(ALL_OF_WARP, job.row, (int)i),
                       head = __shfl_sync(ALL_OF_WARP, job.head, (int)i);
        const float *from = c.sweep->store.q + ((size_t)row * c.m->heads + head) * dim;
        for (uint32_t d = lane; d < padded; d += WARP)
            place.q[i * padded + d] = d < dim ? from[d] : 0;
    }
    __syncwarp();
}

#endif
