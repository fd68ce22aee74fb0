/* Auxiliary models: their rows match the target's text bit for bit, whatever happens in between. With the target's own
 * first layers `sd` equals `layerskip`. Loads are in units of the target's. */
#include <unistd.h>

#include "engine/session/session_internal.h"
#include "policies/chain.h"
#include "policies/registry.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

static const struct tinymodel target = {.seed = 5, .n_layers = 6, .calm_after = 2, .calm = 0.15f, .sharpness = 8};

/* ---- rows ---- */

/* A policy that drafts a random number of tokens with the auxiliary model. Before that it compares the auxiliary
 * model's rows with those of a context that reads all tokens anew. */
static struct {
    struct live *session;
    struct context *scratch;
    seq_t seq;
    uint64_t random;
    uint32_t most; /* the most drafts; 0: a random number */
    uint32_t rounds, full, rejected;
    uint32_t baseline_in, restart_in, absent_from, absent_to; /* rounds */
} watch;

static void
compare_rows(struct round *r, struct round *d)
{
    const struct model_desc *m = &session_from(watch.session)->engine->aux[AUX_DRAFT].model->desc;
    float *got = calloc(m->width, sizeof *got), *want = calloc(m->width, sizeof *want);
    float *logits = calloc(m->vocab, sizeof *logits), *want_logits = calloc(m->vocab, sizeof *want_logits);
    token_t *read = calloc(r->n_tokens, sizeof *read);
    for (uint32_t i = 0; i < r->n_tokens; i++)
        read[i] = (uint32_t)r->tokens[i] < m->vocab ? r->tokens[i] : 0;
    assert_int_equal(context_length(d->ctx, d->seq), r->n_tokens);
    for (uint32_t i = 0; i < r->n_tokens; i++)
        assert_int_equal(context_token(d->ctx, context_at(d->ctx, d->seq, i)), read[i]);
    context_truncate(watch.scratch, watch.seq, 0);
    assert_true(context_prefill(watch.scratch, watch.seq, read, r->n_tokens, NULL, NULL));
    const slot_t slot = round_slot(d, 0), fresh = context_at(watch.scratch, watch.seq, r->n_tokens - 1);
    for (uint32_t l = 1; l <= m->n_layers; l++) {
        assert_true(context_read_hidden(d->ctx, slot, l, got));
        assert_true(context_read_hidden(watch.scratch, fresh, l, want));
        assert_memory_equal(got, want, m->width * sizeof *got);
    }
    assert_true(context_read_logits(d->ctx, slot, m->n_layers, logits));
    assert_true(context_read_logits(watch.scratch, fresh, m->n_layers, want_logits));
    assert_memory_equal(logits, want_logits, m->vocab * sizeof *logits);
    free(got);
    free(want);
    free(logits);
    free(want_logits);
    free(read);
}

static void
ask(enum control_kind kind)
{
    session_control(watch.session, kind, NULL, NULL, 0);
}

static bool
watch_one(struct policy *p, struct round *r)
{
    (void)p;
    watch.rounds++;
    if (watch.rounds == watch.baseline_in)
        ask(CONTROL_BASELINE);
    if (watch.rounds == watch.restart_in)
        ask(CONTROL_RESTART);
    if (watch.rounds >= watch.absent_from && watch.rounds < watch.absent_to)
        return true; /* as a policy without auxiliary models */
    if (round_full(r))
        return true;
    struct round *d;
    if (!rounds_model(&r, 1, AUX_DRAFT, &d))
        return false;
    assert_ptr_not_equal(d->ctx, r->ctx);
    compare_rows(r, d);
    const uint32_t most = watch.most > 0 ? watch.most : 1 + (uint32_t)(splitmix64(&watch.random) % 6);
    const struct chain_rule rule = {.exit_layer = d->exit_layer, .most = most, .full = "k"};
    return chain_draft(&d, 1, &rule, NULL);
}

static bool
watch_draft(struct policy *const *p, struct round *const *r, uint32_t n)
{
    return rounds_each(p, r, n, watch_one);
}

static bool
watch_observe(struct policy *p, struct round *r)
{
    (void)p;
    watch.full += r->drafted > 0 && r->accepted == r->drafted;
    watch.rejected += r->accepted < r->drafted;
    return true;
}

static const struct policy_ops watching = {.name = "watching",
                                           .title = "",
                                           .paper = "",
                                           .needs = NEEDS(AUX_DRAFT),
                                           .draft = watch_draft,
                                           .observe = watch_observe};

/* Runs on this thread, so that the policy may read contexts. */
static void
watch_run(struct engine *engine, uint32_t runs, float temperature)
{
    static const struct policy_ops *const registry[] = {&watching, NULL};
    struct session_options o = session_usual();
    struct err err = {0};
    o.policies = registry;
    o.policy = "watching";
    o.sampling.temperature = temperature;
    assert_ok(session_open(&watch.session, engine, &o, &err), err);
    const struct aux_model *draft = &engine->aux[AUX_DRAFT];
    const struct context_options limits = {.ctx = o.ctx};
    assert_true(
        context_open(&watch.scratch, engine->ops, engine->backend, draft->weights, &draft->model->desc, &limits, &err));
    watch.seq = context_sequence(watch.scratch);
    for (uint32_t i = 0; i < runs; i++) {
        session_generate(session_from(watch.session));
        if (watch.session->ops->failed(watch.session, &err))
            fail_msg("%s", err.text);
    }
    assert_int_equal(seq_emitted(&session_from(watch.session)->sequences[0]), o.tokens);
    context_close(watch.scratch);
    live_close(watch.session);
}

TEST(rows_of_an_auxiliary_model_are_those_of_the_tokens_read_anew)
{
    static const char *const backends[] = {"cpu", "check"};
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        struct engine *engine;
        assert_true(session_fixture_pair(&engine, &target, NULL, backends[i], 2));
        memset(&watch, 0, sizeof watch);
        watch.random = seed_or(3);
        watch_run(engine, 1, 0);
        assert_greater(watch.full, 2);
        assert_greater(watch.rejected, 2); /* rounds ended in both ways */
        watch_run(engine, 1, 1);
        engine_close(engine);
    }
}

TEST(auxiliary_models_follow_through_baseline_restart_and_rounds_without_them)
{
    struct engine *engine;
    assert_true(session_fixture_pair(&engine, &target, NULL, "cpu", 1));
    memset(&watch, 0, sizeof watch);
    watch.baseline_in = 3;
    watch.absent_from = 5;
    watch.absent_to = 9;
    watch.restart_in = 12;
    watch_run(engine, 2, 0);
    assert_greater(watch.rounds, 14);
    engine_close(engine);
}

TEST(vocabularies_may_differ_in_size)
{
    for (int larger = 0; larger < 2; larger++) {
        struct engine *engine;
        struct tinymodel whole = target, draft = target;
        draft.first_layers = 2;
        *(larger ? &draft.padding : &whole.padding) = 80;
        assert_true(session_fixture_pair(&engine, &whole, &draft, "check", 1));
        memset(&watch, 0, sizeof watch);
        watch.random = 9;
        watch_run(engine, 1, 0);
        watch_run(engine, 1, 1.5f);
        engine_close(engine);
    }
}

/* ---- sd and layerskip ---- */

struct rounds {
    struct event events[4096]; /* drafts, verdicts and rounds */
    size_t n;
};

static void
note_round(void *user, struct live *s, const struct event *e)
{
    (void)s;
    struct rounds *r = user;
    if ((e->type == EVENT_TOKEN || e->type == EVENT_VERDICT || e->type == EVENT_ROUND || e->type == EVENT_LAYER) &&
        r->n < sizeof r->events / sizeof *r->events)
        r->events[r->n++] = *e;
}

static void
same(const struct event *a, const struct event *b)
{
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->round, b->round);
    if (a->type == EVENT_TOKEN) {
        assert_int_equal(a->token.token, b->token.token);
        assert_int_equal(a->token.exit_layer, b->token.exit_layer);
        assert_int_equal(a->token.source, b->token.source);
        assert_memory_equal(&a->token.confidence, &b->token.confidence, sizeof a->token.confidence);
    } else if (a->type == EVENT_VERDICT) {
        assert_int_equal(a->verdict.accepted, b->verdict.accepted);
    } else if (a->type == EVENT_LAYER) {
        assert_int_equal(a->layer.layer, b->layer.layer);
        assert_int_equal(a->layer.token, b->layer.token);
    } else {
        assert_int_equal(a->round_end.drafted, b->round_end.drafted);
        assert_int_equal(a->round_end.accepted, b->round_end.accepted);
        assert_int_equal(a->round_end.exit_layer, b->round_end.exit_layer);
        assert_float_equal(a->round_end.layers_loaded, b->round_end.layers_loaded, 0);
        assert_float_equal(a->round_end.heads_loaded, b->round_end.heads_loaded, 0);
    }
}

TEST(sd_with_the_targets_own_layers_is_layerskip_round_by_round)
{
    static struct rounds sd, layerskip;
    struct engine *engine;
    char path[128];
    struct err err = {0};
    assert_ok(tinymodel_write_temp(path, sizeof path, &target, &err), err);
    assert_ok(session_rig_engine_with(&engine, path, "self:2", "cpu", 1, &err), err);
    unlink(path);
    for (int temperature = 0; temperature <= 1; temperature++) {
        static const struct knob_setting k = {"k", "4"}, own[] = {{"exit_layer", "2"}, {"gamma", "4"}};
        struct session_options o = session_usual();
        struct session_rig_result a, b;
        o.sampling.temperature = (float)temperature;
        o.probe = PROBE_ALL;
        o.policy = "sd";
        o.set = &k;
        o.n_set = 1;
        sd.n = layerskip.n = 0;
        session_run(engine, &o, note_round, &sd, &a);
        o.policy = "layerskip";
        o.set = own;
        o.n_set = 2;
        session_run(engine, &o, note_round, &layerskip, &b);
        assert_greater(sd.n, 100);
        assert_greater(a.metrics.total.accepted, 10);
        assert_int_equal(sd.n, layerskip.n);
        for (size_t i = 0; i < sd.n; i++)
            same(&sd.events[i], &layerskip.events[i]);
        session_rig_free(&a);
        session_rig_free(&b);
    }
    engine_close(engine);
}

/* ---- policy changes during a run ---- */

struct switcher {
    uint64_t random;
    uint32_t to_sd;
};

static void
switch_policy(void *user, struct live *s, const struct event *e)
{
    struct switcher *w = user;
    if (!event_is_control(e, "state", "paused"))
        return;
    uint32_t n = 0;
    while (policy_registry[n] != NULL)
        n++;
    const bool sd = splitmix64(&w->random) % 2 == 0; /* sd half of the time, otherwise any policy */
    w->to_sd += sd;
    session_control(s, CONTROL_POLICY, NULL, sd ? "sd" : policy_registry[splitmix64(&w->random) % n]->name, 0);
    session_control(s, CONTROL_STEP_ROUNDS, NULL, NULL, 1 + (uint32_t)(splitmix64(&w->random) % 3));
}

TEST(switching_to_and_from_a_draft_model_keeps_autoregressive_tokens)
{
    static const char *const backends[] = {"cpu", "check"};
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        struct engine *engine;
        assert_true(session_fixture_pair(&engine, &target, NULL, backends[i], 2));
        struct session_options o = session_usual();
        struct session_rig_result ar, got;
        o.policy = "ar";
        session_run(engine, &o, NULL, NULL, &ar);
        for (uint32_t run = 0; run < 4; run++) {
            struct switcher w = {.random = seed_or(11) + run};
            o.paused = true;
            session_run(engine, &o, switch_policy, &w, &got);
            assert_int_equal(got.n, ar.n);
            assert_memory_equal(got.tokens, ar.tokens, ar.n * sizeof *ar.tokens);
            assert_greater(w.to_sd, 1);
            assert_greater(got.metrics.total.accepted, 5);
            session_rig_free(&got);
        }
        session_rig_free(&ar);
        engine_close(engine);
    }
}

/* ---- accounts ---- */

/* The draft model has two of the target's six equal layers and its head, so K drafts take K of its forward passes. */
static void
check_loads(void *user, struct live *s, const struct event *e)
{
    (void)s;
    uint32_t *rounds = user;
    if (e->type != EVENT_ROUND || e->round_end.drafted < 3)
        return;
    ++*rounds;
    assert_float_equal(e->round_end.layers_loaded, 6 + 3 * 2, 1e-5f);
    assert_float_equal(e->round_end.heads_loaded, 1 + 3, 1e-5f);
    assert_int_equal(e->round_end.exit_layer, -1);
}

TEST(loads_are_in_units_of_the_targets)
{
    static const struct knob_setting k = {"k", "3"};
    struct engine *engine;
    uint32_t rounds = 0;
    assert_true(session_fixture_pair(&engine, &target, NULL, "cpu", 1));
    struct session_options o = session_usual();
    struct session_rig_result r;
    o.policy = "sd";
    o.set = &k;
    o.n_set = 1;
    session_run(engine, &o, check_loads, &rounds, &r);
    assert_greater(rounds, 5);
    assert_greater(r.metrics.total.accepted, 10);
    session_rig_free(&r);
    engine_close(engine);
    struct tinymodel narrow = target; /* a quarter of a layer's matrices, half of the head */
    narrow.width = 32;
    narrow.head_dim = 16;
    assert_true(session_fixture_pair(&engine, &target, &narrow, "cpu", 1));
    struct live *s;
    struct err err = {0};
    assert_ok(session_open(&s, engine, &o, &err), err);
    const struct context_options *limits = context_limits(session_from(s)->aux[AUX_DRAFT].ctx);
    const double layer = model_layer_bytes(engine->model, false), its = model_layer_bytes(engine->aux[0].model, false);
    assert_float_equal((float)limits->head_load, 0.5f, 1e-6f);
    assert_float_equal((float)limits->layer_load, (float)(its / layer), 1e-6f);
    live_close(s);
    engine_close(engine);
}

/* ---- missing models ---- */

TEST(a_policy_without_its_model_names_the_missing_model)
{
    struct engine *engine;
    char path[128];
    struct err err = {0};
    assert_ok(tinymodel_write_temp(path, sizeof path, &target, &err), err);
    assert_ok(session_rig_engine_with(&engine, path, "none", "cpu", 1, &err), err);
    unlink(path);
    struct session_options o = session_usual();
    struct live *s;
    o.policy = "sd";
    assert_false(session_open(&s, engine, &o, &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_contains(err.text, "policy sd needs a draft model: give one with --draft PATH");
    o.policy = "ar";
    assert_ok(session_open(&s, engine, &o, &err), err);
    assert_false(s->ops->post(s, &(struct control){.kind = CONTROL_POLICY, .text = "sd"}, &err));
    assert_contains(err.text, "needs a draft model");
    live_close(s);
    engine_close(engine);
}
