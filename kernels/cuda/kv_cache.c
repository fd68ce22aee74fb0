/* A context's memory on the device, its pool of distributions, its arenas, and wait(). */
#include "kernels/cuda/kv_cache.h"

#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"
#include "kernels/cuda/device/layout.h"
#include "kernels/cuda/profile.h"
#include "kernels/cuda/requests.h"
#include "kernels/cuda/schedule.h"
#include "kernels/experts.h"

/* ---- arenas ---- */

static bool
add_chunk(struct kv_cache *s, struct arena *a, size_t room, struct err *err)
{
    static const char doing[] = "making room for requests";
    struct backend *b = s->backend;
    if (a->n == ARENA_CHUNKS)
        return err_set(err, ERR_WORK, "too many requests were queued for GPU %d at once", b->device);
    struct chunk *c = &a->chunks[a->n];
    void *host = NULL, *device = NULL;
    if (!cuda_did(b, cudaHostAlloc(&host, room, cudaHostAllocDefault), "pinning memory for requests", err))
        return false;
    if (!cuda_did(b, cudaMalloc(&device, room), doing, err)) {
        (void)cudaFreeHost(host);
        return false;
    }
    *c = (struct chunk){.host = host, .device = device, .room = room};
    a->n++;
    /* Results have gaps, and some are written in part. All of it is copied back, so it is initialised. */
    return cuda_did(b, cudaMemset(device, 0, room), doing, err) && cuda_did(b, cudaStreamSynchronize(NULL), doing, err);
}

static void
arena_close(struct arena *a)
{
    for (uint32_t i = 0; i < a->n; i++) {
        (void)cudaFreeHost(a->chunks[i].host);
        (void)cudaFree(a->chunks[i].device);
    }
}

static void
arena_reset(struct arena *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        a->chunks[i].used = a->chunks[i].sent = 0;
    a->at = 0;
}

void *
cuda_kv_cache_take(struct kv_cache *s, struct arena *a, size_t n, size_t size, void **host)
{
    const size_t bytes = (n * size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    *host = NULL;
    while (!s->failed && a->chunks[a->at].room - a->chunks[a->at].used < bytes) {
        const size_t twice = 2 * a->chunks[a->at].room;
        s->failed = a->at + 1 == a->n && !add_chunk(s, a, twice > bytes ? twice : bytes, &s->err);
        a->at++;
    }
    if (s->failed)
        return NULL;
    struct chunk *c = &a->chunks[a->at];
    *host = c->host + c->used;
    c->used += bytes;
    return c->device + (c->used - bytes);
}

void *
cuda_kv_cache_result(struct kv_cache *s, struct delivery d)
{
    void *host, *device = cuda_kv_cache_take(s, &s->results, d.bytes, 1, &host);
    d.from = host;
    return device != NULL && cuda_kv_cache_deliver(s, d) ? device : NULL;
}

void *
cuda_kv_cache_copy(struct kv_cache *s, const void *from, size_t n, size_t size)
{
    void *host, *device = from != NULL ? cuda_kv_cache_take(s, &s->args, n, size, &host) : NULL;
    if (device != NULL && n > 0)
        memcpy(host, from, n * size);
    return device;
}

bool
cuda_kv_cache_send(struct kv_cache *s)
{
    for (uint32_t i = 0; i < s->args.n && !s->failed; i++) {
        struct chunk *c = &s->args.chunks[i];
        const size_t sent = c->sent;
        c->sent = c->used;
        if (c->used > sent)
            (void)cuda_kv_cache_did(
                s, cudaMemcpyAsync(c->device + sent, c->host + sent, c->used - sent, cudaMemcpyHostToDevice, s->stream),
                "sending a request");
    }
    return !s->failed;
}

/* ---- distributions ---- */

bool
cuda_dists_open(struct backend *b, uint32_t vocab, uint32_t n, struct dists **out, struct err *err)
{
    const struct pool_size size = {.vocab = vocab, .n = n};
    *out = NULL;
    if (!request_pool(size, err))
        return false;
    struct dists *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return err_set(err, ERR_WORK, "not enough memory for a pool of distributions");
    pool->backend = b;
    pool->size = size;
    if (!device_here(b, err) || !memory_take(&pool->memory, b, (size_t)n * vocab * sizeof *pool->p, false,
                                             "distributions over the vocabulary", (void **)&pool->p, err)) {
        cuda_dists_close(pool);
        return false;
    }
    *out = pool;
    return true;
}

void
cuda_dists_close(struct dists *pool)
{
    (void)device_here(pool->backend, NULL);
    memory_free(&pool->memory);
    free(pool);
}

#define BARRIER_PATIENCE                                                                                               \
    5000000000u /* nanoseconds until a waiting block writes a note; after the same time again it ends the kernel */

/* ---- device memory ---- */

struct place {
    void **to;
    size_t n, size;
    bool zeroed; /* initialised because it may be read before it is written, if only to be multiplied by zero */
    bool keys;   /* size depends on the context */
};
#define PLACES 32

static uint32_t
round_up(uint32_t n, uint32_t to)
{
    return (n + to - 1) / to * to;
}

/* Returns the width of the widest normed input: the stream, or a drafter's features or pairs. */
static uint32_t
widest_input(const struct model_desc *d)
{
    if (d->drafter == NULL)
        return d->width;
    return d->drafter->features > 2 * d->width ? d->drafter->features : 2 * d->width;
}

/* Returns the width of the widest input of a head call: the stream, or a row of a Markov head. */
static uint32_t
widest_of_head(const struct model_desc *d)
{
    const uint32_t rank = d->drafter != NULL ? d->drafter->markov_w1.cols : 0;
    return rank > d->width ? rank : d->width;
}

static uint32_t
head_rows_of(const struct kv_cache_desc *o)
{
    const uint32_t probes = o->max_probes < HEAD_ROWS ? o->max_probes : HEAD_ROWS;
    return probes > VERIFY_NODES ? probes : VERIFY_NODES;
}

/* Fills the sizes in s->dev and lists the buffers to allocate. Returns their number; 0 on overflow. */
static size_t
list_places(struct kv_cache *s, const struct model_desc *d, bool exact, struct place *places)
{
    struct dev_kv_cache *v = &s->dev;
    const struct kv_cache_desc *o = &s->desc;
    const struct experts_form *f = &d->form.experts;
    const size_t f32 = sizeof(float), act = exact ? sizeof(float) : sizeof(uint16_t);
    const size_t heads = (size_t)d->heads * d->head_dim, kept = (size_t)d->kv_heads * head_room(d->head_dim);
    const bool padded = d->head_dim % 8 != 0;             /* padding after the end of a head must be zero */
    const size_t rows = round_up(o->max_rows, PASS_ROWS); /* a pass may read tiles that were never written */
    v->slots = o->slots;
    v->ring = o->ring;
    v->trunk_room = o->trunk;
    v->max_rows = o->max_rows;
    v->kept_rows = d->drafter != NULL ? d->drafter->block * o->seqs : 0; /* a block for each sequence */
    v->head_rows = round_up(head_rows_of(o), PASS_ROWS);
    const size_t splits = o->slots / ATTEND_SPLIT + 2; /* a path has no more rows than there are slots */
    const size_t stat_rows = v->head_rows > d->n_layers ? v->head_rows : d->n_layers;
    size_t slot_keys, ring, partials;
    if (__builtin_mul_overflow(request_depth(d, o) * kept, o->slots, &slot_keys) ||
        __builtin_mul_overflow(o->ring * (d->n_layers + (size_t)1), d->width, &ring) ||
        __builtin_mul_overflow((size_t)SPLIT_ROWS * d->heads * splits, 2 + (size_t)d->head_dim, &partials) ||
        slot_keys > SIZE_MAX / 16 || ring > SIZE_MAX / 16 || partials > SIZE_MAX / 16)
        return 0;
    const struct place all[] = {
        {(void **)&v->hidden, ring, f32, true, false},
        {&v->keys, slot_keys, act, padded, true},
        {&v->values, slot_keys, act, padded, true},
        {(void **)&v->trunk, (size_t)o->seqs * o->trunk, sizeof(slot_t), true, true},
        {&v->normed, rows * units_of(widest_input(d)) * UNIT, act, true, false},
        {&v->attended, rows * units_of((uint32_t)heads) * UNIT, act, true, false},
        {&v->gated, rows * units_of(d->ffn) * UNIT, act, true, false},
        {(void **)&v->rotations, 2 * rows * d->rope_dims, f32, false, false},
        {(void **)&v->q, rows * heads, f32, false, false},
        {(void **)&v->qk_raw, rows * (heads + (size_t)d->kv_heads * d->head_dim), f32, false, false},
        {(void **)&v->raw, rows * d->width, f32, false, false},
        {(void **)&v->partials, partials, f32, false, true},
        {(void **)&v->arrivals, (size_t)SPLIT_ROWS * d->heads, sizeof(uint32_t), true, false},
        {(void **)&v->barrier, 1, sizeof(struct dev_barrier), true, false},
        {(void **)&v->cancel, 1, sizeof(uint32_t), true, false},
        {(void **)&v->until_logits, (size_t)d->n_layers * d->vocab, f32, false, false},
        {(void **)&v->until_parts, (size_t)s->blocks * 2, f32, false, false},
        {&v->head_normed, (size_t)v->head_rows * units_of(widest_of_head(d)) * UNIT, act, true, false},
        {(void **)&v->head_shifted, (size_t)v->head_rows * d->width, f32, false, false},
        {(void **)&v->head_logits, (size_t)v->head_rows * d->vocab, f32, false, false},
        {(void **)&v->verify_p, (size_t)VERIFY_WALKS * 2 * d->vocab, f32, false, false},
        {(void **)&v->head_pieces, stat_rows * head_pieces_of(d->vocab), sizeof *v->head_pieces, true, false},
        {(void **)&v->row_dists, v->head_rows, sizeof *v->row_dists, true, false},
        {(void **)&v->kept, (size_t)v->kept_rows * d->head.rows, f32, false, false},
        {(void **)&v->pairs, d->drafter != NULL ? o->ring * (2 * (size_t)d->width + 1) : 0, f32, true, false},
        {(void **)&v->router_logits, rows * (f->n + 1), sizeof *v->router_logits, false, false},
        {(void **)&v->routes, rows * f->used, sizeof *v->routes, false, false},
        {(void **)&v->expert_rows, rows * (f->used + 1), sizeof *v->expert_rows, false, false},
        {(void **)&v->expert_list, 1, sizeof *v->expert_list, true, false},
        {&v->expert_hidden, rows * f->used * units_of(f->ffn) * UNIT, act, true, false},
        {&v->shared_hidden, rows * units_of(f->shared_ffn) * UNIT, act, true, false},
    };
    _Static_assert(sizeof all <= PLACES * sizeof *places, "places");
    memcpy(places, all, sizeof all);
    return sizeof all / sizeof *all;
}

bool
cuda_kv_cache_estimate(const struct backend *b, const struct model_desc *d, uint32_t ctx, size_t *keys, size_t *work)
{
    struct place places[PLACES];
    struct kv_cache s = {.blocks = 256, .desc = kv_cache_defaults(ctx)};
    const uint32_t more = (ctx < PROMPT_ROWS ? ctx : PROMPT_ROWS) - s.desc.max_rows;
    if (ctx > s.desc.max_rows) { /* like a context */
        s.desc.max_rows += more;
        s.desc.ring += 2 * more;
    }
    const size_t n = ctx <= UINT32_MAX - KV_CACHE_SPARE ? list_places(&s, d, b->exact, places) : 0;
    if (n == 0)
        return false;
    *keys = 0;
    *work = (size_t)KV_CACHE_DISTS * d->vocab * sizeof(float);
    for (size_t i = 0; i < n; i++)
        *(places[i].keys ? keys : work) += places[i].n * places[i].size;
    return true;
}

static bool
take_places(struct kv_cache *s, struct err *err)
{
    struct place places[PLACES];
    const size_t n = list_places(s, &s->weights->desc, s->backend->exact, places);
    if (n == 0)
        return err_set(err, ERR_WORK,
                       "keys and values of %" PRIu32 " positions are too large for any GPU; use a smaller --ctx",
                       s->desc.slots);
    for (size_t i = 0; i < n; i++) {
        char what[64];
        snprintf(what, sizeof what,
                 places[i].keys ? "keys and values of %" PRIu32 " positions" : "a context to work in", s->desc.slots);
        if (!memory_take(&s->memory, s->backend, places[i].n * places[i].size, places[i].zeroed, what, places[i].to,
                         err))
            return false;
    }
    return true;
}

/* Allocates enough for a typical round: results of a full predict call, two verdicts, an early exit; arguments of two
 * forward passes. */
static bool
take_arenas(struct kv_cache *s, struct err *err)
{
    const size_t depths = s->weights->desc.n_layers + 1;
    const size_t results = s->desc.max_probes * sizeof(struct prediction) + 2 * sizeof(struct verdict) +
                           sizeof(struct until_state) + (depths + VERIFY_NODES) * sizeof(struct prediction) + 4096;
    const size_t args = 2 * (s->dev.max_rows * (sizeof(struct row) + sizeof(struct row_group)) +
                             (size_t)s->desc.max_rows * 64 * sizeof(slot_t) + depths * 2 * sizeof(float) +
                             schedule_room((uint32_t)depths) * sizeof(struct pass_step)) +
                        s->desc.max_probes * sizeof(struct head_row) + 16384;
    return add_chunk(s, &s->args, args, err) && add_chunk(s, &s->results, results, err);
}

static bool
take_host(struct kv_cache *s, struct err *err)
{
    s->deliveries_room = s->desc.max_probes + 64;
    s->deliveries = malloc(s->deliveries_room * sizeof *s->deliveries);
    s->head_rows = malloc(s->dev.head_rows * sizeof *s->head_rows);
    s->requests = malloc(s->dev.head_rows * sizeof *s->requests);
    s->final_row = malloc(s->desc.ring * sizeof *s->final_row);
    s->kept_row = malloc(s->desc.ring * sizeof *s->kept_row);
    s->steps = malloc(schedule_room(s->weights->desc.n_layers) * sizeof *s->steps);
    if (s->steps == NULL || s->deliveries == NULL || s->head_rows == NULL || s->requests == NULL ||
        s->final_row == NULL || s->kept_row == NULL)
        return err_set(err, ERR_WORK, "not enough memory for a context");
    memset(s->final_row, 0xff, s->desc.ring * sizeof *s->final_row); /* -1 */
    memset(s->kept_row, 0xff, s->desc.ring * sizeof *s->kept_row);
    return true;
}

bool
cuda_kv_cache_open(struct weights *w, const struct kv_cache_desc *desc, struct kv_cache **out, struct err *err)
{
    static const char doing[] = "opening a context";
    struct backend *b = w->backend;
    *out = NULL;
    const struct dists *pool = desc->dists;
    const struct request_limits asked = {&w->desc, desc, pool != NULL ? pool->size : (struct pool_size){0, 0}};
    if (!request_kv_cache(asked, err))
        return false;
    struct kv_cache *s = calloc(1, sizeof *s);
    if (s == NULL)
        return err_set(err, ERR_WORK, "not enough memory for a context");
    s->weights = w;
    s->backend = b;
    s->blocks = b->blocks;
    s->desc = *desc;
    s->limits = (struct request_limits){&w->desc, &s->desc, asked.dists};
    s->dev.dists_p = pool != NULL ? pool->p : NULL;
    s->dev.dists_vocab = asked.dists.vocab;
    /* The state of the barrier before a forward pass. */
    const struct dev_barrier rest = {.patience = BARRIER_PATIENCE, .notes = b->notes};
    /* Memory is zeroed on the default stream, for which the KV cache's stream does not wait; making the arenas does. */
    if (!device_here(b, err) || !take_places(s, err) || !cuda_draft_open(s, err) ||
        !cuda_did(b, cudaMemcpy(s->dev.barrier, &rest, sizeof rest, cudaMemcpyHostToDevice), doing, err) ||
        !take_arenas(s, err) ||
        !cuda_did(b, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), doing, err) ||
        !cuda_did(b, cudaStreamCreateWithFlags(&s->side, cudaStreamNonBlocking), doing, err) ||
        !cuda_did(b, cudaEventCreateWithFlags(&s->done, cudaEventDisableTiming), doing, err) ||
        !cuda_did(b, cudaHostAlloc((void **)&s->cancel_words, 2 * sizeof *s->cancel_words, cudaHostAllocDefault), doing,
                  err) ||
        !take_host(s, err)) {
        cuda_kv_cache_close(s);
        return false;
    }
    s->cancel_words[0] = 0;
    s->cancel_words[1] = 1;
    *out = s;
    return true;
}

void
cuda_kv_cache_close(struct kv_cache *s)
{
    (void)device_here(s->backend, NULL);
    if (s->stream != NULL) {
        (void)cudaStreamSynchronize(s->stream); /* queued work uses memory that is freed below */
        (void)cudaStreamDestroy(s->stream);
    }
    if (s->side != NULL)
        (void)cudaStreamDestroy(s->side);
    if (s->done != NULL)
        (void)cudaEventDestroy(s->done);
    (void)cudaFreeHost(s->cancel_words);
    arena_close(&s->args);
    arena_close(&s->results);
    cuda_draft_close(s);
    memory_free(&s->memory);
    free(s->deliveries);
    free(s->head_rows);
    free(s->requests);
    free(s->final_row);
    free(s->kept_row);
    free(s->steps);
    free(s);
}

/* ---- for requests ---- */

bool
cuda_kv_cache_alive(struct kv_cache *s)
{
    return !s->failed && device_here(s->backend, NULL); /* wait() reports a lost device */
}

bool
cuda_kv_cache_begins(struct kv_cache *s)
{
    if (s->desc.cancel != NULL && atomic_load_explicit(s->desc.cancel, memory_order_relaxed))
        s->cancelled = true;
    s->stoppable = true;
    return !s->cancelled && cuda_kv_cache_alive(s);
}

bool
cuda_kv_cache_did(struct kv_cache *s, cudaError_t code, const char *doing)
{
    s->queued = true;
    if (!s->failed && !cuda_did(s->backend, code, doing, &s->err))
        s->failed = true;
    return !s->failed;
}

bool
cuda_kv_cache_deliver(struct kv_cache *s, struct delivery d)
{
    if (!array_grow(&s->deliveries, &s->deliveries_room, s->n_deliveries + 1, sizeof *s->deliveries)) {
        s->failed = true;
        return err_set(&s->err, ERR_WORK, "not enough memory for results");
    }
    s->deliveries[s->n_deliveries++] = d;
    return true;
}

/* ---- wait() ---- */

/* Sets the cancel word on a stream of its own, by a copy, which needs no multiprocessor. */
static bool
set_word(struct kv_cache *s, uint32_t value)
{
    return cuda_kv_cache_did(
        s,
        cudaMemcpyAsync(s->dev.cancel, &s->cancel_words[value], sizeof *s->dev.cancel, cudaMemcpyHostToDevice, s->side),
        "cancelling");
}

/* Polls the stream until it is complete, because a sleep might last too long. Copies a cancellation to the device while
 * a forward pass runs. */
static bool
poll(struct kv_cache *s)
{
    for (;;) {
        const cudaError_t code = cudaEventQuery(s->done);
        if (code != cudaErrorNotReady)
            return cuda_kv_cache_did(s, code, "computing");
        (void)cudaGetLastError(); /* "not ready" counts as an error there */
        if (s->stoppable && !s->cancelled && s->desc.cancel != NULL &&
            atomic_load_explicit(s->desc.cancel, memory_order_relaxed)) {
            s->cancelled = s->word_raised = true;
            if (!set_word(s, 1))
                return false;
        }
        sched_yield();
    }
}

/* Waits until everything queued is complete and the results are on the host; returns false on failure. */
static bool
finish(struct kv_cache *s)
{
    static const char doing[] = "bringing results back";
    for (uint32_t i = 0; i < s->results.n; i++) {
        const struct chunk *c = &s->results.chunks[i];
        if (c->used > 0 &&
            !cuda_kv_cache_did(s, cudaMemcpyAsync(c->host, c->device, c->used, cudaMemcpyDeviceToHost, s->stream),
                               doing))
            return false;
    }
    return cuda_kv_cache_did(s, cudaEventRecord(s->done, s->stream), doing) && poll(s);
}

/* Clears the cancel word on the stream on which it was set, before later work is queued. */
static void
lower_word(struct kv_cache *s)
{
    if (set_word(s, 0) && cuda_kv_cache_did(s, cudaStreamSynchronize(s->side), "cancelling"))
        s->word_raised = false;
}

static bool
is_number(struct kv_cache *s, float value, uint32_t layer)
{
    if (isfinite(value))
        return true;
    s->failed = true;
    return request_not_numbers(layer, &s->err);
}

static bool
deliver_exit(struct kv_cache *s, const struct delivery *d)
{
    const struct until_state *state = d->from;
    const struct prediction *all = (const void *)(state + 1);
    struct exit_result *out = d->out;
    struct prediction *const probed = out->probed;
    *out = (struct exit_result){.exited = state->exited != 0,
                                .depth = state->depth > 0 ? state->depth : d->layer,
                                .probes = state->probes,
                                .probe_ns = state->probe_ns,
                                .prediction = {.token = TOKEN_NONE},
                                .probed = probed};
    for (uint32_t l = 0; probed != NULL && l <= s->weights->desc.n_layers; l++)
        probed[l].token = TOKEN_NONE;
    for (uint32_t i = 0; i < state->probes; i++) {
        const uint32_t l = state->probed[i];
        if (!is_number(s, state->annealed[i], l))
            return false;
        out->prediction = all[l];
        if (probed != NULL)
            probed[l] = all[l];
    }
    return state->probes == 0 || is_number(s, out->prediction.confidence, out->depth);
}

static bool
deliver(struct kv_cache *s, const struct delivery *d)
{
    const struct prediction *checked = (const void *)((const unsigned char *)d->from + d->checked);
    for (uint32_t i = 0; i < d->n_checked; i++)
        if (!is_number(s, checked[i].confidence, d->layer))
            return false;
    if (d->kind == DELIVER_EXIT)
        return deliver_exit(s, d);
    if (d->kind == DELIVER_STAMPS) {
        profile_deliver(s, d);
        return true;
    }
    struct route *const routes = memcpy(d->out, d->from, d->bytes);
    for (size_t i = 0; d->kind == DELIVER_ROUTES && i < d->bytes / sizeof *routes; i++)
        if (routes[i].expert == EXPERT_NONE)
            routes[i].weight = 0;
    return true;
}

bool
cuda_kv_cache_wait(struct kv_cache *s, struct err *err)
{
    struct backend *b = s->backend;
    if (!device_here(b, &s->err))
        s->failed = true;
    if (s->queued && (s->failed || !finish(s)) && !b->lost)
        (void)cudaStreamSynchronize(s->stream); /* before the arenas are reused */
    if (s->word_raised && !b->lost)
        lower_word(s);
    bool ok = !s->cancelled && !s->failed;
    for (size_t i = 0; i < s->n_deliveries && ok; i++)
        ok = deliver(s, &s->deliveries[i]);
    if (s->failed && err != NULL)
        *err = s->err;
    else if (!ok)
        err_set(err, ERR_CANCELLED, "cancelled");
    s->queued = s->stoppable = s->cancelled = false;
    s->failed = b->lost; /* permanent; s->err has the reason */
    s->n_deliveries = 0;
    arena_reset(&s->args);
    arena_reset(&s->results);
    return ok;
}
