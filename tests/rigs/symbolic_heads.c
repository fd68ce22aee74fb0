/* The symbolic backend's heads: predictions, distributions, draws, verification, and what can be read out. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/sampling.h"
#include "tests/rigs/symbolic_internal.h"

static bool
head_at(struct kv_cache *s, uint32_t ring, uint32_t layer, uint32_t head, uint64_t *hidden)
{
    if (ring >= s->desc.ring || layer > s->w->n_layers || head != 0)
        return false;
    if (!s->cancelled && s->depth[ring] < (int)layer)
        symbolic_violate(s, "a head looks at a layer that was not run");
    *hidden = s->hidden[(size_t)ring * (s->w->n_layers + 1) + layer];
    return true;
}

struct prediction
symbolic_prediction_of(struct kv_cache *s, uint64_t hidden, float temperature)
{
    float logits[MAX_VOCAB];
    symbolic_logits(hidden, s->w->vocab, logits);
    uint32_t bits;
    memcpy(&bits, &temperature, sizeof bits);
    struct prediction g = {.token = sampling_argmax(logits, s->w->vocab),
                           .confidence = (float)symbolic_unit(hidden),
                           .annealed = (float)symbolic_unit(symbolic_mix(hidden, bits)),
                           .entropy = (float)symbolic_unit(symbolic_mix(hidden, 7)),
                           .kl_final = NAN,
                           .rank_final = -1};
    for (int i = 0; i < PREDICTION_TOP; i++)
        g.top[i] = i == 0 ? g.token : TOKEN_NONE;
    g.top_p[0] = g.confidence;
    return g;
}

bool
symbolic_predict(struct kv_cache *s, const struct probe *probes, size_t n, struct prediction *out)
{
    if (n < 1 || n > s->desc.max_probes)
        return false;
    for (size_t i = 0; i < n; i++) {
        uint64_t hidden, final;
        if (!head_at(s, probes[i].ring, probes[i].layer, probes[i].head, &hidden))
            return false;
        struct prediction g = symbolic_prediction_of(s, hidden, probes[i].temperature);
        if (probes[i].versus_final) {
            if (!head_at(s, probes[i].ring, s->w->n_layers, 0, &final))
                return false;
            g.kl_final = (float)symbolic_unit(symbolic_mix(hidden, final));
            g.rank_final = hidden == final ? 0 : 1;
        }
        if (!symbolic_deliver(s, &out[i], &g, sizeof g))
            return false;
    }
    return true;
}

static float *
dist_at(struct kv_cache *s, dist_t d)
{
    return s->desc.dists->p + (size_t)d * s->dists.vocab;
}

bool
symbolic_dist(struct kv_cache *s, const struct dist_req *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t hidden;
        float logits[MAX_VOCAB];
        uint32_t order[MAX_VOCAB];
        if (r[i].out >= s->dists.n || !head_at(s, r[i].ring, r[i].layer, r[i].head, &hidden))
            return false;
        symbolic_logits(hidden, s->w->vocab, logits);
        float *p = dist_at(s, r[i].out);
        sampling_dist(logits, s->w->vocab, &r[i].sampling, p, order);
        memset(p + s->w->vocab, 0, (s->dists.vocab - s->w->vocab) * sizeof *p);
    }
    return true;
}

bool
symbolic_draw(struct kv_cache *s, const struct draw_req *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (r[i].from >= s->dists.n)
            return false;
        const token_t t = sampling_draw(dist_at(s, r[i].from), s->dists.vocab, &r[i].key, r[i].without, r[i].n_without);
        if (!symbolic_deliver(s, r[i].out, &t, sizeof t))
            return false;
    }
    return true;
}

bool
symbolic_overlap(struct kv_cache *s, const struct overlap_req *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (r[i].d >= s->dists.n || r[i].c >= s->dists.n || r[i].token < 0 || (uint32_t)r[i].token >= s->dists.vocab)
            return false;
        const struct overlap o = sampling_overlap(dist_at(s, r[i].d), dist_at(s, r[i].c), s->dists.vocab, r[i].token);
        if (!symbolic_deliver(s, r[i].out, &o, sizeof o))
            return false;
    }
    return true;
}

static bool
verify_one(struct kv_cache *s, const struct verify_req *r)
{
    static const struct verdict empty;
    struct verdict v = empty;
    const float *logits[VERIFY_NODES] = {NULL}, *q[VERIFY_NODES] = {NULL};
    float target[VERIFY_NODES][MAX_VOCAB], p[MAX_VOCAB];
    uint32_t order[MAX_VOCAB];
    if (r->n < 1 || r->n > VERIFY_NODES)
        return false;
    for (size_t i = 0; i < r->n; i++) {
        v.judged[i].token = TOKEN_NONE;
        if (r->nodes[i].q != DIST_NONE)
            q[i] = dist_at(s, r->nodes[i].q);
        if (r->nodes[i].ring == RING_NONE)
            continue;
        uint64_t hidden;
        if (!head_at(s, r->nodes[i].ring, s->w->n_layers, 0, &hidden))
            return false;
        symbolic_logits(hidden, s->w->vocab, target[i]);
        logits[i] = target[i];
        v.judged[i] = symbolic_prediction_of(s, hidden, 1);
    }
    return sampling_verify(r, s->w->vocab, logits, q, s->dists.vocab, p, order, &v) &&
           symbolic_deliver(s, r->out, &v, sizeof v);
}

bool
symbolic_verify(struct kv_cache *s, const struct verify_req *requests, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!verify_one(s, &requests[i]))
            return false;
    return true;
}

bool
symbolic_read_logits(struct kv_cache *s, uint32_t ring, uint32_t layer, float *out)
{
    uint64_t hidden;
    float logits[MAX_VOCAB];
    if (!head_at(s, ring, layer, 0, &hidden))
        return false;
    symbolic_logits(hidden, s->w->vocab, logits);
    return symbolic_deliver(s, out, logits, s->w->vocab * sizeof *logits);
}

bool
symbolic_read_hidden(struct kv_cache *s, uint32_t ring, uint32_t layer, float *out)
{
    uint64_t hidden;
    float shown[SYMBOLIC_WIDTH];
    if (!head_at(s, ring, layer, 0, &hidden))
        return false;
    symbolic_show(hidden, shown);
    return symbolic_deliver(s, out, shown, sizeof shown);
}

bool
symbolic_read_dist(struct kv_cache *s, dist_t d, float *out)
{
    return d < s->dists.n && symbolic_deliver(s, out, dist_at(s, d), s->dists.vocab * sizeof *out);
}
