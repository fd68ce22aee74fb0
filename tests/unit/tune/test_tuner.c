/* The tuner on simulated runs: what it requests, what fits into its time, and its result. */
#include <math.h>

#include "engine/tune/tuner.h"
#include "tests/rigs/race_rig.h"
#include "tests/rigs/test.h"

/* ---- tune_plan() on simulated speeds ---- */

static struct tune_plan
wanted(uint32_t candidates)
{
    return (struct tune_plan){.candidates = candidates, .tokens = TUNE_TOKENS, .held_out = 10, .passes = RACE_PASSES};
}

static double
runs_s(const struct tune_plan *p, const struct tune_speed *speed)
{
    const uint32_t finalists = p->candidates < 3 ? p->candidates : 3;
    return (RACE_HEATS * p->candidates + (double)finalists * p->held_out * p->passes) *
           (speed->run_s + p->tokens * speed->token_s);
}

TEST(a_fast_model_races_all_candidates)
{
    const struct tune_speed speed = {.run_s = 0.01, .token_s = 1.0 / 2000};
    struct tune_plan p = wanted(52);
    assert_true(tune_plan(&p, 10, &speed, TUNE_TIME));
    assert_int_equal(p.candidates, 52);
    assert_int_equal(p.tokens, TUNE_TOKENS);
    assert_int_equal(p.held_out, 10);
    assert_int_equal(p.passes, RACE_PASSES);
}

TEST(the_tuner_without_a_time_limit_leaves_nothing_out)
{
    const struct tune_speed speed = {.run_s = 10, .token_s = 1};
    struct tune_plan p = wanted(52);
    assert_true(tune_plan(&p, 10, &speed, 0));
    assert_int_equal(p.candidates, 52);
    assert_int_equal(p.tokens, TUNE_TOKENS);
    assert_int_equal(p.passes, RACE_PASSES);
    assert_near(p.needs_s, runs_s(&p, &speed), 1e-6);
}

TEST(twenty_tokens_a_second_take_less_than_five_minutes)
{
    const struct tune_speed speed = {.run_s = 0.5, .token_s = 1.0 / 20};
    struct tune_plan p = wanted(52);
    assert_true(tune_plan(&p, 10, &speed, TUNE_TIME - 30));
    assert_at_least(p.candidates, 10);
    assert_less(p.candidates, 52);
    assert_at_least(p.tokens, 32);
    assert_less(p.tokens, TUNE_TOKENS);
    assert_at_least(p.held_out, 6);
    assert_at_least(p.passes, 1);
    assert_at_most(p.needs_s, TUNE_TIME - 30);
}

TEST(every_plan_fits_and_keeps_the_best_of_each_policy_if_it_can)
{
    for (double token_s = 1e-4; token_s < 10; token_s *= 1.3) {
        for (double time_s = 1; time_s < 4000; time_s *= 2) {
            const struct tune_speed speed = {.run_s = 8 * token_s, .token_s = token_s};
            struct tune_plan p = wanted(40);
            const bool fits = tune_plan(&p, 9, &speed, time_s);
            assert_between(p.candidates, 2, 40);
            assert_between(p.tokens, 16, TUNE_TOKENS);
            assert_between(p.held_out, 3, 10);
            assert_between(p.passes, 1, RACE_PASSES);
            const bool few = p.candidates < 9 || p.held_out < 6;
            struct tune_plan least = {.candidates = 9, .tokens = 16, .held_out = 6, .passes = 1};
            assert_true(!few || (p.tokens == 16 && p.passes == 1 && runs_s(&least, &speed) > time_s));
            assert_near(p.needs_s, runs_s(&p, &speed), 1e-6 * p.needs_s);
            assert_int_equal(fits, p.needs_s <= time_s);
            assert_true(fits || (p.candidates == 2 && p.tokens == 16 && p.held_out == 3 && p.passes == 1));
        }
    }
}

TEST(more_time_never_gives_less)
{
    const struct tune_speed speed = {.run_s = 0.2, .token_s = 0.04};
    uint32_t candidates = 0;
    for (double time_s = 10; time_s < 4000; time_s *= 1.2) {
        struct tune_plan p = wanted(40);
        tune_plan(&p, 9, &speed, time_s);
        assert_at_least(p.candidates, candidates);
        candidates = p.candidates;
    }
    assert_int_equal(candidates, 40);
}

TEST(a_block_takes_as_long_as_a_start_of_the_server)
{
    const struct tune_speed speed = {.run_s = 0.72, .token_s = 0.01, .start_s = 19};
    struct tune_plan p = wanted(8);
    p.block = 36;
    assert_true(tune_plan(&p, 4, &speed, 0));
    assert_int_equal(p.block, 10); /* of 2 s */
    assert_near(p.needs_s, (8 * 2 * 10 + 3 * RACE_PASSES * 10) * (2 + 1.9), 1e-6);
    p = wanted(8);
    p.block = 6;
    assert_true(tune_plan(&p, 4, &speed, 0));
    assert_int_equal(p.block, 6);
}

TEST(every_plan_with_starts_of_servers_fits_and_keeps_the_best_of_each_policy_if_it_can)
{
    for (double start_s = 0.1; start_s < 1000; start_s *= 3) {
        for (double time_s = 10; time_s < 1e5; time_s *= 2) {
            const struct tune_speed speed = {.run_s = 0.1, .token_s = 0.02, .start_s = start_s};
            struct tune_plan p = wanted(20);
            p.block = 36;
            const bool fits = tune_plan(&p, 4, &speed, time_s);
            assert_between(p.block, 2, 36);
            assert_between(p.candidates, 2, 20);
            const double run_s = speed.run_s + p.tokens * speed.token_s + start_s / p.block,
                         finalists = p.candidates < 3 ? 2 : 3,
                         runs = 2.0 * p.block * p.candidates + finalists * p.held_out * RACE_PASSES;
            assert_int_equal(p.passes, RACE_PASSES);
            assert_near(p.needs_s, runs * run_s, 1e-6 * p.needs_s);
            assert_int_equal(fits, p.needs_s <= time_s);
            assert_true(fits || (p.candidates == 2 && p.block == 2 && p.tokens == 16 && p.held_out == 3));
            assert_true(p.candidates >= 4 || p.block == 2);
            assert_true(time_s < 9e4 || start_s / p.block <= 0.5 * run_s || p.block == 36);
        }
    }
}

TEST(times_are_read_and_written)
{
    char text[16];
    assert_number_equal(tune_time_parse("90s"), 90);
    assert_number_equal(tune_time_parse("5m"), 300);
    assert_number_equal(tune_time_parse("1h"), 3600);
    assert_number_equal(tune_time_parse("30"), 30);
    assert_true(isnan(tune_time_parse("soon")) && isnan(tune_time_parse("5 m")) && isnan(tune_time_parse("-1m")) &&
                isnan(tune_time_parse("")));
    assert_string_equal(tune_time_text(44.2, text, sizeof text), "45s");
    assert_string_equal(tune_time_text(300, text, sizeof text), "5m");
    assert_string_equal(tune_time_text(299, text, sizeof text), "299s"); /* must differ from 300 */
}

/* ---- the tuner ---- */

static struct simulated_race rig;

static int
open_rig(void **state)
{
    (void)state;
    race_rig_open(&rig);
    return 0;
}

static int
close_rig(void **state)
{
    (void)state;
    race_rig_close(&rig);
    return 0;
}
#define TUNER_TEST(name) TEST_WITH(name, open_rig, close_rig)

static void
begin(double time_s)
{
    struct err err = {0};
    const struct tune_request request = race_rig_request(&rig, time_s);
    assert_ok(tuner_begin(rig.tuner, &request, &err), err);
}

static void
race(double time_s)
{
    struct err err = {0};
    begin(time_s);
    assert_ok(race_rig_run(&rig, UINT32_MAX, &err), err);
    assert_int_equal(rig.tuner->phase, TUNE_OVER);
}

TUNER_TEST(the_fastest_setting_wins_on_held_out_prompts)
{
    char name[80];
    race(TUNE_TIME);
    const struct comparison c = race_held_out(rig.tuner->race, tuner_winner(rig.tuner), 0, NULL);
    assert_string_equal(tuner_name(rig.tuner, tuner_winner(rig.tuner), " ", name, sizeof name), "sd k=4");
    assert_near(c.value, 1.6, 0.05);
    assert_int_equal(c.verdict, DIFFERENCE_MORE);
    assert_string_equal(tune_verdict(c), "faster than plain decoding");
    assert_int_equal(rig.tuner->n_candidates, 14); /* ar, six of sd and of ngram, swift */
    assert_int_equal(rig.tuner->differing, 0);
    assert_string_equal(tuner_category(rig.tuner, 2), "summaries");
    assert_null(tuner_category(rig.tuner, 3));
}

/* In the heats, sd k=4 and another setting of sd are the fastest. On held-out prompts they are slower, or the first
 * one's speed varies. */
TUNER_TEST(the_winner_is_the_fastest_on_held_out_prompts_also_if_it_was_second_or_is_plain_decoding)
{
    static const struct {
        double speed[2], noise;
        bool second, clear;
    } table[] = {{{0.93, 1.2}, 0, true, true},
                 {{0.93, 1.015}, 0, true, false},
                 {{0.8, 0.9}, 0, false, false},
                 {{1.6, 1.2}, 1, true, true}};
    char name[80];
    race(TUNE_TIME);
    assert_true(tuner_clear(rig.tuner));
    rig.noise = 0.03;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        memcpy(rig.held_out, table[i].speed, sizeof rig.held_out);
        rig.held_out_noise = table[i].noise;
        race(TUNE_TIME);
        const struct race *r = rig.tuner->race;
        assert_string_equal(tuner_name(rig.tuner, r->finalist[RACE_WINNER], " ", name, sizeof name), "sd k=4");
        assert_int_equal(tuner_winner(rig.tuner), table[i].second ? r->finalist[RACE_RUNNER_UP] : 0);
        assert_int_equal(tuner_clear(rig.tuner), table[i].clear);
    }
}

TUNER_TEST(each_draft_model_is_recorded_and_timed_in_its_own_session)
{
    struct err err = {0};
    const struct tune_draft drafts[] = {
        {"one.gguf", NEEDS(AUX_DRAFT)}, {"none.gguf", 0}, {"two.gguf", NEEDS(AUX_DRAFT)}};
    struct tune_request request = race_rig_request(&rig, 0);
    struct policy_info *sd = &rig.info.policies[1];
    sd->missing = NEEDS(AUX_DRAFT);
    request.drafts = drafts;
    request.n_drafts = 3;
    assert_ok(tuner_begin(rig.tuner, &request, &err), err);
    assert_ok(race_rig_run(&rig, 6, &err), err);
    /* three runs with the run's own draft model, one with each that meets sd's needs, the first run of the heats */
    assert_memory_equal(rig.log, "a0rc0r0rp1a1rcp3a3rcp", 21);
    assert_string_equal(rig.probe, "policy");
}

TUNER_TEST(the_first_run_probes_all_layers_and_heats_do_not)
{
    struct err err;
    begin(TUNE_TIME);
    assert_ok(race_rig_run(&rig, 1, &err), err);
    assert_string_equal(rig.probe, "all");
    assert_string_equal(rig.policy, "ar");
    assert_int_equal(rig.tuner->phase, TUNE_RECORDS);
    assert_ok(race_rig_run(&rig, 3, &err), err);
    assert_string_equal(rig.probe, "policy");
    assert_int_equal(rig.tuner->phase, TUNE_HEATS);
    assert_int_equal(rig.costs, 1); /* they are measured once */
}

TUNER_TEST(a_race_of_any_speed_ends_in_its_time)
{
    for (double token_s = 1e-4; token_s < 0.3; token_s *= 3) {
        rig.token_s = token_s;
        rig.run_s = 4 * token_s;
        race(TUNE_TIME);
        print_message("%.0f tokens/s: %u candidates, %u tokens, %.0f s\n", 1 / token_s, rig.tuner->n_candidates,
                      rig.tuner->plan.tokens, tuner_elapsed_s(rig.tuner));
        assert_less(tuner_elapsed_s(rig.tuner), TUNE_TIME * 1.02);
        assert_at_least(rig.tuner->n_candidates, 4);
        assert_at_least(race_held_out(rig.tuner->race, tuner_winner(rig.tuner), 0, NULL).n, 6);
    }
}

/* A server has no layer record and no costs; the time of its starts counts, and each block but the first one of its
 * heats saves one. */
TUNER_TEST(a_race_of_launched_servers_ends_in_its_time_and_starts_few)
{
    for (double start_s = 0.5; start_s < 100; start_s *= 6) {
        char name[80];
        rig.start_s = start_s;
        rig.starts = 0;
        snprintf(rig.serves, sizeof rig.serves, "ar"); /* the server that was opened */
        rig.serves_k = 0;
        race(3600);
        const struct tuner *t = rig.tuner;
        const uint32_t blocks = t->race->heat / t->plan.block, n = t->n_candidates;
        print_message("a start of %.1f s: %u candidates, blocks of %u, %u starts, %.0f of %.0f s\n", start_s, n,
                      t->plan.block, rig.starts, rig.starts * start_s, tuner_elapsed_s(t));
        assert_string_equal(tuner_name(t, tuner_winner(t), " ", name, sizeof name), "sd k=4");
        assert_true(tuner_clear(t));
        assert_less(tuner_elapsed_s(t), 3600 * 1.02);
        assert_near(tuner_elapsed_s(t), t->spent_s, 1e-9);
        assert_at_most(rig.starts, 1 + blocks * (n - 1) + RACE_PASSES * TUNE_FINALISTS);
        assert_at_most(rig.starts * start_s, 0.65 * tuner_elapsed_s(t));
        assert_int_equal(rig.costs, 0);
        assert_string_equal(rig.probe, "");
    }
}

TUNER_TEST(too_little_time_for_starts_of_servers_is_refused)
{
    struct err err = {0};
    rig.start_s = 60;
    begin(60);
    assert_false(race_rig_run(&rig, UINT32_MAX, &err));
    assert_string_equal(err.text, "cannot race in 1m: at 97 tokens/s, 60.0 s for a start of the server and 0.1 s for a "
                                  "prompt a heat of two settings needs about 183s; give more time");
}

TUNER_TEST(too_little_time_is_refused_with_the_time_that_is_needed)
{
    struct err err = {0};
    rig.token_s = 1;
    rig.run_s = 8;
    begin(60);
    assert_false(race_rig_run(&rig, UINT32_MAX, &err));
    assert_string_equal(err.text, "cannot race in 1m: at 0.97 tokens/s and 8.0 s for a prompt a heat of two settings "
                                  "needs about 74s; give more time");
    assert_int_equal(rig.tuner->phase, TUNE_STOPPED);
    assert_int_equal(rig.tuner->n_candidates, 0);
}

TUNER_TEST(a_short_race_has_the_settings_with_the_best_forecasts_and_says_which_it_left_out)
{
    char text[200];
    rig.forecasts = true;
    rig.token_s = 0.1;
    race(37);
    assert_int_equal(rig.tuner->n_candidates, 3);
    assert_string_equal(rig.tuner->candidate[1].policy, "sd");
    assert_string_equal(rig.tuner->candidate[2].policy, "ngram");
    assert_string_equal(tuner_left_out(rig.tuner, text, sizeof text),
                        "10 settings did not fit into the time, among them all of swift");
    assert_less(tuner_elapsed_s(rig.tuner), 37 * 1.02);
    race(TUNE_TIME * 100);
    assert_string_equal(tuner_left_out(rig.tuner, text, sizeof text), "");
}

TUNER_TEST(a_race_that_is_too_short_for_held_out_prompts_has_heats)
{
    rig.token_s = 1;
    rig.run_s = 8;
    race(120);
    assert_int_equal(rig.tuner->n_candidates, 2);
    assert_at_least(rig.tuner->race->heat, 1);
    assert_less(tuner_elapsed_s(rig.tuner), 120 + 30);
    assert_false(tuner_clear(rig.tuner));
    assert_int_not_equal(tuner_winner(rig.tuner), 0);
}

TUNER_TEST(a_race_without_hope_is_refused_before_its_first_run)
{
    struct err err = {0};
    struct tune_request request = race_rig_request(&rig, 10);
    request.token_s = 1;
    assert_false(tuner_begin(rig.tuner, &request, &err));
    assert_string_equal(err.text,
                        "cannot race in 10s: at 1.00 tokens/s a heat of two settings needs about 48s; give more time");
    assert_int_equal(rig.runs, 0);
    assert_false(tuner_running(rig.tuner));
    request.time_s = 60;
    assert_ok(tuner_begin(rig.tuner, &request, &err), err);
}

TUNER_TEST(a_stopped_race_has_the_standings_so_far)
{
    struct err err;
    char text[80];
    begin(TUNE_TIME);
    assert_ok(race_rig_run(&rig, 3 + 14 * 2 + 5, &err), err);
    tuner_stop(rig.tuner);
    assert_false(tuner_running(rig.tuner));
    assert_int_equal(rig.tuner->race->heat, 2);
    assert_string_equal(tuner_name(rig.tuner, tuner_winner(rig.tuner), " ", text, sizeof text), "sd k=4");
    assert_contains(tuner_progress(rig.tuner, text, sizeof text), ", stopped");
    race(TUNE_TIME); /* another race starts from the beginning */
}

TUNER_TEST(another_greedy_text_is_counted)
{
    rig.differs = "swift";
    race(TUNE_TIME);
    assert_at_least(rig.tuner->differing, RACE_HEATS);
}

TUNER_TEST(a_run_that_fails_stops_the_race)
{
    struct err err = {0};
    rig.fails = "swift";
    begin(TUNE_TIME);
    assert_false(race_rig_run(&rig, UINT32_MAX, &err));
    assert_contains(err.text, "the race stopped: error: draft: out of memory");
}

TUNER_TEST(a_text_without_a_round_is_refused)
{
    struct err err = {0};
    rig.text_tokens = 1;
    begin(TUNE_TIME);
    assert_false(race_rig_run(&rig, UINT32_MAX, &err));
    assert_contains(err.text, "ends with its first token");
}

TUNER_TEST(policies_may_be_named)
{
    struct err err = {0};
    static const char *const one[] = {"ngram"}, *const unknown[] = {"nothing"};
    struct tune_request request = race_rig_request(&rig, TUNE_TIME);
    request.policies = unknown;
    request.n_policies = 1;
    assert_false(tuner_begin(rig.tuner, &request, &err));
    assert_string_equal(err.text, "cannot race 'nothing': there is no such policy");
    request.policies = one;
    assert_true(tuner_begin(rig.tuner, &request, &err) && race_rig_run(&rig, UINT32_MAX, &err));
    assert_int_equal(rig.tuner->n_candidates, 7);
}

TUNER_TEST(settings_have_the_sampling_that_they_were_raced_with)
{
    char text[2000];
    struct err err = {0};
    race(TUNE_TIME);
    tuner_engine_command(rig.tuner, ENGINE_VLLM, tuner_winner(rig.tuner), false, text, sizeof text);
    assert_contains(text, "{\"temperature\": 0}");
    assert_lacks(text, "probabilistic");
    struct tune_request request = race_rig_request(&rig, TUNE_TIME);
    request.sampling = (struct sampling){.temperature = 0.7f, .top_k = 40, .top_p = 0.9f};
    assert_true(tuner_begin(rig.tuner, &request, &err) && race_rig_run(&rig, UINT32_MAX, &err));
    tuner_engine_command(rig.tuner, ENGINE_VLLM, tuner_winner(rig.tuner), false, text, sizeof text);
    assert_contains(text, "{\"temperature\": 0.7, \"top_k\": 40, \"top_p\": 0.9}");
    assert_contains(text, "\"draft_sample_method\": \"probabilistic\"");
    assert_string_equal(rig.tuner->candidate[0].sampling[SAMPLING_SEED], "");
}

TUNER_TEST(flags_of_other_engines_have_the_measured_acceptance)
{
    char text[2000];
    race(TUNE_TIME);
    tuner_engine_command(rig.tuner, ENGINE_LLAMA_CPP, tuner_winner(rig.tuner), true, text, sizeof text);
    assert_contains(text, "-m /models/fables.gguf");
    assert_contains(text, "--spec-draft-n-max 4");
    assert_contains(text, "--spec-synth-rates 1,");
}
