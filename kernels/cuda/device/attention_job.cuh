/* What a block attends to at a time: some (row, head) pairs that share keys and values, their queries in shared memory. */
#ifndef KERNELS_CUDA_DEVICE_ATTENTION_JOB_CUH
#define KERNELS_CUDA_DEVICE_ATTENTION_JOB_CUH

#include "kernels/cuda/device/forms.cuh"
#include "kernels/cuda/device/ptx.cuh"
#include "kernels/cuda/device/warp.cuh"

struct attend_scene {
    const struct sweep_args *sweep;
    const struct dev_model *m;
    uint32_t layer;             /* its rows are those with from < layer */
    uint32_t splits;            /* of the longest path in the sweep */
    uint32_t window;            /* the layer's; 0: none */
    bool apart;                 /* they are different blocks' work */
    const float *sinks = NULL;  /* (heads) logits of nothing, which take weight from the path; NULL: none */
    const float *slopes = NULL; /* (heads) form.alibi; NULL: none */
};

/* ---- shared memory ---- */

/* Pairs times dimensions that a block has sums of: two a thread. */
#define ATTEND_SUMS (2 * SWEEP_THREADS)

/* Queries (PAIRS, head_room); of each warp for each pair maximum and sum, and the unnormalised outputs (PAIRS, dimensions).
 * Before its outputs a warp has its weights there, (ATTEND_BLOCK, PAIRS). */
struct attend_place {
    float q[ATTEND_SUMS];
    float2 heads[SWEEP_WARPS][ATTEND_PAIRS];
    float out[SWEEP_WARPS][ATTEND_SUMS];
};
#define ATTEND_SHARED sizeof(struct attend_place)

/* ---- a job ---- */

/* Some pairs of a group of rows on one key-value head. Lane i of every warp knows pair i. */
struct attend_job {
    uint32_t lane;
    uint32_t n;                 /* pairs */
    uint32_t row, head;         /* of this lane's pair, if it has one */
    float slope;                /* of its head */
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
    job->slope = c.slopes != NULL ? c.slopes[job->head] : 0;
    job->seen = make_uint2(1, 0);
    if (lane < job->n && rows[job->row].from < c.layer) {
        const uint32_t last = rows[job->row].n_trunk + rows[job->row].n_tail - 1, window = c.window;
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
    job->base = ((size_t)(c.layer - 1) * c.sweep->store.slots * c.m->kv_heads + kv_head) * head_room(c.m->head_dim);
    return true;
}

/* The queries of a job's pairs to shared memory, by all threads. Those of the job before have been read. */
static __device__ __forceinline__ void
put_queries(const struct attend_scene &c, const struct attend_job &job, struct attend_place *place)
{
    const uint32_t dim = c.m->head_dim, room = head_room(dim), warp = thread_here() / WARP;
    for (uint32_t i = 0; i < job.n; i++) {
        const uint32_t row = __shfl_sync(ALL_OF_WARP, job.row, (int)i),
                       head = __shfl_sync(ALL_OF_WARP, job.head, (int)i);
        const float *from = c.sweep->store.q + ((size_t)row * c.m->heads + head) * dim;
        const float grown = growth_at(c.m->form, __shfl_sync(ALL_OF_WARP, job.seen.y, (int)i));
        for (uint32_t d = (warp + SWEEP_WARPS - i) % SWEEP_WARPS * WARP + job.lane; d < room; d += SWEEP_THREADS)
            place->q[i * room + d] = d < dim ? from[d] * grown : 0;
    }
}

#endif
