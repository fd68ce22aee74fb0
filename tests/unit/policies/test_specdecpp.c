/* SpecDec++ against a slow reference written from its formulas, on recorded runs with --exact. Every candidate's row is
 * computed anew, after all tokens before it and from an empty cache. Norm, head and the product of the p̂ are in
 * double. Greedy candidates are the draft's argmax. */
#include <math.h>

#include "engine/session/session_internal.h"
#include "kernels/tensor.h"
#include "policies/registry.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/exact_rig.h"
#include "tests/rigs/heads_rig.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

enum { CTX = 256, TOKENS = 60, WIDTH = 64 };

static const struct tinymodel target = {.seed = 5, .n_layers = 6, .calm_after = 2, .calm = 0.15f, .sharpness = 8};

enum draft { NEAR /* another model that is often right */, EQUAL /* the same model */, OWN /* the first layers */ };

/* An engine whose draft model has a random acceptance head. */
static struct engine *
open_exact(uint32_t blocks, enum draft which)
{
    struct tinymodel small = target;
    struct err err = {0};
    small.calm = which == EQUAL ? target.calm : target.calm * 0.4f;
    struct engine *engine =
        which == OWN ? exact_rig_own_layers(&target, "self:2", NULL) : exact_rig_tiny(&target, &small, NULL);
    assert_ok(heads_rig_accept(engine, blocks, 11, &err), err);
    return engine;
}

/* ---- the reference ---- */

struct reference {
    const struct engine *engine;
    const struct model *draft;
    uint32_t layer; /* of the draft model, where predictions are read */
    struct context *ctx;
    seq_t seq;
    token_t text[CTX]; /* (n) all tokens before the round's candidates */
    uint32_t n;
};

static void
open_reference(struct reference *ref, const struct engine *engine)
{
    const struct aux_model *h = &engine->aux[AUX_DRAFT];
    const struct context_options limits = {.ctx = CTX};
    struct err err = {0};
    *ref = (struct reference){.engine = engine,
                              .draft = h->model != NULL ? h->model : engine->model,
                              .layer = h->model != NULL ? h->model->desc.n_layers : h->exit_layer};
    assert_true(context_open(&ref->ctx, engine->ops, engine->backend, h->model != NULL ? h->weights : engine->weights,
                             &ref->draft->desc, &limits, &err));
    ref->seq = context_sequence(ref->ctx);
}

/* p̂ = softmax(V x_D + c)[accept], x_0 = norm(h), x_{i+1} = x_i + SiLU(W_i x_i + b_i). */
static double
probability(const struct accept_head *head, const struct model_desc *d, const float *h)
{
    float norm[WIDTH];
    double x[WIDTH], squares = 0, z[2];
    assert_int_equal(d->width, WIDTH);
    tensor_row(&d->final_norm, 0, norm);
    for (int i = 0; i < WIDTH; i++)
        squares += (double)h[i] * (double)h[i];
    for (int i = 0; i < WIDTH; i++)
        x[i] = (double)h[i] * (double)norm[i] / sqrt(squares / WIDTH + (double)d->rms_eps);
    for (uint32_t block = 0; block < head->n_blocks; block++) {
        double next[WIDTH];
        for (int i = 0; i < WIDTH; i++) {
            double y = (double)head->block[block].b[i];
            for (int k = 0; k < WIDTH; k++)
                y += (double)head->block[block].w[i * WIDTH + k] * x[k];
            next[i] = x[i] + y / (1 + exp(-y));
        }
        memcpy(x, next, sizeof x);
    }
    for (int j = 0; j < 2; j++) {
        z[j] = (double)head->c[j];
        for (int k = 0; k < WIDTH; k++)
            z[j] += (double)head->v[j * WIDTH + k] * x[k];
    }
    return exp(z[1]) / (exp(z[0]) + exp(z[1]));
}

/* Reads the text and the round's first candidates anew. Returns the last row's hidden state and argmax. */
static void
read_anew(struct reference *ref, const token_t *candidates, uint32_t n, float *hidden, token_t *argmax)
{
    float *z = calloc(ref->draft->desc.vocab, sizeof *z);
    context_truncate(ref->ctx, ref->seq, 0);
    assert_true(context_prefill(ref->ctx, ref->seq, ref->text, ref->n, NULL, NULL));
    assert_true(n == 0 || context_prefill(ref->ctx, ref->seq, candidates, n, NULL, NULL));
    const slot_t row = context_at(ref->ctx, ref->seq, ref->n + n - 1);
    assert_true(context_read_hidden(ref->ctx, row, ref->layer, hidden));
    assert_true(context_read_logits(ref->ctx, row, ref->layer, z));
    *argmax = 0;
    for (uint32_t t = 1; t < ref->draft->desc.vocab; t++)
        if (z[t] > z[*argmax])
            *argmax = (token_t)t;
    free(z);
}

/* ---- a run ---- */

struct stopping {
    double h;
    uint32_t min, max;
    float temperature;
};

struct seen { /* a recorded round */
    token_t candidate[VERIFY_NODES];
    token_t emitted[VERIFY_NODES];
    uint32_t n, n_emitted;
    const struct round_event *end;
};

static struct seen
read_round(const struct recorded_run *run, uint32_t number)
{
    struct seen seen = {0};
    for (size_t i = 0; i < run->n; i++) {
        const struct event *e = &run->events[i];
        if (e->round != number)
            continue;
        if (e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT)
            seen.candidate[seen.n++] = e->token.token;
        else if (e->type == EVENT_TOKEN && e->token.source != SOURCE_PROMPT)
            seen.emitted[seen.n_emitted++] = e->token.token;
        else if (e->type == EVENT_VERDICT && e->verdict.committed == 1)
            seen.emitted[seen.n_emitted++] = seen.candidate[e->verdict.candidate - 1];
        else if (e->type == EVENT_ROUND)
            seen.end = &e->round_end;
    }
    return seen;
}

static void
close_to(double got, double want, const char *what, uint32_t round, uint32_t i)
{
    if (!(fabs(got - want) <= 1e-6))
        fail_msg("round %u, candidate %u: %s is %.9g, the formulas say %.9g", (unsigned)round, (unsigned)i, what, got,
                 want);
}

/* Checks draws, stops, reports and the loads of the head of one round. */
static void
check_round(struct reference *ref, const struct recorded_run *run, uint32_t round, const struct seen *seen,
            const struct stopping *with, uint32_t wanted)
{
    const uint32_t most = wanted < with->max ? wanted : with->max;
    double all = 1;
    uint32_t i = 0;
    bool stopped = false;
    for (; i < most && !stopped; i++) {
        float hidden[WIDTH];
        token_t argmax, ignored;
        read_anew(ref, seen->candidate, i, hidden, &argmax);
        assert_less(i, seen->n);
        if (!(with->temperature > 0))
            assert_int_equal(seen->candidate[i], argmax);
        read_anew(ref, seen->candidate, i + 1, hidden, &ignored);
        const double p = probability(ref->engine->accept, &ref->draft->desc, hidden);
        all *= p;
        close_to(recorded_value(run, round, "p", (int)i), p, "p", round, i);
        close_to(recorded_value(run, round, "reject", (int)i), 1 - all, "1 - product", round, i);
        stopped = i + 1 >= with->min && 1 - all > with->h;
    }
    assert_int_equal(seen->n, i);
    assert_int_equal(seen->end->drafted, i);
    assert_string_equal(seen->end->stop_reason, stopped ? "h" : i == with->max ? "max" : "budget");
    if (i > 0)
        close_to(recorded_value(run, round, "stop", 0), 1 - all, "the last 1 - product", round, i);
    close_to(recorded_value(run, round, "stop", 1), with->h, "h", round, i);
    assert_true(isnan(recorded_value(run, round, "p", (int)i))); /* no value of a longer round is left */
    const struct model *model = ref->engine->model;
    const double calls = with->temperature > 0 ? 2 : 1, /* a prediction, and a distribution to draw from */
        bytes = calls * model_head_bytes(ref->draft, true) + (double)(ref->engine->accept->n_values * sizeof(float)),
                 loads = 1 + i * bytes / model_head_bytes(model, true);
    assert_near((double)seen->end->heads_loaded, loads, 1e-4);
}

static void
compare(struct engine *engine, const char *h, const char *min, const char *max, float temperature)
{
    const struct stopping with = {atof(h), (uint32_t)atoi(min), (uint32_t)atoi(max), temperature};
    const struct knob_setting set[] = {{"min", ""}, {"max", ""}, {"h", ""}};
    struct knob_setting given[3];
    struct session_options o = session_usual();
    struct reference ref;
    memcpy(given, set, sizeof given);
    snprintf(given[0].text, sizeof given[0].text, "%s", min);
    snprintf(given[1].text, sizeof given[1].text, "%s", max);
    snprintf(given[2].text, sizeof given[2].text, "%s", h);
    o.policy = "specdecpp";
    o.sampling.temperature = temperature;
    o.tokens = TOKENS;
    o.ctx = CTX;
    o.set = given;
    o.n_set = 3;
    struct recorded_run run = exact_rig_record(engine, &o);
    open_reference(&ref, engine);
    for (size_t i = 0; i < run.n; i++)
        if (run.events[i].type == EVENT_TOKEN && run.events[i].round == 0)
            ref.text[ref.n++] = run.events[i].token.token; /* the prompt, and the token of prefill */
    uint32_t left = TOKENS - 1, round = 0, by_h = 0, drafted = 0;
    while (left > 0) {
        const struct seen seen = read_round(&run, ++round);
        assert_non_null(seen.end);
        check_round(&ref, &run, round, &seen, &with, left - 1);
        assert_in_range(seen.n_emitted, 1, left);
        memcpy(ref.text + ref.n, seen.emitted, seen.n_emitted * sizeof *seen.emitted);
        ref.n += seen.n_emitted;
        left -= seen.n_emitted;
        by_h += strcmp(seen.end->stop_reason, "h") == 0;
        drafted += seen.n;
    }
    print_message("h %s, min %s, max %s: %u rounds, %u of them stopped by h, %u drafts\n", h, min, max, (unsigned)round,
                  (unsigned)by_h, (unsigned)drafted);
    if (with.h == 0) /* no uncertainty is allowed */
        assert_int_equal(drafted <= round * (with.min < with.max ? with.min : with.max), 1);
    assert_true(with.h < 1 || by_h == 0);
    assert_true(with.h != 0.7 || by_h > 0);
    context_close(ref.ctx);
    recorded_run_free(&run);
}

TEST(specdecpp_follows_its_formulas)
{
    for (uint32_t blocks = 0; blocks <= 3; blocks += 3) {
        struct engine *engine = open_exact(blocks, NEAR);
        compare(engine, "0.7", "2", "20", 0);
        compare(engine, "0.4", "1", "6", 0);
        compare(engine, "0.7", "2", "20", 0.8f);
        engine_close(engine);
    }
}

TEST(specdecpp_judges_the_targets_own_layers)
{
    struct engine *engine = open_exact(1, OWN);
    compare(engine, "0.7", "2", "20", 0);
    compare(engine, "0.7", "2", "20", 0.8f);
    engine_close(engine);
}

TEST(knobs_at_their_ends)
{
    struct engine *engine = open_exact(1, NEAR);
    compare(engine, "0", "2", "20", 0); /* the least number */
    compare(engine, "0", "1", "20", 0);
    compare(engine, "1", "2", "7", 0); /* the largest number */
    compare(engine, "1", "1", "32", 0);
    compare(engine, "0", "9", "3", 0); /* the bounds cross: the largest is used */
    engine_close(engine);
}

/* ---- rows that are kept ---- */

static struct {
    struct live *session;
    bool (*draft)(struct policy *const *, struct round *const *, uint32_t);
    uint32_t full; /* rounds after one that was accepted in full */
    bool was_full;
} watch;

/* When a round begins, the draft model has read all but the pending token: the last candidate's row has run. */
static bool
watch_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    const struct aux_sequence *h = &session_from(watch.session)->sequences[0].aux[AUX_DRAFT];
    if (r[0]->number > 1)
        assert_int_equal(context_length(h->of->ctx, h->seq), r[0]->n_tokens - 1);
    watch.full += watch.was_full;
    return watch.draft(p, r, n);
}

static bool
watch_observe(struct policy *p, struct round *r)
{
    (void)p;
    watch.was_full = r->drafted > 0 && r->accepted == r->drafted;
    return true;
}

TEST(no_row_of_an_accepted_draft_runs_twice)
{
    struct policy_ops watching = *policy_named(policy_registry, "specdecpp");
    const struct policy_ops *const registry[] = {&watching, NULL};
    watch.draft = watching.draft;
    watching.draft = watch_draft;
    watching.observe = watch_observe;
    struct session_options o = session_usual();
    struct engine *engine = open_exact(1, EQUAL);
    struct err err = {0};
    o.policies = registry;
    o.policy = "specdecpp";
    assert_ok(session_open(&watch.session, engine, &o, &err), err);
    session_generate(session_from(watch.session)); /* on this thread */
    assert_false(watch.session->ops->failed(watch.session, &err));
    assert_greater(watch.full, 3);
    live_close(watch.session);
    engine_close(engine);
}

/* ---- missing models ---- */

static void
refuses(struct engine *engine, const char *what)
{
    struct session_options o = session_usual();
    struct live *s;
    struct err err = {0};
    o.policy = "specdecpp";
    assert_false(session_open(&s, engine, &o, &err));
    assert_contains(err.text, what);
    o.policy = "ar";
    assert_ok(session_open(&s, engine, &o, &err), err);
    live_close(s);
}

TEST(missing_files_are_named)
{
    struct engine *engine = open_exact(1, NEAR);
    accept_head_free(engine->accept);
    engine->accept = NULL;
    refuses(engine, "specdecpp needs an acceptance head: give one with --accept FILE");
    engine_close(engine);
    engine = open_exact(1, OWN);
    engine->aux[AUX_DRAFT].exit_layer = 0;
    accept_head_free(engine->accept);
    engine->accept = NULL;
    refuses(engine, "specdecpp needs a draft model");
    engine_close(engine);
}
