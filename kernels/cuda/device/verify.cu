/* Verification: walks over a tree of candidates, as kernels/backend.h describes at struct verify_node.
 *
 * Each block of a launch walks one round. A greedy walk compares tokens with the predictions of their rows. For sampled
 * rounds, a previous launch computes the distributions of all rows, one block each. Accepted candidates need only
 * single probabilities. A rejection makes one pass over the vocabulary, to subtract q from p. */
#include "kernels/cuda/device/dist.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/launch.h"

/* Copies the target's predictions for the nodes; called by the first VERIFY_NODES threads. */
static __device__ void
judge(const struct dev_round &w, const struct prediction *predictions)
{
    const uint32_t i = threadIdx.x;
    if (i >= VERIFY_NODES)
        return;
    struct prediction g = {};
    g.token = TOKEN_NONE;
    if (i < w.n && w.logits_row[i] >= 0)
        g = predictions[w.logits_row[i]];
    w.verdict->judged[i] = g;
}

/* ---- sampling ---- */

/* Computes, for node blockIdx.x of round blockIdx.y, the distribution of its row, and the sums of p and of the q that
 * the node was drawn from. */
__global__ void
__launch_bounds__(BLOCK_THREADS) measure_nodes(struct verify_args a)
{
    const uint32_t vocab = a.model->vocab;
    __shared__ struct select_scratch scratch;
    const struct dev_round *const round = &a.rounds[blockIdx.y];
    if (blockIdx.x >= round->n || !(round->sampling.temperature > 0))
        return;
    const int32_t row = round->logits_row[blockIdx.x];
    const dist_t q = round->nodes[blockIdx.x].q;
    struct row_dist dist = {};
    if (row >= 0) {
        const float *const z = a.kv_cache.head_logits + (size_t)row * vocab;
        dist = measure_dist(z, vocab, &round->sampling, &scratch);
        dist.total = mass_value(block_mass([=](uint32_t v) { return dist_p(&dist, z[v], v); }, vocab, &scratch.block));
    }
    if (q != DIST_NONE) {
        const uint32_t whole = a.kv_cache.dists_vocab;
        const struct stored_p drawn_from = {a.kv_cache.dists_p + (size_t)q * whole, NULL, 0};
        dist.q_total = mass_value(block_mass(drawn_from, whole, &scratch.block));
    }
    if (threadIdx.x == 0)
        round->dists[blockIdx.x] = dist;
}

/* The target's distribution at a node, not normalised, with rejected candidates subtracted. */
struct remainder {
    struct row_dist dist;
    const float *z;    /* (vocab) logits at the node */
    const float *rest; /* (vocab), used after the first rejection; NULL before */
    __device__ __forceinline__ float
    operator()(uint32_t v) const
    {
        return rest != NULL ? rest[v] : dist_p(&dist, z[v], v);
    }
};

/* The children of one node, tested one after the other; the same in all threads. */
struct test {
    struct remainder p;
    double total;      /* of p */
    float *spare;      /* (vocab) for the next remainder */
    float *other;      /* (vocab) for the one after it */
    token_t *rejected; /* (VERIFY_NODES), shared memory */
    uint32_t n_rejected;
};

/* Returns 1 / total as a factor. */
static __device__ __forceinline__ float
normalizer(double total)
{
    return fminf((float)(1 / total), 3e38f);
}

/* Rejects x: p <- norm(max(0, p - q)), with q without the tokens rejected before; or, if x was not drawn from q
 * (q_total 0), p without x. If nothing would be left, p is unchanged. */
static __device__ void
reject(struct test *t, uint32_t x, struct stored_p q, double q_total, uint32_t vocab, struct block_scratch *scratch)
{
    const struct remainder p = t->p;
    float *const rest = t->spare;
    struct mass left;
    if (q_total > 0) {
        const float p_scale = normalizer(t->total), q_scale = normalizer(q_total);
        left = block_mass(
            [=](uint32_t v) { /* both products are rounded, so that equal ones cancel */
                              const float d = __fmul_rn(p(v), p_scale) - __fmul_rn(q(v), q_scale);
                              return rest[v] = d > 0 ? d : 0.0f;
            },
            vocab, scratch);
    } else {
        left = block_mass([=](uint32_t v) { return rest[v] = v == x ? 0.0f : p(v); }, vocab, scratch);
    }
    if (left.units > 0) {
        t->p.rest = rest;
        t->total = mass_value(left);
        t->spare = t->other;
        t->other = rest;
    }
    if (threadIdx.x == 0)
        t->rejected[t->n_rejected] = (token_t)x;
    t->n_rejected++;
    __syncthreads(); /* `rest` and `rejected` are complete for all threads */
}

/* Tests a candidate, whose q has the sum `measured`, with probability min(1, p(x)/q(x)). */
static __device__ bool
accept(struct test *t, const struct verify_args *a, const struct verify_node *child, double measured, uint32_t vocab,
       const struct rng_key *key, struct block_scratch *scratch)
{
    const uint32_t x = (uint32_t)child->token;
    const uint32_t whole = a->kv_cache.dists_vocab; /* the size of q, at least vocab */
    const struct stored_p q = {child->q == DIST_NONE ? NULL : a->kv_cache.dists_p + (size_t)child->q * whole,
                               t->rejected, t->n_rejected};
    const double px = x < vocab ? (double)t->p(x) / t->total : 0, qx = child->q == DIST_NONE ? 0 : (double)q(x);
    double q_total = 0;
    if (qx > 0)
        q_total = t->n_rejected == 0 ? measured : mass_value(block_mass(q, whole, scratch));
    if (rng_uniform(key) * (qx > 0 ? qx / q_total : 1) < px)
        return true;
    reject(t, x, q, q_total, vocab, scratch);
    return false;
}

/* Walks a round, with a whole block. The block has its own verify_p (2, vocab). */
static __device__ void
walk_round(const struct verify_args &a, const struct dev_round &w, float *verify_p, token_t *rejected,
           struct block_scratch *scratch)
{
    const uint32_t vocab = a.model->vocab;
    const bool sampled = w.sampling.temperature > 0;
    judge(w, a.predictions);
    struct rng_key key = {w.seed, 0, 0, 0, 0};
    struct test t = {{}, 1, verify_p, verify_p + vocab, rejected, 0};
    uint32_t n_path = 0, node = 0, kind = NEXT_CANDIDATE;
    token_t following = TOKEN_NONE;
    for (;;) {
        const int32_t row = w.logits_row[node];
        const token_t argmax = sampled ? TOKEN_NONE : a.predictions[row].token;
        if (sampled)
            t.p = {w.dists[node], a.kv_cache.head_logits + (size_t)row * vocab, NULL};
        t.total = t.p.dist.total;
        t.n_rejected = 0;
        uint32_t next = 0, siblings = 0;
        for (uint32_t i = node + 1; i < w.n && next == 0; i++) {
            if (w.nodes[i].parent != (int32_t)node)
                continue;
            key.pos = w.nodes[i].pos, key.purpose = RNG_ACCEPT, key.index = siblings++;
            const bool accepted = sampled ? accept(&t, &a, &w.nodes[i], w.dists[i].q_total, vocab, &key, scratch)
                                          : w.nodes[i].token == argmax;
            next = accepted ? i : 0;
        }
        if (next == 0) {
            kind = siblings > 0 ? NEXT_CORRECTION : NEXT_BONUS;
            key.pos = w.nodes[node].pos + 1, key.index = 0;
            key.purpose = siblings > 0 ? RNG_RESIDUAL : RNG_BONUS;
            following = sampled ? block_draw(t.p, vocab, &key, scratch) : argmax;
            break;
        }
        if (threadIdx.x == 0)
            w.verdict->path[n_path] = next;
        n_path++;
        if (w.logits_row[next] < 0) {
            following = w.nodes[next].token;
            break;
        }
        node = next;
    }
    if (threadIdx.x == 0) {
        w.verdict->n_path = n_path;
        w.verdict->next = following;
        w.verdict->kind = (enum next_kind)kind;
    }
}

/* Walks the rounds in turn, with at most VERIFY_WALKS blocks. */
__global__ void
__launch_bounds__(BLOCK_THREADS) walk_rounds(struct verify_args a)
{
    __shared__ struct block_scratch scratch;
    __shared__ token_t rejected[VERIFY_NODES];
    float *const mine = a.kv_cache.verify_p + (size_t)blockIdx.x * 2 * a.model->vocab;
    for (uint32_t i = blockIdx.x; i < a.n; i += gridDim.x) {
        const struct dev_round round = a.rounds[i];
        walk_round(a, round, mine, rejected, &scratch);
        __syncthreads(); /* slower threads may still read what the next round overwrites */
    }
}

cudaError_t
launch_verify(struct verify_args a, cudaStream_t stream)
{
    cudaError_t status = cudaSuccess;
    if (a.sampled)
        status = launch(measure_nodes, dim3(a.longest, a.n), BLOCK_THREADS, a, stream);
    if (status == cudaSuccess)
        status = launch(walk_rounds, a.n < VERIFY_WALKS ? a.n : VERIFY_WALKS, BLOCK_THREADS, a, stream);
    return status;
}
