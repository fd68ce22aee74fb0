/* The check backend: the CPU behind a worker thread, with an accelerator's manners. A request is copied into a queue
 * and the call returns; the worker compares it with the ledger and carries it out; results lie in the queue's own
 * memory until wait(). Code that reads a result too early, changes arguments' memory and hopes, or relies on what was
 * never computed, fails here on every machine. It is for tests: it allocates for every request. */
#include <pthread.h>

#include "kernels/check/ledger.h"
#include "kernels/cpu/weights.h"

enum kind { TRUNK, EMBED, STEP, UNTIL, GUESS, DIST, DRAW, VERIFY, READ_LOGITS, READ_HIDDEN, READ_DIST };

struct command {
    struct command *next;
    enum kind kind;
    struct blocks blocks; /* the copies below */

    size_t n;
    seq_t seq;
    uint32_t first, ring, layer;
    const slot_t *slots;
    const struct row *rows;
    struct sweep sweep;
    struct exit_rule rule;
    const struct probe *probes;
    const struct dist_req *dists;
    struct draw_req *draws;
    struct verify_req verify;
    dist_t dist;

    void *out, *result; /* the caller's memory; ours, of `bytes` */
    size_t bytes;
    token_t **tokens;     /* (n) DRAW: the caller's */
    struct guess *probed; /* UNTIL: the caller's (depths), or NULL */
    size_t depths;        /* L + 1 */
};

/* What the world knows as struct store. */
struct check {
    struct store *inner;
    struct store_desc desc;
    struct request_limits limits;
    const struct weights *weights;
    struct ledger *ledger;

    pthread_t worker;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t more, idle;
    struct command *first, *last; /* not yet carried out */
    struct command *finished, *finished_last;
    bool busy, quit, lost; /* lost: out of memory while queueing */
    struct err err;        /* the first thing that went wrong since the last wait() */
};

static struct check *
check_of(struct store *s)
{
    return (struct check *)(void *)s;
}

/* ---- the worker ---- */

static bool
run(struct check *c, struct command *m, struct err *err)
{
    const struct backend_ops *cpu = &cpu_backend;
    struct store *s = c->inner;
    switch (m->kind) {
    case TRUNK:
        ledger_trunk(c->ledger, m->seq, m->first, m->slots, m->n);
        return cpu->trunk(s, m->seq, m->first, m->slots, m->n);
    case EMBED: ledger_embedded(c->ledger, m->rows, m->n); return cpu->embed(s, m->rows, m->n);
    case STEP: return ledger_sweep(c->ledger, &m->sweep, err) && cpu->step(s, &m->sweep);
    case UNTIL: return ledger_sweep(c->ledger, &m->sweep, err) && cpu->until(s, &m->sweep, &m->rule, m->result);
    case GUESS: return ledger_guess(c->ledger, m->probes, m->n, err) && cpu->guess(s, m->probes, m->n, m->result);
    case DIST: return ledger_dist(c->ledger, m->dists, m->n, err) && cpu->dist(s, m->dists, m->n);
    case DRAW: return ledger_draw(c->ledger, m->draws, m->n, err) && cpu->draw(s, m->draws, m->n);
    case VERIFY: return ledger_verify(c->ledger, &m->verify, err) && cpu->verify(s, &m->verify);
    case READ_LOGITS:
        return ledger_read(c->ledger, m->ring, m->layer, err) && cpu->read_logits(s, m->ring, m->layer, m->result);
    case READ_HIDDEN:
        return ledger_read(c->ledger, m->ring, m->layer, err) && cpu->read_hidden(s, m->ring, m->layer, m->result);
    default: return ledger_read_dist(c->ledger, m->dist, err) && cpu->read_dist(s, m->dist, m->result);
    }
}

/* After a failure what follows is dropped, but for requests that only move the caller's data into the store. */
static void
carry_out(struct check *c, struct command *m, struct err *err)
{
    if (err->kind != ERR_NONE && m->kind != TRUNK && m->kind != EMBED)
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
        ledger_swept(c->ledger, &m->sweep, m->sweep.to);
    if (ok && m->kind == UNTIL)
        ledger_swept(c->ledger, &m->sweep, ((struct exit_result *)m->result)->depth);
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

/* ---- the queue ---- */

static void
free_command(struct command *m)
{
    if (m == NULL)
        return;
    blocks_free(&m->blocks);
    free(m);
}

static struct command *
command(enum kind kind, void *out, size_t bytes)
{
    struct command *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    m->kind = kind;
    m->out = out;
    m->bytes = bytes;
    m->result = blocks_take(&m->blocks, bytes, 1);
    if (m->result != NULL)
        return m;
    free_command(m);
    return NULL;
}

/* A copy of n things, NULL for NULL; `ok` turns false when there is no memory. */
static void *
copy(struct command *m, const void *from, size_t n, size_t size, bool *ok)
{
    if (m == NULL || from == NULL)
        return NULL;
    void *p = blocks_take(&m->blocks, n, size);
    if (p == NULL)
        *ok = false;
    else if (n > 0)
        memcpy(p, from, n * size);
    return p;
}

/* Lack of memory is no malformed request: wait() will tell. */
static bool
queue(struct check *c, struct command *m, bool ok)
{
    if (m == NULL || !ok) {
        free_command(m);
        m = NULL;
    }
    pthread_mutex_lock(&c->lock);
    if (m == NULL) {
        c->lost = true;
    } else {
        if (c->first == NULL)
            c->first = m;
        else
            c->last->next = m;
        c->last = m;
        pthread_cond_signal(&c->more);
    }
    pthread_mutex_unlock(&c->lock);
    return true;
}

static bool
check_trunk(struct store *s, seq_t seq, uint32_t first, const slot_t *slots, size_t n)
{
    struct check *c = check_of(s);
    if (!request_trunk(c->limits, seq, first, slots, n))
        return false;
    struct command *m = command(TRUNK, NULL, 0);
    bool ok = m != NULL;
    if (ok) {
        m->seq = seq;
        m->first = first;
        m->slots = copy(m, slots, n, sizeof *slots, &ok);
        m->n = n;
    }
    return queue(c, m, ok);
}

static bool
check_embed(struct store *s, const struct row *rows, size_t n)
{
    struct check *c = check_of(s);
    if (!request_embed(c->limits, rows, n))
        return false;
    struct command *m = command(EMBED, NULL, 0);
    bool ok = m != NULL;
    if (ok) {
        m->rows = copy(m, rows, n, sizeof *rows, &ok);
        m->n = n;
    }
    return queue(c, m, ok);
}

static void
copy_sweep(const struct check *c, struct command *m, const struct sweep *w, bool *ok)
{
    const size_t depths = c->weights->desc.n_layers + 1;
    m->sweep = *w;
    m->sweep.rows = copy(m, w->rows, w->n, sizeof *w->rows, ok);
    m->sweep.tails = copy(m, w->tails, w->n_tails, sizeof *w->tails, ok);
    m->sweep.skip_attention = copy(m, w->skip_attention, depths, sizeof(bool), ok);
    m->sweep.skip_mlp = copy(m, w->skip_mlp, depths, sizeof(bool), ok);
}

static bool
check_step(struct store *s, const struct sweep *w)
{
    struct check *c = check_of(s);
    if (!request_sweep(c->limits, w))
        return false;
    struct command *m = command(STEP, NULL, 0);
    bool ok = m != NULL;
    if (ok)
        copy_sweep(c, m, w, &ok);
    return queue(c, m, ok);
}

static bool
check_until(struct store *s, const struct sweep *w, const struct exit_rule *rule, struct exit_result *out)
{
    struct check *c = check_of(s);
    const size_t depths = c->weights->desc.n_layers + 1;
    if (!request_until(c->limits, w, rule))
        return false;
    struct command *m = command(UNTIL, out, sizeof *out);
    bool ok = m != NULL;
    if (ok) {
        copy_sweep(c, m, w, &ok);
        m->rule.head = rule->head;
        m->rule.temperature = copy(m, rule->temperature, depths, sizeof(float), &ok);
        m->rule.threshold = copy(m, rule->threshold, depths, sizeof(float), &ok);
        m->probed = out->probed;
        m->depths = depths;
        if (m->probed != NULL) {
            struct guess *probed = blocks_take(&m->blocks, depths, sizeof *probed);
            ok = ok && probed != NULL;
            ((struct exit_result *)m->result)->probed = probed;
        }
    }
    return queue(c, m, ok);
}

static bool
check_guess(struct store *s, const struct probe *probes, size_t n, struct guess *out)
{
    struct check *c = check_of(s);
    if (!request_guess(c->limits, probes, n))
        return false;
    struct command *m = command(GUESS, out, n * sizeof *out);
    bool ok = m != NULL;
    if (ok) {
        m->probes = copy(m, probes, n, sizeof *probes, &ok);
        m->n = n;
    }
    return queue(c, m, ok);
}

static bool
check_dist(struct store *s, const struct dist_req *requests, size_t n)
{
    struct check *c = check_of(s);
    if (!request_dist(c->limits, requests, n))
        return false;
    struct command *m = command(DIST, NULL, 0);
    bool ok = m != NULL;
    if (ok) {
        m->dists = copy(m, requests, n, sizeof *requests, &ok);
        m->n = n;
    }
    return queue(c, m, ok);
}

static bool
check_draw(struct store *s, const struct draw_req *requests, size_t n)
{
    struct check *c = check_of(s);
    if (!request_draw(c->limits, requests, n))
        return false;
    struct command *m = command(DRAW, NULL, n * sizeof(token_t));
    bool ok = m != NULL;
    if (ok) {
        m->draws = copy(m, requests, n, sizeof *requests, &ok);
        m->tokens = blocks_take(&m->blocks, n, sizeof *m->tokens);
        ok = ok && m->tokens != NULL;
        m->n = n;
    }
    for (size_t i = 0; i < n && ok; i++) {
        m->draws[i].without = copy(m, requests[i].without, requests[i].n_without, sizeof(token_t), &ok);
        m->tokens[i] = requests[i].out;
        m->draws[i].out = (token_t *)m->result + i;
    }
    return queue(c, m, ok);
}

static bool
check_verify(struct store *s, const struct verify_req *request)
{
    struct check *c = check_of(s);
    if (!request_verify(c->limits, request))
        return false;
    struct command *m = command(VERIFY, request->out, sizeof *request->out);
    bool ok = m != NULL;
    if (ok) {
        m->verify = *request;
        m->verify.nodes = copy(m, request->nodes, request->n, sizeof *request->nodes, &ok);
        m->verify.out = m->result;
    }
    return queue(c, m, ok);
}

static bool
read_back(struct check *c, enum kind kind, uint32_t ring, uint32_t layer, dist_t dist, float *out, size_t n)
{
    struct command *m = command(kind, out, n * sizeof *out);
    if (m != NULL) {
        m->ring = ring;
        m->layer = layer;
        m->dist = dist;
    }
    return queue(c, m, true);
}

static bool
check_read_logits(struct store *s, uint32_t ring, uint32_t layer, float *out)
{
    struct check *c = check_of(s);
    return request_read(c->limits, ring, layer) &&
           read_back(c, READ_LOGITS, ring, layer, 0, out, c->weights->desc.vocab);
}

static bool
check_read_hidden(struct store *s, uint32_t ring, uint32_t layer, float *out)
{
    struct check *c = check_of(s);
    return request_read(c->limits, ring, layer) &&
           read_back(c, READ_HIDDEN, ring, layer, 0, out, c->weights->desc.width);
}

static bool
check_read_dist(struct store *s, dist_t dist, float *out)
{
    struct check *c = check_of(s);
    return dist < c->desc.dists && read_back(c, READ_DIST, 0, 0, dist, out, c->weights->desc.vocab);
}

/* ---- wait ---- */

static void
deliver(struct command *m)
{
    if (m->kind == UNTIL) {
        struct exit_result *result = m->result;
        struct guess *probed = result->probed;
        if (m->probed != NULL)
            memcpy(m->probed, probed, m->depths * sizeof *probed);
        result->probed = m->probed;
    }
    if (m->kind == DRAW)
        for (size_t i = 0; i < m->n; i++)
            *m->tokens[i] = ((token_t *)m->result)[i];
    else if (m->out != NULL)
        memcpy(m->out, m->result, m->bytes);
}

static bool
check_wait(struct store *s, struct err *err)
{
    struct check *c = check_of(s);
    pthread_mutex_lock(&c->lock);
    while (c->first != NULL || c->busy)
        pthread_cond_wait(&c->idle, &c->lock);
    struct command *m = c->finished;
    struct err failure = c->err;
    if (c->lost && failure.kind == ERR_NONE)
        err_set(&failure, ERR_WORK, "not enough memory for a request");
    c->finished = c->finished_last = NULL;
    c->err.kind = ERR_NONE;
    c->lost = false;
    pthread_mutex_unlock(&c->lock);
    while (m != NULL) {
        struct command *next = m->next;
        if (failure.kind == ERR_NONE)
            deliver(m);
        free_command(m);
        m = next;
    }
    if (failure.kind != ERR_NONE && err != NULL)
        *err = failure;
    return failure.kind == ERR_NONE;
}

/* ---- opening ---- */

static void
check_drop(struct store *s)
{
    if (s == NULL)
        return;
    struct check *c = check_of(s);
    pthread_mutex_lock(&c->lock);
    c->quit = true;
    pthread_cond_signal(&c->more);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->worker, NULL);
    for (struct command *m = c->finished, *next; m != NULL; m = next) {
        next = m->next;
        free_command(m);
    }
    pthread_cond_destroy(&c->idle);
    pthread_cond_destroy(&c->more);
    pthread_mutex_destroy(&c->lock);
    ledger_close(c->ledger);
    cpu_backend.drop(c->inner);
    free(c);
}

static bool
check_store(struct weights *w, const struct store_desc *desc, struct store **out, struct err *err)
{
    *out = NULL;
    struct check *c = calloc(1, sizeof *c);
    if (c == NULL)
        return err_set(err, ERR_WORK, "not enough memory for a context");
    c->weights = w;
    c->desc = *desc;
    c->limits = (struct request_limits){&w->desc, &c->desc};
    if (!cpu_backend.store(w, desc, &c->inner, err)) {
        free(c);
        return false;
    }
    c->ledger = ledger_open(c->limits);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->more, NULL);
    pthread_cond_init(&c->idle, NULL);
    if (c->ledger == NULL || pthread_create(&c->worker, NULL, work, c) != 0) {
        ledger_close(c->ledger);
        cpu_backend.drop(c->inner);
        free(c);
        return err_set(err, ERR_WORK, "no memory or thread for the check backend");
    }
    *out = (struct store *)(void *)c;
    return true;
}

/* The CPU's own open() and the like, through its table: a static initialiser can't read it. */
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

const struct backend_ops check_backend = {
    .name = "check",
    .abi = BACKEND_ABI,
    .open = check_open,
    .close = check_close,
    .describe = check_describe,
    .load = cpu_weights_load,
    .unload = cpu_weights_unload,
    .heads = cpu_weights_heads,
    .store = check_store,
    .drop = check_drop,
    .trunk = check_trunk,
    .embed = check_embed,
    .step = check_step,
    .until = check_until,
    .guess = check_guess,
    .dist = check_dist,
    .draw = check_draw,
    .verify = check_verify,
    .read_logits = check_read_logits,
    .read_hidden = check_read_hidden,
    .read_dist = check_read_dist,
    .wait = check_wait,
};
