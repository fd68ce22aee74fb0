#include "tests/rigs/symbolic_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/sampling.h"
#include "kernels/request.h"

enum { MAX_VOCAB = 64, MAX_OUT = 4096 };

struct weights {
    uint32_t n_layers, vocab;
    int fuse;
    bool no_kv_cache;
    struct symbolic_calls calls;
};

struct delivery { /* a result that wait() copies to the caller */
    void *to, *from;
    size_t size;
};

struct dists {
    struct pool_size size;
    float *p; /* (n, vocab) */
};

struct kv_cache {
    struct weights *w;
    struct kv_cache_desc desc;
    uint64_t *kv;           /* (slots, L + 1) */
    uint64_t *hidden;       /* (ring, L + 1) */
    int *depth;             /* (ring) of the hidden states there; -1: not embedded */
    bool *fresh;            /* (ring) embedded since the last wait() */
    slot_t *tables;         /* (seqs, trunk) */
    uint32_t *known;        /* (seqs) number of entries set */
    struct pool_size dists; /* of desc.dists */
    struct delivery *deliveries;
    size_t n_deliveries;
    bool cancelled;
    const char *violation; /* the first violation of the contract, which wait() reports */
};

/* ---- hashes ---- */

static uint64_t
symbolic_mix(uint64_t a, uint64_t b)
{
    uint64_t z = (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 29)) * 0x94d049bb133111ebu;
    return z ^ (z >> 32);
}

static double
symbolic_unit(uint64_t h)
{
    return (double)(h >> 40) * 0x1p-24;
}

static uint64_t
symbolic_embedding(token_t t)
{
    return symbolic_mix(1, (uint64_t)t);
}

static uint64_t
symbolic_key(uint64_t hidden, uint32_t layer, size_t pos)
{
    return symbolic_mix(symbolic_mix(hidden, layer), pos);
}

static uint64_t
symbolic_mlp(uint64_t hidden, uint32_t layer)
{
    return symbolic_mix(hidden, 1000 + layer);
}

static void
symbolic_show(uint64_t hash, float *out)
{
    for (int i = 0; i < SYMBOLIC_WIDTH; i++)
        out[i] = (float)(hash >> (16 * i) & 0xffff);
}

static void
symbolic_logits(uint64_t hidden, uint32_t vocab, float *out)
{
    for (uint32_t v = 0; v < vocab; v++)
        out[v] = 8 * (float)symbolic_unit(symbolic_mix(hidden, v));
}

void
symbolic_hidden(const struct naive_token *path, size_t n, uint32_t depth, double *out)
{
    uint64_t *hidden = calloc(2 * n, sizeof *hidden);
    if (hidden == NULL)
        return;
    uint64_t *keys = hidden + n;
    for (size_t t = 0; t < n; t++)
        hidden[t] = symbolic_embedding(path[t].token);
    for (uint32_t l = 0; l <= depth; l++) {
        for (size_t t = 0; l > 0 && t < n; t++)
            keys[t] = symbolic_key(hidden[t], l, t);
        for (size_t t = 0; l > 0 && t < n; t++) {
            if (path[t].skip_attention == NULL || !path[t].skip_attention[l])
                for (size_t k = 0; k <= t; k++)
                    hidden[t] = symbolic_mix(hidden[t], keys[k]);
            if (path[t].skip_mlp == NULL || !path[t].skip_mlp[l])
                hidden[t] = symbolic_mlp(hidden[t], l);
        }
        float shown[SYMBOLIC_WIDTH];
        symbolic_show(hidden[n - 1], shown);
        for (int i = 0; i < SYMBOLIC_WIDTH; i++)
            out[l * SYMBOLIC_WIDTH + (uint32_t)i] = (double)shown[i];
    }
    free(hidden);
}

struct backend {
    char nothing;
};

/* ---- opening ---- */

static bool
open_backend(struct backend **out, const struct backend_options *o, struct err *e)
{
    (void)o;
    *out = calloc(1, sizeof **out);
    return *out != NULL || err_set(e, ERR_WORK, "no memory");
}

static void
close_backend(struct backend *b)
{
    free(b);
}

static const char *
describe(const struct backend *b)
{
    (void)b;
    return "hashes";
}

static bool
load(struct backend *b, const struct model_desc *d, progress_fn done, void *user, struct weights **out, struct err *e)
{
    (void)b;
    (void)done;
    (void)user;
    *out = NULL;
    if (d->vocab > MAX_VOCAB)
        return err_set(e, ERR_WORK, "hashes have at most %d tokens", MAX_VOCAB);
    struct weights *w = calloc(1, sizeof *w);
    if (w == NULL)
        return err_set(e, ERR_WORK, "no memory");
    w->n_layers = d->n_layers;
    w->vocab = d->vocab;
    w->fuse = -1;
    *out = w;
    return true;
}

static void
unload(struct weights *w)
{
    free(w);
}

static bool
dists(struct backend *b, uint32_t vocab, uint32_t n, struct dists **out, struct err *e)
{
    (void)b;
    struct dists *pool = *out = calloc(1, sizeof *pool);
    if (pool != NULL && (pool->p = calloc((size_t)n * vocab, sizeof *pool->p)) != NULL) {
        pool->size = (struct pool_size){.vocab = vocab, .n = n};
        return true;
    }
    free(pool);
    *out = NULL;
    return err_set(e, ERR_WORK, "no memory for distributions");
}

static void
drop_dists(struct dists *pool)
{
    free(pool->p);
    free(pool);
}

static void
drop(struct kv_cache *s)
{
    for (size_t i = 0; i < s->n_deliveries; i++)
        free(s->deliveries[i].from);
    free(s->kv);
    free(s->hidden);
    free(s->depth);
    free(s->fresh);
    free(s->tables);
    free(s->known);
    free(s->deliveries);
    free(s);
}

static bool
kv_cache(struct weights *w, const struct kv_cache_desc *d, struct kv_cache **out, struct err *e)
{
    *out = NULL;
    struct kv_cache *s = w->no_kv_cache ? NULL : calloc(1, sizeof *s);
    if (s == NULL)
        return err_set(e, ERR_WORK, "no memory for the store");
    s->w = w;
    s->desc = *d;
    s->kv = calloc((size_t)d->slots * (w->n_layers + 1), sizeof *s->kv);
    s->hidden = calloc((size_t)d->ring * (w->n_layers + 1), sizeof *s->hidden);
    s->depth = calloc(d->ring, sizeof *s->depth);
    s->fresh = calloc(d->ring, sizeof *s->fresh);
    s->tables = calloc((size_t)d->seqs * d->trunk, sizeof *s->tables);
    s->known = calloc(d->seqs, sizeof *s->known);
    s->dists = d->dists != NULL ? d->dists->size : (struct pool_size){0, 0};
    s->deliveries = calloc(MAX_OUT, sizeof *s->deliveries);
    if (s->kv == NULL || s->hidden == NULL || s->depth == NULL || s->fresh == NULL || s->tables == NULL ||
        s->known == NULL || s->deliveries == NULL) {
        drop(s);
        return err_set(e, ERR_WORK, "no memory for the store");
    }
    for (uint32_t i = 0; i < d->ring; i++)
        s->depth[i] = -1;
    *out = s;
    return true;
}

void
symbolic_cancel_before(struct weights *w, int layer)
{
    w->fuse = layer;
}

void
symbolic_fail_kv_cache(struct weights *w, bool fail)
{
    w->no_kv_cache = fail;
}

struct symbolic_calls
symbolic_calls(const struct weights *w)
{
    return w->calls;
}

/* ---- the queue: requests run at once, wait() delivers their results ---- */

static void
symbolic_violate(struct kv_cache *s, const char *what)
{
    if (s->violation == NULL)
        s->violation = what;
}

static bool
symbolic_deliver(struct kv_cache *s, void *to, const void *from, size_t size)
{
    void *copy = s->n_deliveries < MAX_OUT ? malloc(size) : NULL;
    if (copy == NULL)
        return false;
    memcpy(copy, from, size);
    s->deliveries[s->n_deliveries++] = (struct delivery){to, copy, size};
    return true;
}

/* ---- heads ---- */

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

static struct prediction
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
    for (int i = 0; i < PREDICTION_RANKS; i++)
        g.top[i] = i == 0 ? g.token : TOKEN_NONE;
    g.top_p[0] = g.confidence;
    return g;
}

static bool
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

static bool
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

static bool
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

static bool
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

static bool
symbolic_verify(struct kv_cache *s, const struct verify_req *requests, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!verify_one(s, &requests[i]))
            return false;
    return true;
}

static bool
symbolic_read_logits(struct kv_cache *s, uint32_t ring, uint32_t layer, float *out)
{
    uint64_t hidden;
    float logits[MAX_VOCAB];
    if (!head_at(s, ring, layer, 0, &hidden))
        return false;
    symbolic_logits(hidden, s->w->vocab, logits);
    return symbolic_deliver(s, out, logits, s->w->vocab * sizeof *logits);
}

static bool
symbolic_read_hidden(struct kv_cache *s, uint32_t ring, uint32_t layer, float *out)
{
    uint64_t hidden;
    float shown[SYMBOLIC_WIDTH];
    if (!head_at(s, ring, layer, 0, &hidden))
        return false;
    symbolic_show(hidden, shown);
    return symbolic_deliver(s, out, shown, sizeof shown);
}

static bool
symbolic_read_dist(struct kv_cache *s, dist_t d, float *out)
{
    return d < s->dists.n && symbolic_deliver(s, out, dist_at(s, d), s->dists.vocab * sizeof *out);
}

/* ---- forward passes ---- */

/* Returns whether the forward pass is cancelled. Called before every layer. */
static bool
cancelled(struct kv_cache *s)
{
    if (s->w->fuse >= 0 && s->w->fuse-- == 0)
        s->cancelled = true;
    if (atomic_load(s->desc.cancel))
        s->cancelled = true;
    return s->cancelled;
}

static bool
wait_for(struct kv_cache *s, struct err *e)
{
    s->w->calls.waits++;
    const bool good = !s->cancelled && s->violation == NULL;
    for (size_t i = 0; i < s->n_deliveries; i++) {
        if (good)
            memcpy(s->deliveries[i].to, s->deliveries[i].from, s->deliveries[i].size);
        free(s->deliveries[i].from);
    }
    s->n_deliveries = 0;
    for (uint32_t i = 0; i < s->desc.ring; i++) {
        if (s->cancelled && s->fresh[i])
            s->depth[i] = -1;
        s->fresh[i] = false;
    }
    for (uint32_t i = 0; s->cancelled && i < s->desc.seqs; i++)
        s->known[i] = 0;
    if (s->violation != NULL)
        return err_set(e, ERR_WORK, "the contract is broken: %s", s->violation);
    if (s->cancelled) {
        s->cancelled = false;
        return err_set(e, ERR_CANCELLED, "cancelled");
    }
    return true;
}

static bool
trunk(struct kv_cache *s, seq_t seq, uint32_t first, const slot_t *slots, size_t n)
{
    if (seq >= s->desc.seqs || first > s->known[seq] || first + n > s->desc.trunk)
        return false;
    s->w->calls.trunks++;
    s->w->calls.trunk_entries += (uint32_t)n;
    memcpy(s->tables + (size_t)seq * s->desc.trunk + first, slots, n * sizeof *slots);
    s->known[seq] = first + (uint32_t)n;
    return true;
}

static bool
embed(struct kv_cache *s, const struct row *rows, size_t n)
{
    s->w->calls.embeds++;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].ring >= s->desc.ring || rows[i].token < 0 || (uint32_t)rows[i].token >= s->w->vocab)
            return false;
        s->hidden[(size_t)rows[i].ring * (s->w->n_layers + 1)] = symbolic_embedding(rows[i].token);
        s->depth[rows[i].ring] = 0;
        s->fresh[rows[i].ring] = true;
    }
    return true;
}

static bool
check_forward(struct kv_cache *s, const struct forward_pass *w)
{
    if (w->n < 1 || w->n > s->desc.max_rows || w->to > s->w->n_layers)
        return false;
    for (size_t i = 0; i < w->n; i++) {
        const struct row *r = &w->rows[i];
        if (r->slot >= s->desc.slots || r->ring >= s->desc.ring || r->seq >= s->desc.seqs || r->n_tail < 1 ||
            r->tail + r->n_tail > w->n_tails || w->tails[r->tail + r->n_tail - 1] != r->slot || r->from >= w->to)
            return false;
        if (r->n_trunk > s->known[r->seq])
            symbolic_violate(s, "a row attends to trunk entries that were never sent");
        if (s->depth[r->ring] != (int)r->from)
            symbolic_violate(s, "a row joins at a layer where its hidden state is not");
    }
    return true;
}

static void
run_layer(struct kv_cache *s, const struct forward_pass *w, uint32_t l)
{
    const uint32_t stride = s->w->n_layers + 1;
    const bool attention = w->skip_attention == NULL || !w->skip_attention[l];
    for (size_t i = 0; i < w->n && attention; i++) {
        const struct row *r = &w->rows[i];
        if (r->from < l)
            s->kv[(size_t)r->slot * stride + l] =
                symbolic_key(s->hidden[(size_t)r->ring * stride + l - 1], l, r->n_trunk + r->n_tail - 1);
    }
    for (size_t i = 0; i < w->n; i++) {
        const struct row *r = &w->rows[i];
        if (r->from >= l)
            continue;
        uint64_t h = s->hidden[(size_t)r->ring * stride + l - 1];
        for (uint32_t t = 0; t < r->n_trunk && attention; t++)
            h = symbolic_mix(h, s->kv[(size_t)s->tables[(size_t)r->seq * s->desc.trunk + t] * stride + l]);
        for (uint32_t t = 0; t < r->n_tail && attention; t++)
            h = symbolic_mix(h, s->kv[(size_t)w->tails[r->tail + t] * stride + l]);
        if (w->skip_mlp == NULL || !w->skip_mlp[l])
            h = symbolic_mlp(h, l);
        s->hidden[(size_t)r->ring * stride + l] = h;
    }
}

static void
reach(struct kv_cache *s, const struct forward_pass *w, uint32_t depth)
{
    for (size_t i = 0; i < w->n && !s->cancelled; i++)
        if (w->rows[i].from < depth)
            s->depth[w->rows[i].ring] = (int)depth;
}

static bool
step(struct kv_cache *s, const struct forward_pass *w)
{
    if (!check_forward(s, w))
        return false;
    for (uint32_t l = 1; l <= w->to; l++) {
        if (cancelled(s))
            return true;
        run_layer(s, w, l);
    }
    reach(s, w, w->to);
    return true;
}

static bool
until(struct kv_cache *s, const struct forward_pass *w, const struct exit_rule *rule, struct exit_result *out)
{
    if (!check_forward(s, w))
        return false;
    const struct row *last = &w->rows[w->n - 1];
    struct exit_result r = {.prediction.token = TOKEN_NONE, .probed = out->probed};
    struct prediction none = {.token = TOKEN_NONE};
    for (uint32_t l = 0; l <= s->w->n_layers && r.probed != NULL; l++)
        if (!symbolic_deliver(s, &r.probed[l], &none, sizeof none))
            return false;
    for (uint32_t l = 1; l <= w->to && !r.exited; l++) {
        if (cancelled(s))
            return true;
        run_layer(s, w, l);
        r.depth = l;
        if (l <= last->from || rule->threshold[l] > 1)
            continue;
        r.prediction =
            symbolic_prediction_of(s, s->hidden[(size_t)last->ring * (s->w->n_layers + 1) + l], rule->temperature[l]);
        r.probes++;
        r.exited = r.prediction.annealed >= rule->threshold[l];
        if (r.probed != NULL && !symbolic_deliver(s, &r.probed[l], &r.prediction, sizeof r.prediction))
            return false;
    }
    reach(s, w, r.depth);
    return symbolic_deliver(s, out, &r, sizeof r);
}

const struct backend_ops symbolic_backend = {.name = "symbolic",
                                             .abi = BACKEND_ABI,
                                             .open = open_backend,
                                             .close = close_backend,
                                             .describe = describe,
                                             .load = load,
                                             .unload = unload,
                                             .dists = dists,
                                             .drop_dists = drop_dists,
                                             .kv_cache = kv_cache,
                                             .drop = drop,
                                             .trunk = trunk,
                                             .embed = embed,
                                             .step = step,
                                             .until = until,
                                             .predict = symbolic_predict,
                                             .dist = symbolic_dist,
                                             .draw = symbolic_draw,
                                             .overlap = symbolic_overlap,
                                             .verify = symbolic_verify,
                                             .read_logits = symbolic_read_logits,
                                             .read_hidden = symbolic_read_hidden,
                                             .read_dist = symbolic_read_dist,
                                             .wait = wait_for};
