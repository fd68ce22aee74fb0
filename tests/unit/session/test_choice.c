/* The policy that a session chooses itself (engine/session/choice.c), on engines whose costs of steps are given. */
#include <unistd.h>

#include "cli/options/commands.h"
#include "policies/registry.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

enum { TOKENS = 150 };

/* Costs in which a further row costs a share of one row, and a probe some layers. */
static struct cost_model
costs(double row, double probe)
{
    struct cost_model c = {.context = 16};
    cost_reset(&c);
    for (int i = 0; i < COST_ROWS; i++) {
        const double rows = 1 + row * (cost_rows[i] - 1);
        c.us[COST_OF_LAYER][i] = 100 * rows;
        c.us[COST_OF_PASS][i] = 100 * cost_rows[i];
        c.us[COST_OF_HEAD][i] = 100 * rows;
        c.us[COST_OF_PROBE][i] = probe * 100 * rows;
        c.us[COST_OF_EXITS][i] = probe * 100 * cost_rows[i];
        c.us[COST_OF_SET_PROBE][i] = probe * 75 * rows;
        c.us[COST_OF_SET_EXITS][i] = probe * 75 * cost_rows[i];
    }
    return c;
}

struct seen {
    char choice[700], policy[16];
    uint32_t choices, policies, round; /* round: after which the policy changed */
    const char *post;                  /* a policy that the user chooses after 5 rounds */
};

static void
look(void *user, struct live *s, const struct event *e)
{
    struct seen *seen = user;
    if (e->type == EVENT_ROUND && e->round == 5 && seen->post != NULL)
        session_control(s, CONTROL_POLICY, NULL, seen->post, 0);
    if (e->type != EVENT_CONTROL)
        return;
    if (e->control.kind == RECORDED_CHOICE) {
        snprintf(seen->choice, sizeof seen->choice, "%s", e->control.new_text);
        seen->choices++;
    }
    if (e->control.kind == RECORDED_POLICY) {
        snprintf(seen->policy, sizeof seen->policy, "%s", e->control.new_text);
        seen->policies++;
        seen->round = e->round;
    }
}

static struct session_options
options(const char *policy)
{
    struct session_options o = session_usual();
    o.policy = policy;
    o.tokens = TOKENS;
    o.ignore_eos = true;
    return o;
}

/* Runs with these costs, and compares the text with that of plain decoding. */
static struct seen
run(struct engine *e, struct cost_model c, const char *post)
{
    struct seen seen = {.post = post};
    struct session_rig_result chosen, plain;
    const struct session_options o = options(POLICY_AUTO), of_plain = options(POLICY_BASELINE);
    e->costs = c;
    session_run(e, &of_plain, NULL, NULL, &plain);
    session_run(e, &o, look, &seen, &chosen);
    e->costs = (struct cost_model){0};
    assert_int_equal(chosen.n, plain.n);
    assert_memory_equal(chosen.tokens, plain.tokens, plain.n * sizeof *plain.tokens);
    session_rig_free(&chosen);
    session_rig_free(&plain);
    return seen;
}

TEST(a_policy_that_is_clearly_faster_by_forecast_takes_over_after_some_tokens)
{
    const struct fixture *f = *state;
    const struct seen seen = run(f->engine, costs(0.02, 0.05), NULL);
    assert_int_equal(seen.policies, 1);
    assert_contains(seen.choice, seen.policy);
    assert_contains(seen.choice, "× plain decoding by forecast, the fastest policy on the last");
    assert_at_least(seen.round, 63);
    assert_non_null(policy_named(policy_registry, seen.policy));
}

TEST(plain_decoding_stays_where_nothing_gains_and_the_reason_is_recorded)
{
    const struct fixture *f = *state;
    const struct seen seen = run(f->engine, costs(1, 26), NULL);
    assert_int_equal(seen.policies, 0);
    assert_int_equal(seen.choices, 1);
    assert_contains(seen.choice, "plain decoding: no policy is clearly faster by forecast; ");
    assert_contains(seen.choice, "no gain: a probe of ");
    assert_contains(seen.choice, " layers here; at most ");
}

TEST(a_policy_that_the_user_chooses_is_kept)
{
    const struct fixture *f = *state;
    const struct seen seen = run(f->engine, costs(0.02, 0.05), "ngram");
    assert_int_equal(seen.choices, 0);
    assert_int_equal(seen.policies, 1);
    assert_string_equal(seen.policy, "ngram");
}

TEST(sampled_text_keeps_plain_decoding)
{
    const struct fixture *f = *state;
    struct seen seen = {.post = NULL};
    struct session_rig_result result;
    struct session_options o = options(POLICY_AUTO);
    o.sampling.temperature = 1;
    session_run(f->engine, &o, look, &seen, &result);
    session_rig_free(&result);
    assert_int_equal(seen.choices + seen.policies, 0);
}

static const struct policy_ops *
first_policy(struct engine *e)
{
    struct live *s;
    struct err err = {0};
    const struct session_options o = options(POLICY_AUTO);
    assert_ok(session_open(&s, e, &o, &err), err);
    const struct policy_ops *ops = policy_named(policy_registry, s->ops->info(s)->policy);
    live_close(s);
    return ops;
}

TEST(a_model_with_trained_heads_begins_with_a_policy_that_uses_them)
{
    struct engine *e;
    struct err err = {0};
    assert_ok(session_rig_engine_with(&e, bundled_model_path(), "none", "cpu", 1, &err), err);
    if (e->heads != HEAD_LENS)
        assert_true(first_policy(e)->trained_heads);
    else
        assert_true(policy_is_baseline(first_policy(e)->name));
    engine_close(e);
}

TEST(a_draft_model_that_was_given_drafts)
{
    struct engine *e;
    struct err err = {0};
    assert_ok(session_rig_engine_with(&e, bundled_model_path(), "self:4", "cpu", 1, &err), err);
    assert_int_equal(first_policy(e)->needs, NEEDS(AUX_DRAFT));
    engine_close(e);
}

TEST(a_block_drafter_that_was_given_drafts_with_its_markov_head_if_it_has_one)
{
    for (int markov = 0; markov < 2; markov++) {
        struct engine *e;
        struct err err = {0};
        const char *head = markov ? "tests/golden/block/gguf_dspark/head.gguf" : "tests/golden/block/gguf/head.gguf";
        const struct engine_options o = {.model_path = "tests/golden/eagle/targets/llama",
                                         .aux = {[AUX_DRAFT] = head},
                                         .backend = "cpu",
                                         .backend_options = {.threads = 1, .gpu = -1}};
        assert_ok(session_rig_engine_open(&e, &o, &err), err);
        assert_int_equal(first_policy(e)->needs, NEEDS(AUX_BLOCK) | (markov ? NEEDS_MARKOV : 0));
        engine_close(e);
    }
}

/* An engine without auxiliary models. */
static int
open_alone(void **state)
{
    static struct fixture f;
    const struct tinymodel tiny = {.seed = 5, .n_layers = 6, .calm_after = 2, .calm = 0.15f, .sharpness = 8};
    char path[128];
    struct err err = {0};
    *state = &f;
    const bool ok = tinymodel_write_temp(path, sizeof path, &tiny, &err) &&
                    session_rig_engine_with(&f.engine, path, "none", "cpu", 1, &err);
    unlink(path);
    return ok ? 0 : 1;
}

FIXTURE(open_alone, session_fixture_close);
