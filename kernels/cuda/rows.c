#include "kernels/cuda/requests.h"

#include <stdio.h>

#include "kernels/cuda/profile.h"
#include "kernels/cuda/schedule.h"
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
    (void)profile_run(s, PROFILED_EMBED, (uint32_t)n, launch_embed(s->weights->model, s->dev, rows, n, s->stream),
                      "embedding tokens");
    return true;
}

/* ---- forward passes ---- */

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

/* Reserves `bytes` bytes of results for `out`, initialised to `byte`, and returns their address. Does nothing if `out`
 * is NULL. */
static void *
ask(struct kv_cache *s, enum delivery_kind kind, void *out, size_t bytes, int byte)
{
    if (out == NULL || bytes == 0)
        return NULL;
    void *there = cuda_kv_cache_result(s, (struct delivery){.kind = kind, .out = out, .bytes = bytes});
    if (there != NULL)
        (void)cuda_kv_cache_did(s, cudaMemsetAsync(there, byte, bytes, s->stream), "asking for experts");
    return there;
}

/* Copies the arguments of a forward pass, and of its exit rule if there is one, to the device. Routes that are
 * requested are empty until the pass writes them. Returns whether there is a layer to run. */
static bool
send_forward(struct kv_cache *s, const struct forward_pass *w, const struct exit_rule *rule, struct until_state *state,
             struct forward_args *a)
{
    const size_t depths = s->weights->desc.n_layers + 1, used = s->weights->desc.form.experts.used;
    const struct dev_set set = cuda_draft_outputs(s, rule != NULL ? rule->set : 0);
    void *groups;
    *a = (struct forward_args){.model = s->weights->model,
                               .kv_cache = s->dev,
                               .n = (uint32_t)w->n,
                               .first = request_first_layer(w),
                               .to = w->to,
                               .window = s->backend->window,
                               .touched = ask(s, DELIVER_BYTES, w->touched, depths * sizeof *a->touched, 0),
                               .routes_out = ask(s, DELIVER_ROUTES, used > 0 ? w->routes : NULL,
                                                 w->n * depths * used * sizeof *a->routes_out, 0xff)};
    if (rule == NULL && a->first > a->to)
        return false;
    a->rows = cuda_kv_cache_copy(s, w->rows, w->n, sizeof *w->rows);
    a->tails = cuda_kv_cache_copy(s, w->tails, w->n_tails, sizeof *w->tails);
    a->groups = cuda_kv_cache_take(s, &s->args, w->n, sizeof(struct row_group), &groups);
    if (a->groups != NULL)
        a->n_groups = group_rows(w, groups);
    if (rule != NULL)
        a->until = (struct until_args){.temperature = cuda_kv_cache_copy(s, rule->temperature, depths, sizeof(float)),
                                       .threshold = cuda_kv_cache_copy(s, rule->threshold, depths, sizeof(float)),
                                       .state = state,
                                       .set = set,
                                       .probe = cuda_draft_probe(s, &set)};
    a->n_steps = schedule_pass(s->weights, w, rule, s->steps);
    a->steps = cuda_kv_cache_copy(s, s->steps, a->n_steps + 1, sizeof *s->steps);
    return cuda_kv_cache_send(s) && a->first <= a->to;
}

static cudaError_t
launch_profiled(struct kv_cache *s, struct forward_args a)
{
    a.stamps = profile_forward(s, a.n, a.to - a.first + 1);
    if (s->failed)
        return cudaSuccess;
    return s->weights->rare ? launch_forward_moe(a, s->blocks, s->stream) : launch_forward(a, s->blocks, s->stream);
}

/* Launches a forward pass: once, or once per layer if every launch is waited for, so that an error names its layer. */
static void
run_layers(struct kv_cache *s, struct forward_args a)
{
    const uint32_t last = a.to, n = a.n_steps;
    const struct pass_step *const steps = a.steps;
    char doing[48];
    if (!s->backend->sync) {
        (void)cuda_kv_cache_did(s, launch_profiled(s, a), "running layers");
        return;
    }
    uint32_t begin = 0;
    for (bool ok = true; ok && a.first <= last; a.first++, begin += a.n_steps) {
        a.to = a.first;
        a.steps = steps + begin; /* the entry before the layer's first step takes the place of the beginning */
        for (a.n_steps = 0; begin + a.n_steps < n && s->steps[begin + a.n_steps + 1].layer == a.first;)
            a.n_steps++;
        snprintf(doing, sizeof doing, "running layer %u", (unsigned)a.first);
        ok = cuda_kv_cache_did(s, launch_profiled(s, a), doing);
    }
}

bool
rows_step(struct kv_cache *s, const struct forward_pass *w)
{
    struct forward_args a;
    if (!request_forward(s->limits, w))
        return false;
    if (cuda_kv_cache_begins(s) && send_forward(s, w, NULL, NULL, &a))
        run_layers(s, a);
    return true;
}

bool
rows_until(struct kv_cache *s, const struct forward_pass *w, const struct exit_rule *rule, struct exit_result *out)
{
    struct forward_args a;
    void *state;
    if (!request_until(s->limits, w, rule))
        return false;
    if (!cuda_kv_cache_begins(s))
        return true;
    const size_t predicted = (s->weights->desc.n_layers + 1u) * sizeof(struct prediction);
    struct until_state *there = cuda_kv_cache_take(s, &s->results, 1, sizeof *there + predicted, &state);
    if (s->failed || !cuda_kv_cache_did(s, cudaMemsetAsync(there, 0, sizeof *there, s->stream), "clearing results"))
        return true;
    if (send_forward(s, w, rule, there, &a))
        (void)cuda_kv_cache_did(s, launch_profiled(s, a), "running layers until one exits");
    const uint32_t outputs = a.until.set.number > 0 ? a.until.set.n : s->weights->sizes.vocab;
    const struct prediction_args predictions = {.logits = s->dev.until_logits,
                                                .vocab = outputs,
                                                .n = s->weights->sizes.n_layers,
                                                .tokens = s->weights->sizes.drafter.tokens,
                                                .pieces = s->dev.head_pieces,
                                                .until = there,
                                                .temperature = a.until.temperature,
                                                .set = a.until.set,
                                                .predictions = (struct prediction *)(there + 1)};
    if (!s->failed && profile_run(s, PROFILED_PREDICTIONS, 1, launch_predictions(predictions, s->stream),
                                  "computing the layers' predictions"))
        (void)cuda_kv_cache_deliver(
            s, (struct delivery){.kind = DELIVER_EXIT, .out = out, .from = state, .layer = w->rows[w->n - 1].from});
    return true;
}

/* ---- features ---- */

/* Gives n rows that a block drafter was fed their keys and values in all layers. */
static void
fill_layers(struct kv_cache *s, const struct row *rows, uint32_t n)
{
    void *host;
    const uint32_t to = request_depth(&s->weights->desc, &s->desc);
    struct forward_args a = {.model = s->weights->model,
                             .kv_cache = s->dev,
                             .rows = cuda_kv_cache_take(s, &s->args, n, sizeof *rows, &host),
                             .n = n,
                             .first = 1,
                             .to = to,
                             .feeds = true,
                             .window = s->backend->window};
    for (uint32_t i = 0; i < n && host != NULL; i++) {
        struct row *r = (struct row *)host + i;
        *r = rows[i];
        r->from = r->n_after = 0;
    }
    a.n_steps = schedule_feed(s->weights, to, s->steps);
    a.steps = cuda_kv_cache_copy(s, s->steps, a.n_steps + 1, sizeof *s->steps);
    if (cuda_kv_cache_send(s))
        run_layers(s, a);
}

bool
rows_feed(struct kv_cache *s, const struct row *rows, size_t n, const float *features, const uint32_t *before)
{
    const size_t numbers = features != NULL ? n * s->weights->sizes.drafter.features : 0;
    if (!request_feed(s->limits, rows, n, features, before))
        return false;
    if (n == 0 || !cuda_kv_cache_alive(s))
        return true;
    const struct feed_args a = {.model = s->weights->model,
                                .kv_cache = s->dev,
                                .rows = cuda_kv_cache_copy(s, rows, n, sizeof *rows),
                                .features = cuda_kv_cache_copy(s, features, numbers, sizeof *features),
                                .before = features != NULL ? NULL : cuda_kv_cache_copy(s, before, n, sizeof *before),
                                .n = (uint32_t)n,
                                .blocks = s->blocks};
    if (cuda_kv_cache_send(s) &&
        profile_run(s, PROFILED_EMBED, a.n, launch_feed(a, &s->weights->sizes, s->stream), "taking features") &&
        s->weights->sizes.drafter.block && cuda_kv_cache_begins(s))
        fill_layers(s, rows, a.n);
    return true;
}
