/* The CPU backend. Requests are carried out immediately; results are staged in the KV cache until wait(). */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/platform.h"
#include "kernels/cpu/draft_rows.h"
#include "kernels/cpu/forward.h"
#include "kernels/cpu/head.h"
#include "kernels/cpu/sampling.h"
#include "kernels/cpu/weights.h"
#include "kernels/team.h"

#define MAX_THREADS 256
#define SAMPLING    16 /* cost of a distribution per token, in multiplications */

static bool
cpu_open(struct backend **out, const struct backend_options *options, struct err *err)
{
    *out = NULL;
    const struct cpu_isa *isa = cpu_isa_choose(options->isa, err);
    if (isa == NULL)
        return false;
    struct backend *b = calloc(1, sizeof *b);
    if (b == NULL)
        return err_set(err, ERR_WORK, "not enough memory to start");
    b->isa = isa;
    b->exact = options->exact;
    b->threads = options->threads != 0 ? options->threads : (uint32_t)platform_usable_processors();
    if (b->threads > MAX_THREADS)
        b->threads = MAX_THREADS;
    b->team = team_open(b->threads, options->threads != 0);
    if (b->team == NULL) {
        free(b);
        return err_set(err, ERR_WORK, "not enough memory to start");
    }
    snprintf(b->text, sizeof b->text, "%s x%" PRIu32 "%s", isa->name, b->threads, b->exact ? ", exact" : "");
    *out = b;
    return true;
}

static void
cpu_close(struct backend *b)
{
    team_close(b->team);
    free(b);
}

static const char *
cpu_describe(const struct backend *b)
{
    return b->text;
}

static uint32_t
cpu_threads(const struct backend *b)
{
    return team_lasting_size(b->team);
}

/* ---- requests ---- */

static bool
cpu_trunk(struct kv_cache *s, seq_t seq, uint32_t first, const slot_t *slots, size_t n)
{
    if (!request_trunk(s->limits, seq, first, slots, n))
        return false;
    memcpy(s->trunk + (size_t)seq * s->desc.trunk + first, slots, n * sizeof *slots);
    return true;
}

/* Positions after the last learned one use the last one: contexts are never that long. */
static void
add_position(const struct model_desc *d, uint32_t position, float *h)
{
    const struct tensor *t = &d->positions;
    const size_t row = position < t->rows ? position : t->rows - 1;
    const float *at = (const float *)t->data + row * d->width;
    for (uint32_t k = 0; k < d->width; k++)
        h[k] += at[k];
}

static bool
cpu_embed(struct kv_cache *s, const struct row *rows, size_t n)
{
    const struct model_desc *d = &s->weights->desc;
    if (!request_embed(s->limits, rows, n))
        return false;
    for (size_t i = 0; i < n; i++) {
        float *h = cpu_kv_cache_hidden(s, rows[i].ring, 0);
        recurrent_place(s, rows[i].slot, rows[i].ring);
        embed_token(s, rows[i].token, h);
        if (tensor_present(&d->positions))
            add_position(d, rows[i].n_trunk + rows[i].n_tail - 1, h);
        if (s->weights->embedding_norm.weight != NULL)
            form_norm(s->weights, &s->weights->embedding_norm, h, d->width, h);
        repack_embedded(s->weights);
    }
    return true;
}

static bool
cpu_feed(struct kv_cache *s, const struct row *rows, size_t n, const float *features, const uint32_t *before)
{
    if (!request_feed(s->limits, rows, n, features, before))
        return false;
    forward_feed(s, rows, n, features, before);
    return true;
}

/* Stages a result of the request; from NULL: zeros. */
static void
stage(struct kv_cache *s, void *out, const void *from, size_t bytes)
{
    void *staged = out != NULL ? cpu_kv_cache_stage(s, out, bytes) : NULL;
    if (staged != NULL && from != NULL)
        memcpy(staged, from, bytes);
}

/* Runs a forward pass; writes the experts used and the routes if requested. */
static void
run_forward(struct kv_cache *s, const struct forward_pass *w, const struct exit_watch *watch)
{
    struct moe_table *t = &s->moe;
    const size_t layers = s->weights->desc.n_layers + 1u, n = w->n * layers * s->weights->desc.form.experts.used;
    t->wants_routes = w->routes != NULL && n > 0;
    if (t->touched != NULL)
        memset(t->touched, 0, layers * sizeof *t->touched);
    for (size_t i = 0; t->wants_routes && i < n; i++)
        t->routes_out[i] = (struct route){.expert = EXPERT_NONE};
    forward_run(s, w, watch);
    stage(s, w->touched, t->touched, layers * sizeof *t->touched);
    if (t->wants_routes)
        stage(s, w->routes, t->routes_out, n * sizeof *t->routes_out);
}

static bool
cpu_step(struct kv_cache *s, const struct forward_pass *w)
{
    if (!request_forward(s->limits, w) || !recurrent_continues(s, w->rows, w->n))
        return false;
    if (!cpu_kv_cache_stopped(s))
        run_forward(s, w, NULL);
    return true;
}

static bool
cpu_until(struct kv_cache *s, const struct forward_pass *w, const struct exit_rule *rule, struct exit_result *out)
{
    if (!request_until(s->limits, w, rule) || !recurrent_continues(s, w->rows, w->n))
        return false;
    if (cpu_kv_cache_stopped(s))
        return true;
    struct exit_result result = {
        .depth = w->rows[w->n - 1].from, .prediction = {.token = TOKEN_NONE}, .probed = out->probed};
    struct prediction *probed = NULL;
    if (out->probed != NULL) {
        probed = cpu_kv_cache_stage(s, out->probed, (s->weights->desc.n_layers + 1) * sizeof *probed);
        if (probed == NULL)
            return true;
        for (uint32_t l = 0; l <= s->weights->desc.n_layers; l++)
            probed[l].token = TOKEN_NONE;
    }
    run_forward(s, w, &(struct exit_watch){.rule = rule, .out = &result, .probed = probed});
    stage(s, out, &result, sizeof result);
    return true;
}

static bool
cpu_predict(struct kv_cache *s, const struct probe *probes, size_t n, struct prediction *out)
{
    if (!request_predict(s->limits, probes, n))
        return false;
    for (size_t i = 0; i < n && probes[0].kept; i++)
        if (head_kept(s, probes[i].ring) == NULL)
            return false;
    if (n == 0 || cpu_kv_cache_stopped(s))
        return true;
    struct prediction *staged = cpu_kv_cache_stage(s, out, n * sizeof *out);
    if (staged != NULL)
        head_predict(s, probes, n, staged);
    return true;
}

/* ---- distributions ---- */

static void
add_row(struct head_table *t, uint32_t ring, uint32_t layer, uint32_t set, enum head_choice head)
{
    t->rows[t->n++] = (struct head_row){
        .ring = ring, .layer = layer, .set = set, .head = head, .temperature = 1, .final = -1, .request = -1};
}

/* Computes the distributions for requests whose rows are in the head's table. */
static void
make_dists(const struct worker *w, const void *requests, struct range rows)
{
    const struct kv_cache *s = w->kv_cache;
    const struct drafter_desc *drafter = s->weights->desc.drafter;
    const token_t *tokens = drafter != NULL ? drafter->tokens : NULL;
    for (size_t i = rows.first; i < rows.last; i++) {
        const struct dist_req *r = (const struct dist_req *)requests + i;
        const bool named = tokens != NULL || r->set > 0;
        float *p = cpu_dists_at(s->dists, r->out), *of_outputs = named ? w->own->p : p;
        float *z = s->head.logits + i * head_stride(s);
        const struct outputs o = draft_outputs(s, r->set);
        for (size_t k = o.base; k < o.recent && k < o.end; k++)
            z[k] = -INFINITY; /* no outputs */
        sampling_dist(z, (uint32_t)o.end, &r->sampling, of_outputs, w->own->order);
        const size_t written = named ? 0 : o.end;
        memset(p + written, 0, (s->dists->size.vocab - written) * sizeof *p);
        for (size_t k = 0; named && k < o.end; k++)
            if (k < o.base || k >= o.recent)
                p[r->set > 0 ? draft_token(s, r->set, k) : tokens[k]] = of_outputs[k];
    }
}

static bool
cpu_dist(struct kv_cache *s, const struct dist_req *requests, size_t n)
{
    if (!request_dist(s->limits, requests, n))
        return false;
    for (size_t i = 0; i < n && requests[0].kept; i++)
        if (head_kept(s, requests[i].ring) == NULL)
            return false;
    for (size_t first = 0; first < n; first += HEAD_TILE) {
        if (cpu_kv_cache_stopped(s))
            return true;
        const size_t part = n - first < HEAD_TILE ? n - first : HEAD_TILE;
        s->head.n = s->head.ready = 0;
        for (size_t i = 0; i < part; i++) {
            const struct dist_req *r = &requests[first + i];
            add_row(&s->head, r->ring, r->layer, r->set, r->head);
            s->head.rows[i].kept = r->kept;
            s->head.rows[i].before = r->before;
        }
        head_run(s, false);
        worker_for(s, work_of_rows(part, SAMPLING * s->weights->desc.vocab), make_dists, requests + first);
    }
    return true;
}

static bool
cpu_draw(struct kv_cache *s, const struct draw_req *requests, size_t n)
{
    const uint32_t vocab = s->limits.dists.vocab;
    if (!request_draw(s->limits, requests, n))
        return false;
    for (size_t i = 0; i < n && !s->cancelled && !s->failed; i++) {
        const struct draw_req *r = &requests[i];
        const float *p = cpu_dists_at(s->dists, r->from);
        token_t *staged = cpu_kv_cache_stage(s, r->out, sizeof *staged);
        if (staged != NULL)
            *staged = r->likeliest ? sampling_likeliest(p, vocab, r->without, r->n_without)
                                   : sampling_draw(p, vocab, &r->key, r->without, r->n_without);
    }
    return true;
}

static bool
cpu_overlap(struct kv_cache *s, const struct overlap_req *requests, size_t n)
{
    if (!request_overlap(s->limits, requests, n))
        return false;
    for (size_t i = 0; i < n && !s->cancelled && !s->failed; i++) {
        const struct overlap_req *r = &requests[i];
        struct overlap *staged = cpu_kv_cache_stage(s, r->out, sizeof *staged);
        if (staged != NULL)
            *staged = sampling_overlap(cpu_dists_at(s->dists, r->d), cpu_dists_at(s->dists, r->c),
                                       s->limits.dists.vocab, r->token);
    }
    return true;
}

/* ---- verification ---- */

/* Walks a round whose rows' logits begin at row `at` of the head's table. */
static void
walk(const struct kv_cache *s, const struct verify_req *r, size_t at, struct worker_buffers *b, struct verdict *out)
{
    const struct head_table *t = &s->head;
    const uint32_t vocab = s->weights->desc.vocab;
    const size_t stride = head_stride(s);
    const float *logits[VERIFY_NODES], *q[VERIFY_NODES];
    for (size_t i = 0; i < VERIFY_NODES; i++)
        out->judged[i].token = TOKEN_NONE;
    for (size_t i = 0; i < r->n; i++) {
        const struct verify_node *node = &r->nodes[i];
        q[i] = node->q == DIST_NONE ? NULL : cpu_dists_at(s->dists, node->q);
        logits[i] = NULL;
        if (node->ring != RING_NONE) {
            logits[i] = t->logits + at * stride;
            out->judged[i] = head_named(s, 0, &t->predictions[at++]);
        }
    }
    (void)sampling_verify(r, vocab, logits, q, s->limits.dists.vocab, b->p, b->order,
                          out); /* request_verify() has checked the request */
}

/* Rounds whose rows fit the head's table: at[i] is the first row of round i, and delivery `first` + i its verdict. */
struct rounds {
    const struct verify_req *requests;
    const size_t *at;
    size_t first;
};

static void
walk_rounds(const struct worker *w, const void *arg, struct range part)
{
    const struct rounds *r = arg;
    const struct kv_cache *s = w->kv_cache;
    for (size_t i = part.first; i < part.last; i++) {
        void *staged = s->staged + s->deliveries[r->first + i].at;
        walk(s, &r->requests[i], r->at[i], w->own, staged);
    }
}

static void
verify_part(struct kv_cache *s, const struct verify_req *requests, size_t n, const size_t *at)
{
    const uint32_t depth = s->weights->desc.n_layers;
    const struct rounds rounds = {requests, at, s->n_deliveries};
    s->head.n = s->head.ready = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < requests[i].n; j++)
            if (requests[i].nodes[j].ring != RING_NONE)
                add_row(&s->head, requests[i].nodes[j].ring, depth, 0, USE_LENS);
    head_run(s, true);
    for (size_t i = 0; i < n && !s->failed; i++)
        (void)cpu_kv_cache_stage(s, requests[i].out, sizeof(struct verdict));
    if (!s->failed)
        worker_for(s, work_of_rows(n, SAMPLING * s->weights->desc.vocab), walk_rounds, &rounds);
}

static size_t
rows_of(const struct verify_req *r)
{
    size_t rows = 0;
    for (size_t i = 0; i < r->n; i++)
        rows += r->nodes[i].ring != RING_NONE;
    return rows;
}

static bool
cpu_verify(struct kv_cache *s, const struct verify_req *requests, size_t n)
{
    if (!request_verify(s->limits, requests, n))
        return false;
    for (size_t first = 0, last; first < n && !cpu_kv_cache_stopped(s); first = last) {
        size_t at[HEAD_TILE], rows = 0; /* a round has at least one row */
        for (last = first; last < n; last++) {
            const size_t more = rows_of(&requests[last]);
            if (rows + more > HEAD_TILE)
                break;
            at[last - first] = rows;
            rows += more;
        }
        verify_part(s, requests + first, last - first, at);
    }
    return true;
}

/* ---- for tests ---- */

static bool
cpu_read_logits(struct kv_cache *s, uint32_t ring, uint32_t layer, float *out)
{
    if (!request_read(s->limits, ring, layer))
        return false;
    if (cpu_kv_cache_stopped(s))
        return true;
    s->head.n = s->head.ready = 0;
    add_row(&s->head, ring, layer, 0, USE_LENS);
    head_run(s, false);
    stage(s, out, s->head.logits, s->weights->head.rows * sizeof *out);
    return true;
}

static bool
cpu_read_hidden(struct kv_cache *s, uint32_t ring, uint32_t layer, float *out)
{
    if (!request_read(s->limits, ring, layer))
        return false;
    if (!s->cancelled && !s->failed)
        stage(s, out, cpu_kv_cache_hidden(s, ring, layer), s->weights->desc.width * sizeof *out);
    return true;
}

static bool
cpu_read_dist(struct kv_cache *s, dist_t dist, float *out)
{
    if (!request_read_dist(s->limits, dist))
        return false;
    if (!s->cancelled && !s->failed)
        stage(s, out, cpu_dists_at(s->dists, dist), s->limits.dists.vocab * sizeof *out);
    return true;
}

const struct backend_ops cpu_backend = {
    .name = "cpu",
    .abi = BACKEND_ABI,
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .threads = cpu_threads,
    .load = cpu_weights_load,
    .unload = cpu_weights_unload,
    .repack = cpu_weights_repack,
    .heads = cpu_weights_heads,
    .dists = cpu_dists_open,
    .drop_dists = cpu_dists_close,
    .kv_cache = cpu_kv_cache_open,
    .drop = cpu_kv_cache_close,
    .trunk = cpu_trunk,
    .advance = cpu_state_advance,
    .embed = cpu_embed,
    .feed = cpu_feed,
    .draft_set = cpu_draft_set,
    .step = cpu_step,
    .until = cpu_until,
    .predict = cpu_predict,
    .dist = cpu_dist,
    .draw = cpu_draw,
    .overlap = cpu_overlap,
    .verify = cpu_verify,
    .read_logits = cpu_read_logits,
    .read_hidden = cpu_read_hidden,
    .read_dist = cpu_read_dist,
    .wait = cpu_kv_cache_deliver,
};
