#include "kernels/cpu/sampling.h"

#include <math.h>

#include "base/rng.h"

token_t
sampling_argmax(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    float max = -INFINITY;
    for (uint32_t v = 0; v < n; v++)
        if (logits[v] > max) { /* never true for NaN */
            max = logits[v];
            best = v;
        }
    return (token_t)best;
}

/* ---- distributions ---- */

bool
sampling_filters(const struct sampling *s, uint32_t n)
{
    return s->temperature > 0 && ((s->top_k > 0 && s->top_k < n) || s->top_p < 1);
}

/* Returns whether token a precedes token b: the larger logit first, then the lower id. */
static bool
before(const float *logits, uint32_t a, uint32_t b)
{
    return logits[a] > logits[b] || (logits[a] >= logits[b] && a < b);
}

/* Restores the heap order[0..m), whose root comes first, after order[i] changed. */
static void
sift_down(const float *logits, uint32_t *order, uint32_t m, uint32_t i)
{
    const uint32_t moved = order[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= m)
            break;
        if (child + 1 < m && before(logits, order[child + 1], order[child]))
            child++;
        if (!before(logits, order[child], moved))
            break;
        order[i] = order[child];
        i = child;
    }
    order[i] = moved;
}

/* Takes the first token off the heap order[0..m) and leaves it in order[m-1]. */
static uint32_t
pop(const float *logits, uint32_t *order, uint32_t m)
{
    const uint32_t first = order[0];
    order[0] = order[m - 1];
    order[m - 1] = first;
    sift_down(logits, order, m - 1, 0);
    return first;
}

/* Applies top-k, then top-p, to unnormalised weights p (n) with the given sum: sets excluded tokens to zero and returns
 * the new sum. A heap yields the largest weights in order without sorting the whole vocabulary. */
static double
filter(const float *logits, uint32_t n, const struct sampling *s, double sum, float *p, uint32_t *order)
{
    uint32_t m = 0;
    for (uint32_t v = 0; v < n; v++)
        if (p[v] > 0)
            order[m++] = v;
    for (uint32_t i = m / 2; i-- > 0;)
        sift_down(logits, order, m, i);

    uint32_t k = m, popped = 0; /* the i-th token in order of probability is in order[m-1-i] once popped */
    if (s->top_k > 0 && s->top_k < m) {
        k = s->top_k;
        sum = 0;
        for (; popped < k; popped++)
            sum += (double)p[pop(logits, order, m - popped)];
    }
    double kept_sum = 0;
    uint32_t kept = 0;
    while (kept < k) {
        if (kept == popped) {
            pop(logits, order, m - popped);
            popped++;
        }
        kept_sum += (double)p[order[m - 1 - kept]];
        kept++;
        if (s->top_p < 1 && kept_sum >= (double)s->top_p * sum)
            break;
    }
    for (uint32_t i = 0; i < m - kept; i++)
        p[order[i]] = 0;
    return kept_sum;
}

void
sampling_dist(const float *logits, uint32_t n, const struct sampling *s, float *p, uint32_t *order)
{
    const token_t argmax = sampling_argmax(logits, n);
    const float max = logits[argmax];
    if (!(s->temperature > 0) || !(max > -INFINITY)) {
        for (uint32_t v = 0; v < n; v++)
            p[v] = 0;
        p[argmax] = 1;
        return;
    }
    double sum = 0;
    for (uint32_t v = 0; v < n; v++) {
        const float below = logits[v] < max ? logits[v] - max : 0;
        if (logits[v] >= max) /* also true if max is infinite */
            p[v] = 1;
        else
            p[v] = below < 0 && below > -INFINITY ? expf(below / s->temperature) : 0; /* NaN: 0 */
        sum += (double)p[v];
    }
    if (sampling_filters(s, n))
        sum = filter(logits, n, s, sum, p, order);
    for (uint32_t v = 0; v < n; v++)
        p[v] = (float)((double)p[v] / sum);
}

/* ---- draws ---- */

/* Returns p at v, or 0 if the token is listed in `without`. */
static double
without_at(const float *p, uint32_t v, const token_t *without, size_t n_without)
{
    if (!(p[v] > 0))
        return 0;
    for (size_t i = 0; i < n_without; i++)
        if (without[i] == (token_t)v)
            return 0;
    return (double)p[v];
}

static double
sum_without(const float *p, uint32_t n, const token_t *without, size_t n_without)
{
    double sum = 0;
    for (uint32_t v = 0; v < n; v++)
        sum += without_at(p, v, without, n_without);
    return sum;
}

token_t
sampling_likeliest(const float *p, uint32_t n, const token_t *without, size_t n_without)
{
    token_t best = TOKEN_NONE;
    float most = 0;
    for (uint32_t v = 0; v < n; v++) {
        if (!(p[v] > most))
            continue;
        size_t i = 0;
        while (i < n_without && without[i] != (token_t)v)
            i++;
        if (i == n_without) {
            best = (token_t)v;
            most = p[v];
        }
    }
    return best;
}

token_t
sampling_draw(const float *p, uint32_t n, const struct rng_key *key, const token_t *without, size_t n_without)
{
    const double target = rng_uniform(key) * sum_without(p, n, without, n_without);
    double sum = 0;
    token_t drawn = TOKEN_NONE;
    for (uint32_t v = 0; v < n; v++) {
        const double pv = without_at(p, v, without, n_without);
        if (!(pv > 0))
            continue;
        drawn = (token_t)v; /* used if rounding keeps the sum from reaching the target */
        sum += pv;
        if (sum > target)
            break;
    }
    return drawn;
}

struct overlap
sampling_overlap(const float *d, const float *c, uint32_t n, token_t x)
{
    double similarity = 0;
    for (uint32_t v = 0; v < n; v++)
        similarity += (double)(d[v] < c[v] ? d[v] : c[v]);
    const float acceptance = d[x] > 0 ? c[x] / d[x] : c[x];
    return (struct overlap){.similarity = (float)similarity, .acceptance = acceptance < 1 ? acceptance : 1};
}

/* ---- verification ---- */

/* The children of one node, tested one after the other. */
struct test {
    float *p; /* (vocab): the rest of the target's distribution, not normalised */
    uint32_t vocab, q_vocab;
    double sum; /* of p */
    token_t rejected[VERIFY_NODES];
    size_t n_rejected;
};

/* Rejection: p <- norm(max(0, p - q)), with q already without the tokens rejected before; p is unchanged if the result
 * is 0. */
static void
take_out(struct test *t, const float *q, double q_sum)
{
    double left = 0;
    for (uint32_t v = 0; v < t->vocab; v++) {
        const double d = (double)t->p[v] / t->sum - without_at(q, v, t->rejected, t->n_rejected) / q_sum;
        left += d > 0 ? d : 0;
    }
    if (!(left > 0))
        return;
    double sum = 0;
    for (uint32_t v = 0; v < t->vocab; v++) {
        const double d = (double)t->p[v] / t->sum - without_at(q, v, t->rejected, t->n_rejected) / q_sum;
        t->p[v] = d > 0 ? (float)(d / left) : 0;
        sum += (double)t->p[v];
    }
    t->sum = sum;
}

/* Tests candidate x, drawn from q (NULL: chosen deterministically), with probability min(1, p(x)/q(x)). */
static bool
accept(struct test *t, token_t x, const float *q, const struct rng_key *key)
{
    const bool known = (uint32_t)x < t->vocab;
    const double px = known ? (double)t->p[x] / t->sum : 0;
    double qx = 0, q_sum = 0;
    if (q != NULL) {
        q_sum = sum_without(q, t->q_vocab, t->rejected, t->n_rejected);
        qx = (uint32_t)x < t->q_vocab ? without_at(q, (uint32_t)x, t->rejected, t->n_rejected) : 0;
    }
    const bool drawn = q != NULL && qx > 0;
    if (rng_uniform(key) * (drawn ? qx / q_sum : 1) < px)
        return true;
    if (drawn) {
        take_out(t, q, q_sum);
    } else if (known && t->sum > (double)t->p[x]) {
        t->p[x] = 0;
        t->sum = sum_without(t->p, t->vocab, NULL, 0);
    }
    t->rejected[t->n_rejected++] = x;
    return false;
}

static bool
well_formed(const struct verify_req *r, uint32_t vocab, const float *const *logits)
{
    if (r->n < 1 || r->n > VERIFY_NODES || logits[0] == NULL)
        return false;
    for (size_t i = 1; i < r->n; i++) {
        const struct verify_node *node = &r->nodes[i];
        if (node->parent < 0 || (size_t)node->parent >= i || node->token < 0 ||
            (logits[i] != NULL && (uint32_t)node->token >= vocab))
            return false;
    }
    return true;
}

bool
sampling_verify(const struct verify_req *r, uint32_t vocab, const float *const *logits, const float *const *q,
                uint32_t q_vocab, float *p, uint32_t *order, struct verdict *out)
{
    if (!well_formed(r, vocab, logits))
        return false;
    const bool greedy = !(r->sampling.temperature > 0);
    struct test t = {.p = p, .vocab = vocab, .q_vocab = q_vocab};
    struct rng_key key = {.seed = r->seed};
    out->n_path = 0;
    for (uint32_t node = 0;;) {
        token_t argmax = TOKEN_NONE;
        if (greedy) {
            argmax = sampling_argmax(logits[node], vocab);
        } else {
            sampling_dist(logits[node], vocab, &r->sampling, p, order);
            t.sum = sum_without(p, vocab, NULL, 0);
            t.n_rejected = 0;
        }
        uint32_t next = 0, siblings = 0; /* node 0 has no parent */
        for (uint32_t i = node + 1; i < r->n && next == 0; i++) {
            if (r->nodes[i].parent != (int32_t)node)
                continue;
            key.pos = r->nodes[i].pos;
            key.purpose = RNG_ACCEPT;
            key.index = siblings++;
            if (greedy ? r->nodes[i].token == argmax : accept(&t, r->nodes[i].token, q[i], &key))
                next = i;
        }
        if (next == 0) {
            out->kind = siblings > 0 ? NEXT_CORRECTION : NEXT_BONUS;
            key.pos = r->nodes[node].pos + 1;
            key.purpose = siblings > 0 ? RNG_RESIDUAL : RNG_BONUS;
            key.index = 0;
            out->next = greedy ? argmax : sampling_draw(p, vocab, &key, NULL, 0);
            return true;
        }
        out->path[out->n_path++] = next;
        if (logits[next] == NULL) {
            out->kind = NEXT_CANDIDATE;
            out->next = r->nodes[next].token;
            return true;
        }
        node = next;
    }
}
