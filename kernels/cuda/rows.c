#include "kernels/cuda/requests.h"

#include <stdio.h>

#include "kernels/cuda/schedule.h"
#include "kernels/cuda/trace.h"
#include "kernels/experts.h"

bool
rows_trunk(struct kv_cache *s, seq_t seq, uint32_t first, const slot_t *slots, size_t n)
{
    if (!request_trunk(s->limits, seq, first, slots, n))
        return false;
    if (n > 0 && cuda_kv_cache_alive(s))
        (void)cuda_kv_cache_did(s, launch_trunk(s->dev, seq, first, slots, n, s->stream), "taking a trunk table");
    return true;
}

bool
rows_embed(struct kv_cache *s, const struct row *rows, size_t n)
{
    if (!request_embed(s->limits, rows, n) || n > UINT32_MAX)
        return false;
    if (n == 0 || !cuda_kv_cache_alive(s))
        return true;
    uint64_t *const stamps = trace_begin(s, TRACED_EMBED, (uint32_t)n);
    (void)cuda_kv_cache_did(s, launch_embed(s->weights->model, s->dev, rows, n, s->stream), "embedding tokens");
    trace_end(s, stamps);
    return true;
}

bool
rows_feed(struct kv_cache *s, const struct row *rows, size_t n, const float *features, const uint32_t *before)
{
    const size_t numbers = features != NULL ? n * s->weights->sizes.drafter.features : 0;
    struct arena_piece args;
    if (!request_feed(s->limits, rows, n, features, before))
        return false;
    if (n == 0 || !cuda_kv_cache_alive(s) ||
        !cuda_kv_cache_args(
            s, piece_room(n, sizeof *rows) + piece_room(numbers, sizeof *features) + piece_room(n, sizeof *before),
            &args))
        return true;
    const struct feed_args a = {.model = s->weights->model,
                                .kv_cache = s->dev,
                                .rows = piece_copy(&args, rows, n, sizeof *rows),
                                .features = piece_copy(&args, features, numbers, sizeof *features),
                                .before = features != NULL ? NULL : piece_copy(&args, before, n, sizeof *before),
                                .n = (uint32_t)n,
                                .blocks = s->blocks};
    if (cuda_kv_cache_send(s, &args)) {
        uint64_t *const stamps = trace_begin(s, TRACED_EMBED, a.n);
        (void)cuda_kv_cache_did(s, launch_feed(a, &s->weights->sizes, s->stream), "taking features");
        trace_end(s, stamps);
    }
    return true;
}

/* ---- forward passes ---- */

/* Checks that no path is longer than the tables for partial results. */
static bool
paths_fit(const struct kv_cache *s, const struct forward_pass *w)
{
    for (size_t i = 0; i < w->n; i++)
        if ((uint64_t)w->rows[i].n_trunk + w->rows[i].n_tail > s->desc.slots)
            return false;
    return true;
}

/* Groups consecutive rows that share their trunk. Returns the number of groups. */
static uint32_t
group_rows(const struct forward_pass *w, struct row_group *groups)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        const struct row *r = &w->rows[i], *before = i > 0 ? r - 1 : NULL;
        if (before != NULL && groups[n - 1].n < ATTEND_PAIRS && r->seq == before->seq && r->n_trunk == before->n_trunk)
            groups[n - 1].n++;
        else
            groups[n++] = (struct row_group){.first = i, .n = 1};
    }
    return n;
}

/* Copies the arguments of a forward pass, and of its exit rule if there is one, to the device. */
static bool
send_forward(struct kv_cache *s, const struct forward_pass *w, const struct exit_rule *rule, struct until_state *state,
             struct forward_args *a)
{
    const size_t depths = s->weights->desc.n_layers + 1;
    const uint32_t first = request_first_layer(w), layers = first <= w->to ? w->to + 1 - first : 0;
    struct arena_piece args;
    void *groups, *steps;
    if (!cuda_kv_cache_args(s,
                            piece_room(w->n, sizeof *w->rows) + piece_room(w->n_tails, sizeof *w->tails) +
                                piece_room(w->n, sizeof(struct row_group)) +
                                piece_room(schedule_room(layers), sizeof(struct pass_step)) +
                                2 * piece_room(depths, sizeof(float)),
                            &args))
        return false;
    *a = (struct forward_args){.model = s->weights->model,
                               .kv_cache = s->dev,
                               .rows = piece_copy(&args, w->rows, w->n, sizeof *w->rows),
                               .tails = piece_copy(&args, w->tails, w->n_tails, sizeof *w->tails),
                               .groups = piece_put(&args, w->n, sizeof(struct row_group), &groups),
                               .n = (uint32_t)w->n,
                               .first = first,
                               .to = w->to,
                               .window = s->backend->window};
    a->n_groups = group_rows(w, groups);
    if (rule != NULL)
        a->until = (struct until_args){.temperature = piece_copy(&args, rule->temperature, depths, sizeof(float)),
                                       .threshold = piece_copy(&args, rule->threshold, depths, sizeof(float)),
                                       .state = state,
                                       .trained = weights_asked(s->weights, rule->head)};
    const size_t used = args.used; /* the list is last, so that only its own length is sent */
    a->steps = piece_put(&args, schedule_room(layers), sizeof(struct pass_step), &steps);
    a->n_steps = schedule_pass(s->weights, w, rule, steps);
    args.used = used + piece_room(a->n_steps + 1, sizeof(struct pass_step));
    s->steps = steps;
    return cuda_kv_cache_send(s, &args);
}

/* Reserves `bytes` bytes of results for `out`, initialised to `byte`; *there receives their address. Does nothing if
 * `out` is NULL. */
static bool
ask(struct kv_cache *s, enum delivery_kind kind, void *out, size_t bytes, int byte, void **there)
{
    struct arena_piece results;
    void *host;
    *there = NULL;
    if (out == NULL || bytes == 0)
        return true;
    if (!cuda_kv_cache_results(s, piece_room(bytes, 1), &results))
        return false;
    *there = piece_put(&results, bytes, 1, &host);
    return cuda_kv_cache_did(s, cudaMemsetAsync(*there, byte, bytes, s->stream), "asking for experts") &&
           cuda_kv_cache_deliver(s, (struct delivery){.kind = kind, .out = out, .from = host, .bytes = bytes});
}

/* Reserves the results for routes if they are requested; they are empty until the forward pass writes them. */
static bool
ask_for_experts(struct kv_cache *s, const struct forward_pass *w, uint32_t **touched, struct route **routes_out)
{
    const size_t depths = s->weights->desc.n_layers + 1u, used = s->weights->desc.form.experts.used;
    void *counts, *routes;
    if (!ask(s, DELIVER_BYTES, w->touched, depths * sizeof **touched, 0, &counts) ||
        !ask(s, DELIVER_ROUTES, used > 0 ? w->routes : NULL, w->n * depths * used * sizeof **routes_out, 0xff, &routes))
        return false;
    *touched = counts;
    *routes_out = routes;
    return true;
}

static cudaError_t
launch_traced(struct kv_cache *s, struct forward_args a)
{
    a.stamps = trace_forward(s, a.n, a.to - a.first + 1);
    if (s->failed)
        return cudaSuccess;
    return s->weights->has_experts || s->weights->has_alibi ? launch_forward_moe(a, s->blocks, s->stream)
                                                            : launch_forward(a, s->blocks, s->stream);
}

/* Launches a forward pass: once, or once per layer if every launch is waited for, so that an error names its layer. */
static void
run_layers(struct kv_cache *s, struct forward_args a)
{
    const uint32_t last = a.to, n = a.n_steps;
    const struct pass_step *const steps = a.steps;
    char doing[48];
    if (!s->backend->sync) {
        (void)cuda_kv_cache_did(s, launch_traced(s, a), "running layers");
        return;
    }
    uint32_t begin = 0;
    for (bool ok = true; ok && a.first <= last; a.first++, begin += a.n_steps) {
        a.to = a.first;
        a.steps = steps + begin; /* the entry before the layer's first step takes the place of the beginning */
        for (a.n_steps = 0; begin + a.n_steps < n && s->steps[begin + a.n_steps + 1].layer == a.first;)
            a.n_steps++;
        snprintf(doing, sizeof doing, "running layer %u", (unsigned)a.first);
        ok = cuda_kv_cache_did(s, launch_traced(s, a), doing);
    }
}

bool
rows_step(struct kv_cache *s, const struct forward_pass *w)
{
    struct forward_args a;
    if (!request_forward(s->limits, w) || !paths_fit(s, w))
        return false;
    uint32_t *touched;
    struct route *routes_out;
    if (cuda_kv_cache_stopped(s) || !ask_for_experts(s, w, &touched, &routes_out) || request_first_layer(w) > w->to ||
        !send_forward(s, w, NULL, NULL, &a))
        return true;
    a.touched = touched;
    a.routes_out = routes_out;
    s->stoppable = true;
    run_layers(s, a);
    return true;
}

bool
rows_until(struct kv_cache *s, const struct forward_pass *w, const struct exit_rule *rule, struct exit_result *out)
{
    const size_t depths = s->weights->desc.n_layers + 1;
    struct forward_args a;
    struct arena_piece results;
    void *state, *last, *all;
    if (!request_until(s->limits, w, rule) || !paths_fit(s, w))
        return false;
    if (cuda_kv_cache_stopped(s))
        return true;
    if (!cuda_kv_cache_results(s,
                               piece_room(1, sizeof(struct until_state)) + piece_room(1, sizeof(struct prediction)) +
                                   piece_room(depths, sizeof(struct prediction)),
                               &results))
        return true;
    struct until_state *there = piece_put(&results, 1, sizeof *there, &state);
    struct prediction *last_there = piece_put(&results, 1, sizeof *last_there, &last);
    struct prediction *all_there = piece_put(&results, depths, sizeof *all_there, &all);
    uint32_t *touched;
    struct route *routes_out;
    if (!cuda_kv_cache_did(s, cudaMemsetAsync(there, 0, sizeof *there, s->stream), "clearing results") ||
        !ask_for_experts(s, w, &touched, &routes_out) || !send_forward(s, w, rule, there, &a))
        return true;
    a.touched = touched;
    a.routes_out = routes_out;
    s->stoppable = true;
    if (a.first <= a.to && !cuda_kv_cache_did(s, launch_traced(s, a), "running layers until one exits"))
        return true;
    uint64_t *const stamps = trace_begin(s, TRACED_PREDICTIONS, 1);
    const bool ok =
        cuda_kv_cache_did(s, launch_until_predictions(a, all_there, last_there, &s->weights->sizes, s->stream),
                          "computing the layers' predictions");
    trace_end(s, stamps);
    if (ok)
        (void)cuda_kv_cache_deliver(s, (struct delivery){.kind = DELIVER_EXIT,
                                                         .out = out,
                                                         .from = state,
                                                         .layer = w->rows[w->n - 1].from,
                                                         .last = last,
                                                         .all = all,
                                                         .probed = out->probed});
    return true;
}
