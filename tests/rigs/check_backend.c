#include "tests/rigs/check_backend.h"

#include <pthread.h>

#include "kernels/cpu/kv_cache.h"
#include "kernels/cpu/weights.h"
#include "tests/rigs/check_internal.h"

/* The struct kv_cache that callers see. */
struct check {
    struct kv_cache *inner;
    struct kv_cache_desc desc;
    struct request_limits limits;
    struct ledger *ledger;
    struct pool *pool;   /* or NULL */
    struct err queueing; /* the first error in queueing since the last wait() */

    pthread_t worker;
    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t more, idle;
    struct command *first, *last; /* not yet carried out */
    struct command *finished, *finished_last;
    bool busy, quit;
    struct err err; /* the first error in executing requests since the last wait() */
};

static struct check *
check_of(struct kv_cache *s)
{
    return (struct check *)(void *)s;
}

/* ---- the worker ---- */

static bool
run(struct check *c, struct command *m, struct err *err)
{
    const struct backend_ops *cpu = &cpu_backend;
    struct kv_cache *s = c->inner;
    switch (m->kind) {
    case TRUNK:
        ledger_trunk(c->ledger, m->seq, m->first, m->slots, m->n);
        return cpu->trunk(s, m->seq, m->first, m->slots, m->n);
    case ADVANCE: return cpu->advance(s, m->first, m->seq, m->slots, m->n);
    case EMBED: ledger_embedded(c->ledger, m->rows, m->n); return cpu->embed(s, m->rows, m->n);
    case STEP: return ledger_forward(c->ledger, &m->forward, err) && cpu->step(s, &m->forward);
    case UNTIL: return ledger_forward(c->ledger, &m->forward, err) && cpu->until(s, &m->forward, &m->rule, m->result);
    case PREDICT: return ledger_predict(c->ledger, m->probes, m->n, err) && cpu->predict(s, m->probes, m->n, m->result);
    case DIST: return ledger_dist(c->ledger, m->dists, m->n, err) && cpu->dist(s, m->dists, m->n);
    case DRAW: return ledger_draw(c->ledger, m->draws, m->n, err) && cpu->draw(s, m->draws, m->n);
    case OVERLAP: return ledger_overlap(c->ledger, m->overlaps, m->n, err) && cpu->overlap(s, m->overlaps, m->n);
    case VERIFY: return ledger_verify(c->ledger, m->verifies, m->n, err) && cpu->verify(s, m->verifies, m->n);
    case READ_LOGITS:
        return ledger_read(c->ledger, m->ring, m->layer, err) && cpu->read_logits(s, m->ring, m->layer, m->result);
    case READ_HIDDEN:
        return ledger_read(c->ledger, m->ring, m->layer, err) && cpu->read_hidden(s, m->ring, m->layer, m->result);
    default: return ledger_read_dist(c->ledger, m->dist, err) && cpu->read_dist(s, m->dist, m->result);
    }
}

/* Executes a request. After a failure it drops all requests except those that only move the caller's data into the KV
 * cache. */
static void
carry_out(struct check *c, struct command *m, struct err *err)
{
    if (err->kind != ERR_NONE && m->kind != TRUNK && m->kind != ADVANCE && m->kind != EMBED)
        return;
    struct err mine = {.kind = ERR_NONE}, from_wait = {.kind = ERR_NONE};
    bool ok = run(c, m, &mine);
    if (!ok && mine.kind == ERR_NONE)
        err_set(&mine, ERR_WORK, "the cpu backend refused a request that looked well-formed");
    if (!cpu_backend.wait(c->inner, &from_wait) && ok) {
        ok = false;
        mine = from_wait;
    }
    if (ok && m->kind == STEP)
        ledger_ran(c->ledger, &m->forward, m->forward.to);
    if (ok && m->kind == UNTIL)
        ledger_ran(c->ledger, &m->forward, ((struct exit_result *)m->result)->depth);
    if (ok && m->kind == PREDICT)
        ledger_predicted(c->ledger, m->probes, m->n);
    if (ok && m->kind == DIST)
        ledger_dists(c->ledger, m->dists, m->n);
    if (!ok && err->kind == ERR_NONE)
        *err = mine;
}

static void *
work(void *p)
{
    struct check *c = p;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (c->first == NULL && !c->quit)
            pthread_cond_wait(&c->more, &c->lock);
        if (c->first == NULL)
            break;
        struct command *m = c->first;
        c->first = m->next;
        c->busy = true;
        struct err err = c->err;
        pthread_mutex_unlock(&c->lock);
        carry_out(c, m, &err);
        pthread_mutex_lock(&c->lock);
        c->err = err;
        m->next = NULL;
        if (c->finished == NULL)
            c->finished = m;
        else
            c->finished_last->next = m;
        c->finished_last = m;
        c->busy = false;
        if (c->first == NULL)
            pthread_cond_signal(&c->idle);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---- requests ---- */

/* Claims all distributions that the request names. Fails if another KV cache has claimed one since its last wait(). */
static bool
claim(struct check *c, const struct command *m, struct err *err)
{
    const struct kv_cache *s = (const struct kv_cache *)(const void *)c;
    bool ok = m->kind != READ_DIST || pool_claim(c->pool, m->dist, s, err);
    for (size_t i = 0; m->kind == DIST && i < m->n && ok; i++)
        ok = pool_claim(c->pool, m->dists[i].out, s, err);
    for (size_t i = 0; m->kind == DRAW && i < m->n && ok; i++)
        ok = pool_claim(c->pool, m->draws[i].from, s, err);
    for (size_t i = 0; m->kind == OVERLAP && i < m->n && ok; i++)
        ok = pool_claim(c->pool, m->overlaps[i].d, s, err) && pool_claim(c->pool, m->overlaps[i].c, s, err);
    for (size_t i = 0; m->kind == VERIFY && i < m->n && ok; i++)
        for (size_t j = 0; j < m->verifies[i].n && ok; j++)
            ok = pool_claim(c->pool, m->verifies[i].nodes[j].q, s, err);
    return ok;
}

/* Queues a copy of the request. Returns true also if there is no memory or a wait() is missing, because the request is
 * not malformed; the next wait() reports these errors. */
static bool
queue(struct kv_cache *s, struct command request)
{
    struct check *c = check_of(s);
    request.depths = (size_t)c->limits.model->n_layers + 1;
    request.used = c->limits.model->form.experts.used;
    if (!claim(c, &request, &c->queueing))
        return true;
    struct command *m = command_copy(&request);
    if (m == NULL) {
        err_set(&c->queueing, ERR_WORK, "not enough memory for a request");
        return true;
    }
    pthread_mutex_lock(&c->lock);
    if (c->first == NULL)
        c->first = m;
    else
        c->last->next = m;
    c->last = m;
    pthread_cond_signal(&c->more);
    pthread_mutex_unlock(&c->lock);
    return true;
}

static bool
check_trunk(struct kv_cache *s, seq_t seq, uint32_t first, const slot_t *slots, size_t n)
{
    return request_trunk(check_of(s)->limits, seq, first, slots, n) &&
           queue(s, (struct command){.kind = TRUNK, .seq = seq, .first = first, .slots = slots, .n = n});
}

static bool
check_advance(struct kv_cache *s, uint32_t to, uint32_t from, const slot_t *slots, size_t n)
{
    return request_advance(check_of(s)->limits, to, from, slots, n) &&
           queue(s, (struct command){.kind = ADVANCE, .first = to, .seq = from, .slots = slots, .n = n});
}

static bool
check_embed(struct kv_cache *s, const struct row *rows, size_t n)
{
    return request_embed(check_of(s)->limits, rows, n) &&
           queue(s, (struct command){.kind = EMBED, .rows = rows, .n = n});
}

/* Waits until the worker has carried out all queued requests. */
static void
wait_for_idle(struct check *c)
{
    pthread_mutex_lock(&c->lock);
    while (c->first != NULL || c->busy)
        pthread_cond_wait(&c->idle, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

/* Runs at once, after the queued requests. */
static bool
check_draft_set(struct kv_cache *s, uint32_t set, uint32_t base, const token_t *recent, size_t n)
{
    struct check *c = check_of(s);
    if (!request_draft_set(c->limits, set, base, recent, n))
        return false;
    wait_for_idle(c);
    return cpu_backend.draft_set(c->inner, set, base, recent, n);
}

/* Runs at once, after the queued requests. */
static bool
check_feed(struct kv_cache *s, const struct row *rows, size_t n, const float *features, const uint32_t *before)
{
    struct check *c = check_of(s);
    if (!request_feed(c->limits, rows, n, features, before))
        return false;
    wait_for_idle(c);
    ledger_embedded(c->ledger, rows, n);
    if (c->limits.model->drafter->block > 0)
        ledger_fed(c->ledger, rows, n);
    return cpu_backend.feed(c->inner, rows, n, features, before);
}

static bool
check_step(struct kv_cache *s, const struct forward_pass *w)
{
    return request_forward(check_of(s)->limits, w) && queue(s, (struct command){.kind = STEP, .forward = *w});
}

static bool
check_until(struct kv_cache *s, const struct forward_pass *w, const struct exit_rule *rule, struct exit_result *out)
{
    return request_until(check_of(s)->limits, w, rule) && queue(s, (struct command){.kind = UNTIL,
                                                                                    .forward = *w,
                                                                                    .rule = *rule,
                                                                                    .out = out,
                                                                                    .bytes = sizeof *out,
                                                                                    .probed = out->probed});
}

static bool
check_predict(struct kv_cache *s, const struct probe *probes, size_t n, struct prediction *out)
{
    return request_predict(check_of(s)->limits, probes, n) &&
           queue(s, (struct command){.kind = PREDICT, .probes = probes, .n = n, .out = out, .bytes = n * sizeof *out});
}

static bool
check_dist(struct kv_cache *s, const struct dist_req *requests, size_t n)
{
    return request_dist(check_of(s)->limits, requests, n) &&
           queue(s, (struct command){.kind = DIST, .dists = requests, .n = n});
}

static bool
check_draw(struct kv_cache *s, const struct draw_req *requests, size_t n)
{
    return request_draw(check_of(s)->limits, requests, n) &&
           queue(s, (struct command){.kind = DRAW, .draws = requests, .n = n, .bytes = n * sizeof(token_t)});
}

static bool
check_overlap(struct kv_cache *s, const struct overlap_req *requests, size_t n)
{
    return request_overlap(check_of(s)->limits, requests, n) &&
           queue(s,
                 (struct command){.kind = OVERLAP, .overlaps = requests, .n = n, .bytes = n * sizeof(struct overlap)});
}

static bool
check_verify(struct kv_cache *s, const struct verify_req *requests, size_t n)
{
    return request_verify(check_of(s)->limits, requests, n) &&
           queue(s,
                 (struct command){.kind = VERIFY, .verifies = requests, .n = n, .bytes = n * sizeof(struct verdict)});
}

static bool
read_back(struct kv_cache *s, enum command_kind kind, uint32_t ring, uint32_t layer, float *out, size_t n)
{
    return request_read(check_of(s)->limits, ring, layer) &&
           queue(s, (struct command){.kind = kind, .ring = ring, .layer = layer, .out = out, .bytes = n * sizeof *out});
}

static bool
check_read_logits(struct kv_cache *s, uint32_t ring, uint32_t layer, float *out)
{
    return read_back(s, READ_LOGITS, ring, layer, out, check_of(s)->limits.model->vocab);
}

static bool
check_read_hidden(struct kv_cache *s, uint32_t ring, uint32_t layer, float *out)
{
    return read_back(s, READ_HIDDEN, ring, layer, out, check_of(s)->limits.model->width);
}

static bool
check_read_dist(struct kv_cache *s, dist_t dist, float *out)
{
    const struct request_limits m = check_of(s)->limits;
    return request_read_dist(m, dist) &&
           queue(s,
                 (struct command){.kind = READ_DIST, .dist = dist, .out = out, .bytes = m.dists.vocab * sizeof *out});
}

/* ---- wait ---- */

static bool
check_wait(struct kv_cache *s, struct err *err)
{
    struct check *c = check_of(s);
    pthread_mutex_lock(&c->lock);
    while (c->first != NULL || c->busy)
        pthread_cond_wait(&c->idle, &c->lock);
    struct command *m = c->finished;
    struct err failure = c->queueing.kind != ERR_NONE ? c->queueing : c->err;
    c->finished = c->finished_last = NULL;
    c->err.kind = ERR_NONE;
    pthread_mutex_unlock(&c->lock);
    c->queueing.kind = ERR_NONE;
    pool_results_arrived(c->pool, s);
    while (m != NULL) {
        struct command *next = m->next;
        if (failure.kind == ERR_NONE)
            command_deliver(m);
        command_free(m);
        m = next;
    }
    if (failure.kind != ERR_NONE && err != NULL)
        *err = failure;
    return failure.kind == ERR_NONE;
}

/* ---- opening ---- */

static void
check_drop(struct kv_cache *s)
{
    struct check *c = check_of(s);
    pthread_mutex_lock(&c->lock);
    c->quit = true;
    pthread_cond_signal(&c->more);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->worker, NULL);
    for (struct command *m = c->finished, *next; m != NULL; m = next) {
        next = m->next;
        command_free(m);
    }
    pthread_cond_destroy(&c->idle);
    pthread_cond_destroy(&c->more);
    pthread_mutex_destroy(&c->lock);
    pool_results_arrived(c->pool, s);
    ledger_close(c->ledger);
    cpu_backend.drop(c->inner);
    free(c);
}

static bool
check_kv_cache(struct weights *w, const struct kv_cache_desc *desc, struct kv_cache **out, struct err *err)
{
    *out = NULL;
    struct check *c = calloc(1, sizeof *c);
    if (c == NULL)
        return err_set(err, ERR_WORK, "not enough memory for a context");
    c->pool = pool_of(desc->dists);
    c->desc = *desc;
    c->desc.dists = c->pool != NULL ? c->pool->inner : NULL;
    c->limits = (struct request_limits){&w->desc, &c->desc, cpu_dists_size(c->desc.dists)};
    if (!cpu_backend.kv_cache(w, &c->desc, &c->inner, err)) {
        free(c);
        return false;
    }
    c->ledger = ledger_open(c->limits, c->pool);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->more, NULL);
    pthread_cond_init(&c->idle, NULL);
    if (c->ledger == NULL || pthread_create(&c->worker, NULL, work, c) != 0) {
        ledger_close(c->ledger);
        cpu_backend.drop(c->inner);
        free(c);
        return err_set(err, ERR_WORK, "no memory or thread for the check backend");
    }
    *out = (struct kv_cache *)(void *)c;
    return true;
}

/* Calls the CPU's open() and the like through its table, which a static initialiser cannot read. */
static bool
check_open(struct backend **out, const struct backend_options *options, struct err *err)
{
    return cpu_backend.open(out, options, err);
}

static void
check_close(struct backend *b)
{
    cpu_backend.close(b);
}

static const char *
check_describe(const struct backend *b)
{
    return cpu_backend.describe(b);
}

static uint32_t
check_threads(const struct backend *b)
{
    return cpu_backend.threads(b);
}

const struct backend_ops check_backend = {
    .name = "check",
    .abi = BACKEND_ABI,
    .open = check_open,
    .close = check_close,
    .describe = check_describe,
    .threads = check_threads,
    .load = cpu_weights_load,
    .unload = cpu_weights_unload,
    .repack = cpu_weights_repack,
    .heads = cpu_weights_heads,
    .dists = pool_open,
    .drop_dists = pool_close,
    .kv_cache = check_kv_cache,
    .drop = check_drop,
    .trunk = check_trunk,
    .advance = check_advance,
    .embed = check_embed,
    .feed = check_feed,
    .draft_set = check_draft_set,
    .step = check_step,
    .until = check_until,
    .predict = check_predict,
    .dist = check_dist,
    .draw = check_draw,
    .overlap = check_overlap,
    .verify = check_verify,
    .read_logits = check_read_logits,
    .read_hidden = check_read_hidden,
    .read_dist = check_read_dist,
    .wait = check_wait,
};
