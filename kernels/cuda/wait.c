/* wait(): until everything queued is done, and its results are where the caller wants them. */
#include "kernels/cuda/trace.h"

#include <math.h>
#include <sched.h>
#include <string.h>

#include "kernels/experts.h"

/* Asks again and again whether the stream is done: that costs no more than a sleep would be late. A cancel that comes
 * now is carried to the device beside the sweep that runs; by a copy, which needs no multiprocessor. */
static bool
poll(struct store *s)
{
    static const char doing[] = "computing";
    for (;;) {
        const cudaError_t code = cudaEventQuery(s->done);
        if (code != cudaErrorNotReady)
            return cuda_store_did(s, code, doing);
        (void)cudaGetLastError(); /* "not ready" counts as an error there */
        if (s->stoppable && !s->cancelled && s->desc.cancel != NULL &&
            atomic_load_explicit(s->desc.cancel, memory_order_relaxed)) {
            s->cancelled = s->word_raised = true;
            if (!cuda_store_did(s,
                                cudaMemcpyAsync(s->dev.cancel, &s->cancel_words[1], sizeof *s->dev.cancel,
                                                cudaMemcpyHostToDevice, s->side),
                                "cancelling"))
                return false;
        }
        sched_yield();
    }
}

/* Everything queued is done when it returns true, and results are on the host. */
static bool
finish(struct store *s)
{
    static const char doing[] = "bringing results back";
    for (uint32_t i = 0; i < s->results.n; i++) {
        const struct chunk *c = &s->results.chunks[i];
        if (c->used > 0 &&
            !cuda_store_did(s, cudaMemcpyAsync(c->host, c->device, c->used, cudaMemcpyDeviceToHost, s->stream), doing))
            return false;
    }
    return cuda_store_did(s, cudaEventRecord(s->done, s->stream), doing) && poll(s);
}

/* Puts the cancel word back: behind its being set, on the same stream, and before anything that is queued from now on, be it a
 * sweep or the word's being set again. */
static void
lower_word(struct store *s)
{
    static const char doing[] = "cancelling";
    if (cuda_store_did(
            s,
            cudaMemcpyAsync(s->dev.cancel, &s->cancel_words[0], sizeof *s->dev.cancel, cudaMemcpyHostToDevice, s->side),
            doing) &&
        cuda_store_did(s, cudaStreamSynchronize(s->side), doing))
        s->word_raised = false;
}

static bool
is_number(struct store *s, float value, uint32_t layer)
{
    if (isfinite(value))
        return true;
    s->failed = true;
    return request_not_numbers(layer, &s->err);
}

static bool
deliver_exit(struct store *s, const struct delivery *d)
{
    const struct until_state *state = d->from;
    struct exit_result *out = d->out;
    *out = (struct exit_result){.exited = state->exited != 0,
                                .depth = state->depth,
                                .probes = state->probes,
                                .probe_ns = state->probe_ns,
                                .guess = {.token = TOKEN_NONE},
                                .probed = d->probed};
    for (uint32_t i = 0; i < state->probes && i < MAX_LAYERS; i++)
        if (!is_number(s, state->annealed[i], state->probed[i]))
            return false;
    if (state->probes > 0) {
        if (!is_number(s, d->last->confidence, state->depth))
            return false;
        out->guess = *d->last;
    }
    if (d->probed != NULL)
        memcpy(d->probed, d->all, (s->weights->desc.n_layers + 1) * sizeof *d->all);
    return true;
}

static void
deliver_routes(const struct delivery *d)
{
    struct route *const out = memcpy(d->out, d->from, d->bytes);
    for (size_t i = 0; i < d->bytes / sizeof *out; i++)
        if (out[i].expert == EXPERT_NONE)
            out[i].weight = 0;
}

static bool
deliver(struct store *s, const struct delivery *d)
{
    const struct guess *guess = d->from;
    const struct verdict *verdict = d->from;
    switch (d->kind) {
    case DELIVER_BYTES: memcpy(d->out, d->from, d->bytes); return true;
    case DELIVER_ROUTES: deliver_routes(d); return true;
    case DELIVER_EXIT: return deliver_exit(s, d);
    case DELIVER_PHASES:
    case DELIVER_SPAN: trace_deliver(s, d); return true;
    case DELIVER_GUESS:
        if (!is_number(s, guess->confidence, d->layer))
            return false;
        memcpy(d->out, guess, sizeof *guess);
        return true;
    default:
        for (uint32_t i = 0; i < VERIFY_NODES; i++)
            if ((d->judged >> i & 1u) && !is_number(s, verdict->judged[i].confidence, d->layer))
                return false;
        memcpy(d->out, verdict, sizeof *verdict);
        return true;
    }
}

bool
cuda_store_wait(struct store *s, struct err *err)
{
    struct backend *b = s->backend;
    if (!device_here(b, &s->err))
        s->failed = true;
    if (s->queued && (s->failed || !finish(s)) && !b->lost)
        (void)cudaStreamSynchronize(s->stream); /* the arenas are to be used again */
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
    s->failed = b->lost; /* for good, then, and s->err says why */
    s->n_deliveries = 0;
    arena_reset(&s->args);
    arena_reset(&s->results);
    return ok;
}
