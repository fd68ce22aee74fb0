/* Predictions of a draft model's layers: emitted as its own, for every row that it read, and without cost. */
#include <unistd.h>

#include "base/rng.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

static const struct tinymodel target = {.seed = 5, .n_layers = 6, .calm_after = 2, .calm = 0.15f, .sharpness = 8};

enum { POSITIONS = 256, DEPTH = 4, ROUNDS = 128 };

struct heard {                                                                            /* of one run */
    struct layer_event policy[POSITIONS], scope[POSITIONS][DEPTH + 1], target[POSITIONS]; /* its last layer's */
    uint32_t by_policy[POSITIONS], by_scope[POSITIONS][DEPTH + 1];                        /* how often */
    uint32_t aux, prompt, length; /* numbers of events and of positions */
    token_t token[POSITIONS];
    float layers_loaded[ROUNDS], heads_loaded[ROUNDS];
    uint32_t untested;          /* rounds whose last token was accepted without a row */
    uint32_t bonuses, late;     /* rounds accepted in full; those whose last token was not read in the round */
    uint32_t rounds, switch_at; /* the round after which a control is posted; 0: none */
    uint32_t before;            /* positions at that time */
    enum control_kind kind;
    const char *switch_to;
};

static void
hear_layer(struct heard *h, const struct event *e)
{
    const struct layer_event *l = &e->layer;
    if (l->model == MODEL_TARGET) {
        if (l->layer == 6 && l->probed_by == PROBED_SCOPE)
            h->target[l->pos] = *l;
        return;
    }
    assert_int_equal(l->model, MODEL_DRAFT);
    assert_int_equal(l->head, 0);
    assert_in_range(l->layer, 1, DEPTH);
    h->aux++;
    if (l->probed_by == PROBED_SCOPE) {
        h->scope[l->pos][l->layer] = *l;
        h->by_scope[l->pos][l->layer]++;
    } else {
        assert_int_equal(l->probed_by, PROBED_POLICY);
        h->policy[l->pos] = *l;
        h->by_policy[l->pos]++;
    }
}

static void
hear(void *user, struct live *s, const struct event *e)
{
    struct heard *h = user;
    if (e->type == EVENT_LAYER)
        hear_layer(h, e);
    if (e->type == EVENT_TOKEN && e->token.source == SOURCE_DRAFT)
        h->token[e->token.pos] = e->token.token; /* until the target's verdict */
    else if (e->type == EVENT_TOKEN) {
        h->token[e->token.pos] = e->token.token;
        h->length = e->token.pos + 1;
        h->prompt += e->token.source == SOURCE_PROMPT;
    }
    if (e->type == EVENT_ROUND) {
        h->untested += e->round_end.emitted == e->round_end.accepted;
        h->bonuses += e->round_end.accepted > 0 && e->round_end.accepted == e->round_end.drafted;
        h->late += e->round_end.drafted > 0 && h->by_scope[h->length - 1][1] == 0;
        h->layers_loaded[h->rounds] = e->round_end.layers_loaded;
        h->heads_loaded[h->rounds++] = e->round_end.heads_loaded;
    }
    if (!event_is_control(e, "state", "paused"))
        return;
    if (h->rounds > 0) {
        session_control(s, h->kind, NULL, h->switch_to, 0);
        h->before = h->length;
    }
    session_control(s, CONTROL_STEP_ROUNDS, NULL, NULL, h->rounds == 0 ? h->switch_at : 1000);
}

static struct session_options
drafting(enum probe_mode probe)
{
    static const struct knob_setting k = {"k", "4"};
    struct session_options o = session_usual();
    o.policy = "sd";
    o.set = &k;
    o.n_set = 1;
    o.probe = probe;
    return o;
}

static struct heard *
run(struct engine *engine, const struct session_options *o, uint32_t switch_at, enum control_kind kind,
    const char *switch_to)
{
    struct heard *h = calloc(1, sizeof *h);
    struct session_rig_result r;
    struct session_options whole = *o;
    assert_non_null(h);
    h->switch_at = switch_at;
    h->kind = kind;
    h->switch_to = switch_to;
    whole.paused = switch_at > 0;
    session_run(engine, &whole, hear, h, &r);
    if (o->policy[0] == 's')
        assert_greater(r.metrics.total.accepted, 5);
    session_rig_free(&r);
    return h;
}

static struct engine *
pair(const struct tinymodel *draft, const char *backend)
{
    struct engine *engine;
    assert_true(session_fixture_pair(&engine, &target, draft, backend, 1));
    return engine;
}

static void
check_position(const struct heard *h, uint32_t pos, uint32_t depth)
{
    for (uint32_t l = 1; l <= depth; l++) {
        const struct layer_event *g = &h->scope[pos][l];
        assert_int_equal(h->by_scope[pos][l], 1);
        assert_int_equal(g->final_agrees, g->token == h->target[pos].token);
        assert_at_least(g->rank_final, 0);
        assert_greater(g->kl_final, -1e-4f);
    }
    assert_int_equal(h->scope[pos][depth].rank_final, 0); /* compared with the draft model's own last layer */
    assert_less(h->scope[pos][depth].kl_final, 1e-4f);
    if (h->by_policy[pos] > 0) { /* the scope probes the row that was used for drafting */
        assert_int_equal(h->policy[pos].token, h->scope[pos][depth].token);
        assert_memory_equal(&h->policy[pos].confidence, &h->scope[pos][depth].confidence, sizeof(float));
    }
}

TEST(every_layer_of_the_draft_model_is_looked_at_once_at_every_row_that_it_keeps)
{
    static const char *const backends[] = {"cpu", "check"};
    for (int i = 0; i < 4; i++) {
        struct tinymodel draft = target;
        draft.first_layers = i < 2 ? 2 : 4; /* 4 layers: drafts are accepted more often */
        struct engine *engine = pair(&draft, backends[i % 2]);
        struct session_options o = drafting(PROBE_ALL);
        o.sampling.temperature = i == 3 ? 1 : 0;
        struct heard *h = run(engine, &o, 0, CONTROL_PROBE, NULL);
        /* From the prompt's end to the last tokens: the draft model need not have read earlier rows. */
        assert_greater(h->length, h->prompt + 50);
        for (uint32_t pos = h->prompt; pos + 1 < h->length; pos++)
            check_position(h, pos, draft.first_layers);
        assert_greater(h->bonuses, 2);
        assert_int_equal(h->late, 0); /* in the round of the target's verdict */
        assert_greater(h->by_policy[h->prompt + 1], 0);
        free(h);
        engine_close(engine);
    }
}

/* The draft model may have read the pending token already. Its next prediction is emitted after the next token. */
TEST(a_row_is_looked_at_when_the_token_after_it_is_there)
{
    struct engine *engine = pair(NULL, "cpu");
    static const struct knob_setting cost = {"row_cost", "0.5"};
    struct session_options o = drafting(PROBE_ALL);
    o.policy = "sv";
    o.set = &cost;
    o.tokens = 120;
    struct heard *h = run(engine, &o, 0, CONTROL_PROBE, NULL);
    assert_greater(h->untested, 0);
    for (uint32_t pos = h->prompt; pos + 2 < h->length; pos++)
        check_position(h, pos, 2);
    free(h);
    engine_close(engine);
}

TEST(the_scopes_probes_of_a_draft_model_are_in_no_account)
{
    struct engine *engine = pair(NULL, "cpu");
    const struct session_options all = drafting(PROBE_ALL), off = drafting(PROBE_OFF);
    struct heard *a = run(engine, &all, 0, CONTROL_PROBE, NULL), *b = run(engine, &off, 0, CONTROL_PROBE, NULL);
    assert_int_equal(b->aux, 0);
    assert_int_equal(a->rounds, b->rounds);
    assert_int_equal(a->length, b->length);
    assert_memory_equal(a->token, b->token, sizeof a->token);
    assert_memory_equal(a->layers_loaded, b->layers_loaded, sizeof a->layers_loaded);
    assert_memory_equal(a->heads_loaded, b->heads_loaded, sizeof a->heads_loaded);
    free(a);
    free(b);
    engine_close(engine);
}

TEST(probe_policy_emits_only_the_policys_predictions)
{
    struct engine *engine = pair(NULL, "cpu");
    const struct session_options o = drafting(PROBE_POLICY);
    struct heard *h = run(engine, &o, 0, CONTROL_PROBE, NULL);
    uint32_t told = 0;
    for (uint32_t pos = 0; pos < POSITIONS; pos++) {
        told += h->by_policy[pos];
        if (h->by_policy[pos] > 0)
            assert_int_equal(h->policy[pos].layer, 2); /* the draft model's last layer */
    }
    assert_greater(told, 50);
    assert_int_equal(told, h->aux);
    free(h);
    engine_close(engine);
}

TEST(probes_are_switched_in_mid_run)
{
    struct engine *engine = pair(NULL, "cpu");
    struct session_options o = drafting(PROBE_ALL);
    struct heard *h = run(engine, &o, 3, CONTROL_PROBE, "off");
    assert_greater(h->before, h->prompt + 2);
    assert_less(h->before + 20, h->length);
    for (uint32_t pos = h->prompt; pos + 2 < h->before; pos++)
        check_position(h, pos, 2);
    for (uint32_t pos = h->before; pos < h->length; pos++) {
        assert_int_equal(h->by_scope[pos][1], 0);
        assert_int_equal(h->by_policy[pos], 0);
    }
    free(h);
    o.probe = PROBE_OFF;
    h = run(engine, &o, 3, CONTROL_PROBE, "all");
    for (uint32_t pos = 0; pos + 2 < h->before; pos++) {
        assert_int_equal(h->by_scope[pos][1], 0);
        assert_int_equal(h->by_policy[pos], 0);
    }
    for (uint32_t pos = h->before; pos + 2 < h->length; pos++)
        check_position(h, pos, 2);
    free(h);
    engine_close(engine);
}

TEST(the_targets_own_layers_are_the_targets_when_they_draft)
{
    struct engine *engine;
    char path[128];
    struct err err = {0};
    assert_ok(tinymodel_write_temp(path, sizeof path, &target, &err), err);
    assert_ok(session_rig_engine_with(&engine, path, "self:2", "cpu", 1, &err), err);
    unlink(path);
    const struct session_options o = drafting(PROBE_ALL);
    struct heard *h = run(engine, &o, 0, CONTROL_PROBE, NULL);
    assert_int_equal(h->aux, 0);
    free(h);
    engine_close(engine);
}

TEST(a_policy_that_comes_to_a_draft_model_late_shows_its_latest_rows)
{
    struct engine *engine = pair(NULL, "cpu");
    struct session_options o = drafting(PROBE_ALL);
    o.policy = "layerskip";
    o.set = NULL;
    o.n_set = 0;
    struct heard *h = run(engine, &o, 0, CONTROL_PROBE, NULL);
    assert_int_equal(h->aux, 0); /* the draft model read nothing */
    free(h);
    h = run(engine, &o, 3, CONTROL_POLICY, "sd");
    assert_int_equal(h->by_scope[20][1], 0);
    for (uint32_t pos = h->prompt; pos + 2 < h->length; pos++)
        check_position(h, pos, 2);
    free(h);
    engine_close(engine);
}

/* Events cannot contain a token that the target lacks: their ids are smaller than its vocabulary. */
TEST(a_larger_vocabulary_stays_within_the_targets)
{
    struct tinymodel draft = target;
    draft.first_layers = 2;
    draft.padding = 80;
    struct engine *engine = pair(&draft, "check");
    struct session_options o = drafting(PROBE_ALL);
    o.sampling.temperature = 1.5f;
    struct heard *h = run(engine, &o, 0, CONTROL_PROBE, NULL); /* the rig checks every id */
    assert_greater(h->aux, 100);
    free(h);
    engine_close(engine);
}

static void
hear_batch(void *user, struct live *s, const struct event *e)
{
    struct heard *all = user;
    if (e->type == EVENT_LAYER || e->type == EVENT_TOKEN || e->type == EVENT_ROUND)
        hear(&all[e->seq], s, e);
}

TEST(each_sequence_of_a_batch_has_the_layer_predictions_of_its_draft_as_if_alone)
{
    enum { SEQUENCES = 3 };
    struct engine *engine = pair(NULL, "cpu");
    struct session_options o = drafting(PROBE_ALL);
    struct heard *all = calloc(SEQUENCES, sizeof *all);
    struct session_rig_result r;
    assert_non_null(all);
    o.sampling.temperature = 1; /* otherwise the sequences would be equal */
    o.batch = SEQUENCES;
    session_run(engine, &o, hear_batch, all, &r);
    session_rig_free(&r);
    o.batch = 0;
    const uint64_t seed = o.seed;
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        o.seed = rng_sequence_seed(seed, i);
        struct heard *h = run(engine, &o, 0, CONTROL_PROBE, NULL);
        assert_int_equal(h->aux, all[i].aux);
        assert_memory_equal(h->token, all[i].token, sizeof h->token);
        assert_memory_equal(h->by_scope, all[i].by_scope, sizeof h->by_scope);
        assert_memory_equal(h->by_policy, all[i].by_policy, sizeof h->by_policy);
        for (uint32_t pos = h->prompt; pos + 2 < h->length; pos++) {
            check_position(&all[i], pos, 2);
            for (uint32_t l = 1; l <= 2; l++) {
                assert_int_equal(h->scope[pos][l].token, all[i].scope[pos][l].token);
                assert_memory_equal(&h->scope[pos][l].confidence, &all[i].scope[pos][l].confidence, sizeof(float));
            }
        }
        free(h);
    }
    free(all);
    engine_close(engine);
}
