/* Verification: the walk over a tree of candidates that kernels/backend.h describes at struct verify_node.
 *
 * Greedy, it compares tokens with the guesses of their rows. Sampling, one launch finds the laws of all rows, a block
 * each, and a block of the next walks: as long as candidates are accepted it asks for single probabilities; only a
 * rejection makes it pass over the vocabulary, to subtract q from p. */
#include "kernels/cuda/draw.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/law.cuh"

/* The target's guesses at the nodes; by the first VERIFY_NODES threads. */
static __device__ void
judge(const struct verify_args *a)
{
    const uint32_t i = threadIdx.x;
    if (i >= VERIFY_NODES)
        return;
    struct guess g = {};
    g.token = TOKEN_NONE;
    if (i < a->n && a->logits_row[i] >= 0)
        g = a->guesses[a->logits_row[i]];
    a->verdict->judged[i] = g;
}

/* ---- greedy ---- */

__global__ void
__launch_bounds__(VERIFY_NODES) walk_greedy(struct verify_args a)
{
    judge(&a);
    if (threadIdx.x != 0)
        return;
    struct verdict *const out = a.verdict;
    uint32_t n_path = 0;
    for (uint32_t node = 0;;) {
        const token_t argmax = a.guesses[a.logits_row[node]].token;
        uint32_t next = 0, siblings = 0; /* node 0 is nobody's child */
        for (uint32_t i = node + 1; i < a.n && next == 0; i++)
            if (a.nodes[i].parent == (int32_t)node) {
                siblings++;
                next = a.nodes[i].token == argmax ? i : 0;
            }
        if (next == 0) {
            out->kind = siblings > 0 ? NEXT_CORRECTION : NEXT_BONUS;
            out->next = argmax;
            break;
        }
        out->path[n_path++] = next;
        if (a.logits_row[next] < 0) {
            out->kind = NEXT_CANDIDATE;
            out->next = argmax;
            break;
        }
        node = next;
    }
    out->n_path = n_path;
}

/* ---- sampling ---- */

static __device__ __forceinline__ const float *
logits_of(const struct verify_args *a, uint32_t node, uint32_t vocab)
{
    return a->store.head_logits + (size_t)a->logits_row[node] * vocab;
}

/* Node blockIdx.x: the law of its row, the sums of p and of the q it was drawn from. */
__global__ void
__launch_bounds__(ROW_THREADS) measure_nodes(struct verify_args a)
{
    const uint32_t vocab = a.model->vocab;
    __shared__ struct select_scratch scratch;
    const uint32_t node = blockIdx.x;
    const dist_t q = a.nodes[node].q;
    struct row_law law = {};
    if (a.logits_row[node] >= 0) {
        const float *const z = logits_of(&a, node, vocab);
        law = measure_law(z, vocab, &a.sampling, &scratch);
        law.total = mass_value(block_mass([=](uint32_t v) { return law_p(&law, z[v], v); }, vocab, &scratch.block));
    }
    if (q != DIST_NONE) {
        const uint32_t whole = a.store.dists_vocab;
        const struct stored_p drawn_from = {a.store.dists_p + (size_t)q * whole, NULL, 0};
        law.q_total = mass_value(block_mass(drawn_from, whole, &scratch.block));
    }
    if (threadIdx.x == 0)
        a.store.row_laws[node] = law;
}

/* The target's distribution at a node, not normalised, and what rejections leave of it. */
struct remainder {
    struct row_law law;
    const float *z;    /* (vocab) logits at the node */
    const float *rest; /* (vocab) once a candidate was rejected, before that NULL */
    __device__ __forceinline__ float
    operator()(uint32_t v) const
    {
        return rest != NULL ? rest[v] : law_p(&law, z[v], v);
    }
};

/* One node's children, tested one after the other; the same in all threads. */
struct test {
    struct remainder p;
    double total;      /* of p */
    float *spare;      /* (vocab) where the next remainder goes */
    float *other;      /* (vocab) and the one after it */
    token_t *rejected; /* (VERIFY_NODES), shared memory */
    uint32_t n_rejected;
};

/* 1 / total as a factor. */
static __device__ __forceinline__ float
normalizer(double total)
{
    return fminf((float)(1 / total), 3e38f);
}

/* Rejection of x: p <- norm(max(0, p - q)), q without the tokens rejected before; or, x not drawn from q (q_total 0),
 * p without x. Where that would leave nothing, p stays. */
static __device__ void
reject(struct test *t, uint32_t x, struct stored_p q, double q_total, uint32_t vocab, struct block_scratch *scratch)
{
    const struct remainder p = t->p;
    float *const rest = t->spare;
    struct mass left;
    if (q_total > 0) {
        const float p_scale = normalizer(t->total), q_scale = normalizer(q_total);
        left = block_mass(
            [=](uint32_t v) { /* products rounded alike, so that equals cancel */
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
    __syncthreads(); /* all of `rest` and `rejected` is there for everyone */
}

/* Tests node `child` with probability min(1, p(x)/q(x)). */
static __device__ bool
accept(struct test *t, const struct verify_args *a, uint32_t child, uint32_t vocab, const struct rng_key *key,
       struct block_scratch *scratch)
{
    const uint32_t x = (uint32_t)a->nodes[child].token;
    const dist_t dist = a->nodes[child].q;
    const uint32_t whole = a->store.dists_vocab; /* q's, vocab at least */
    const struct stored_p q = {dist == DIST_NONE ? NULL : a->store.dists_p + (size_t)dist * whole, t->rejected,
                               t->n_rejected};
    const double px = x < vocab ? (double)t->p(x) / t->total : 0, qx = dist == DIST_NONE ? 0 : (double)q(x);
    double q_total = 0;
    if (qx > 0)
        q_total = t->n_rejected == 0 ? a->store.row_laws[child].q_total : mass_value(block_mass(q, whole, scratch));
    if (rng_uniform(key) * (qx > 0 ? qx / q_total : 1) < px)
        return true;
    reject(t, x, q, q_total, vocab, scratch);
    return false;
}

__global__ void
__launch_bounds__(ROW_THREADS) walk_sampling(struct verify_args a)
{
    const uint32_t vocab = a.model->vocab;
    __shared__ struct block_scratch scratch;
    __shared__ token_t rejected[VERIFY_NODES];
    judge(&a);
    struct verdict *const out = a.verdict;
    struct rng_key key = {a.seed, a.seq, 0, 0, 0};
    struct test t = {{}, 1, a.store.verify_p, a.store.verify_p + vocab, rejected, 0};
    uint32_t n_path = 0, node = 0, kind = NEXT_CANDIDATE;
    token_t following = TOKEN_NONE;
    for (;;) {
        t.p.law = a.store.row_laws[node], t.p.z = logits_of(&a, node, vocab), t.p.rest = NULL;
        t.total = t.p.law.total;
        t.n_rejected = 0;
        uint32_t next = 0, siblings = 0;
        for (uint32_t i = node + 1; i < a.n && next == 0; i++) {
            if (a.nodes[i].parent != (int32_t)node)
                continue;
            key.pos = a.nodes[i].pos, key.purpose = RNG_ACCEPT, key.index = siblings++;
            next = accept(&t, &a, i, vocab, &key, &scratch) ? i : 0;
        }
        if (next == 0) {
            kind = siblings > 0 ? NEXT_CORRECTION : NEXT_BONUS;
            key.pos = a.nodes[node].pos + 1, key.index = 0;
            key.purpose = siblings > 0 ? RNG_RESIDUAL : RNG_BONUS;
            following = block_draw(t.p, vocab, &key, &scratch);
            break;
        }
        if (threadIdx.x == 0)
            out->path[n_path] = next;
        n_path++;
        if (a.logits_row[next] < 0) {
            following = a.nodes[next].token;
            break;
        }
        node = next;
    }
    if (threadIdx.x == 0) {
        out->n_path = n_path;
        out->next = following;
        out->kind = (enum next_kind)kind;
    }
}

cudaError_t
launch_verify(struct verify_args a, const struct dev_model *sizes, cudaStream_t stream)
{
    (void)sizes;
    if (!(a.sampling.temperature > 0))
        return launch(walk_greedy, 1, VERIFY_NODES, a, stream);
    const cudaError_t said = launch(measure_nodes, a.n, ROW_THREADS, a, stream);
    return said == cudaSuccess ? launch(walk_sampling, 1, ROW_THREADS, a, stream) : said;
}
