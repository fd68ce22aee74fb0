/* Draft & Verify's threshold and the finite-state machine's length against their formulas, on recorded rounds. The
 * values of a round must follow from the verification of the rounds before. */
#include <math.h>

#include "policies/registry.h"
#include "tests/rigs/recorded_run.h"
#include "tests/rigs/session_fixture.h"
#include "tests/rigs/test.h"

enum { TOKENS = 300, MOST = 64 };

static struct engine *engine;

static int
open_model(void **state)
{
    (void)state;
    const struct tinymodel tiny = {.seed = 11, .n_layers = 5, .calm_after = 2, .calm = 0.12f, .sharpness = 8};
    return session_fixture_engine(&engine, &tiny) ? 0 : 1;
}

static int
close_model(void **state)
{
    (void)state;
    engine_close(engine);
    return 0;
}

static struct recorded_run
record(const char *policy, const struct knob_setting *set, size_t n_set, float temperature)
{
    const struct session_options o = {.policies = policy_registry,
                                      .policy = policy,
                                      .prompt = "the little",
                                      .prompt_len = 10,
                                      .sampling = {.temperature = temperature, .top_p = 1},
                                      .seed = 2,
                                      .tokens = TOKENS,
                                      .ctx = 512,
                                      .set = set,
                                      .n_set = n_set,
                                      .ignore_eos = true,
                                      .probe = PROBE_POLICY};
    struct recorded_run run;
    struct err err = {0};
    assert_ok(record_run(engine, &o, &run, &err), err);
    return run;
}

/* The comparison stops at rounds that -n may have cut. */
static bool
near_the_end(uint32_t generated)
{
    return TOKENS - generated <= MOST;
}

/* docs/policies/fsm.md: γ + 1 up to the cap after a fully accepted round, max(1, γ − 1) after a rejection. */
static void
check_fsm(const struct knob_setting *set, size_t n_set, uint32_t start, uint32_t cap, float temperature)
{
    struct recorded_run run = record("fsm", set, n_set, temperature);
    uint32_t gamma = start < cap ? start : cap, generated = 1, grew = 0, shrank = 0, checked = 0;
    for (size_t i = 0; i < run.n && !near_the_end(generated); i++) {
        const struct event *e = &run.events[i];
        if (e->type != EVENT_ROUND)
            continue;
        assert_number_equal(recorded_value(&run, e->round, "gamma", 0), gamma);
        assert_int_equal(e->round_end.drafted, gamma);
        assert_greater(e->round_end.heads_us, 0);
        assert_at_most(e->round_end.heads_us, (float)e->round_end.draft_us + 1);
        if (e->round_end.accepted == e->round_end.drafted) {
            gamma = gamma + 1 < cap ? gamma + 1 : cap;
            grew++;
        } else {
            gamma = gamma > 1 ? gamma - 1 : 1;
            shrank++;
        }
        generated += e->round_end.emitted;
        checked++;
    }
    print_message("fsm from %u, cap %u: %u rounds, %u accepted in full, %u not\n", (unsigned)start, (unsigned)cap,
                  (unsigned)checked, (unsigned)grew, (unsigned)shrank);
    assert_greater(checked, 10);
    assert_greater(grew, 0);
    assert_greater(shrank, 0);
    recorded_run_free(&run);
}

TEST(fsm_length_follows_acceptance)
{
    check_fsm(NULL, 0, 5, 12, 0);
    const struct knob_setting low[] = {{"gamma", "9"}, {"gamma_max", "3"}, {"exit_layer", "3"}};
    check_fsm(low, 3, 9, 3, 0);
    const struct knob_setting sampled[] = {{"gamma", "1"}, {"exit_layer", "2"}};
    check_fsm(sampled, 2, 1, 12, 0.8f);
}

/* docs/policies/dv.md, with its constants written out. */
struct moves {
    uint32_t up, down, same;
};

static void
check_dv(const struct knob_setting *set, size_t n_set, double start, uint32_t longest, float temperature,
         struct moves *moves)
{
    struct recorded_run run = record("dv", set, n_set, temperature);
    double th = start, mean = 0;
    uint32_t generated = 1, checked = 0;
    size_t first = 0; /* event of the round */
    for (size_t i = 0; i < run.n && !near_the_end(generated); i++) {
        const struct event *e = &run.events[i];
        if (e->type != EVENT_ROUND)
            continue;
        const struct round_event *r = &e->round_end;
        assert_near(recorded_value(&run, e->round, "th", 0), th, 1e-6);
        assert_near(recorded_value(&run, e->round, "matched", 0), mean, 1e-6);
        assert_near((double)r->threshold, th, 1e-6);
        uint32_t drafted = 0;
        bool unsure = false; /* a token below th is kept, and the last one */
        for (size_t k = first; k < i; k++)
            if (run.events[k].type == EVENT_TOKEN && run.events[k].token.source == SOURCE_DRAFT) {
                assert_false(unsure);
                unsure = (double)run.events[k].token.confidence < th;
                drafted++;
            }
        assert_at_least(drafted, 1);
        assert_int_equal(drafted, r->drafted);
        if (!unsure)
            assert_int_equal(drafted, longest);
        mean = 0.5 * mean + 0.5 * r->accepted / r->drafted;
        double aim = mean < 0.9 ? th + 0.01 : drafted == longest ? th : th - 0.01;
        moves->up += aim > th;
        moves->down += aim < th;
        moves->same += mean >= 0.9 && drafted == longest;
        th = 0.9 * th + 0.1 * aim;
        generated += r->emitted;
        checked++;
        first = i + 1;
    }
    print_message("dv from %g: %u rounds, now %.4f\n", start, (unsigned)checked, th);
    assert_greater(checked, 10);
    recorded_run_free(&run);
}

TEST(dv_threshold_follows_acceptance)
{
    struct moves moves = {0};
    check_dv(NULL, 0, 0.8, 12, 0, &moves);
    check_dv(NULL, 0, 0.5, 12, 0.8f, &moves);
    const struct knob_setting deep[] = {{"th", "0.3"}, {"w_max", "3"}, {"exit_layer", "4"}},
                              sure[] = {{"th", "0.95"}, {"exit_layer", "4"}};
    check_dv(deep, 3, 0.3, 3, 0, &moves);
    check_dv(sure, 2, 0.95, 12, 0, &moves);
    print_message("th moved up %u, down %u, stayed %u times\n", (unsigned)moves.up, (unsigned)moves.down,
                  (unsigned)moves.same);
    assert_greater(moves.up, 0);
    assert_greater(moves.down, 0);
    assert_greater(moves.same, 0); /* all three cases of the rule occurred */
}

TEST(policies_without_annealing_emit_no_annealed_values)
{
    for (size_t p = 0; policy_registry[p] != NULL; p++) {
        const char *name = policy_registry[p]->name;
        struct recorded_run run = record(name, NULL, 0, 0);
        uint32_t confident = 0;
        for (size_t i = 0; i < run.n; i++) {
            const struct event *e = &run.events[i];
            const bool token = e->type == EVENT_TOKEN, layer = e->type == EVENT_LAYER;
            const float confidence = token ? e->token.confidence : layer ? e->layer.confidence : NAN;
            const float annealed = token ? e->token.annealed : layer ? e->layer.annealed : NAN;
            confident += isnan(confidence) ? 0 : 1;
            if (strcmp(name, "specbound") != 0 && isfinite(annealed))
                fail_msg("%s, round %u: annealed %g", name, (unsigned)e->round, (double)annealed);
            if (strcmp(name, "specbound") == 0 && token && e->token.source == SOURCE_DRAFT)
                assert_greater(annealed, 0);
        }
        assert_greater(confident, 0);
        recorded_run_free(&run);
    }
}

FIXTURE(open_model, close_model);
