/* The measures, compared with numbers that were calculated by hand from their definitions. */
#include <math.h>

#include "engine/measure/metrics.h"
#include "tests/rigs/test.h"

static void
round_of(struct metrics *m, uint32_t drafted, uint32_t verified, uint32_t accepted, uint32_t emitted, float layers,
         float heads)
{
    struct event e = {.type = EVENT_ROUND,
                      .round_end = {.draft_us = 600,
                                    .verify_us = 300,
                                    .probe_us = 100,
                                    .drafted = drafted,
                                    .verified = verified,
                                    .accepted = accepted,
                                    .emitted = emitted,
                                    .exit_layer = -1,
                                    .d_max = 10,
                                    .w_max = 8,
                                    .layers_loaded = layers,
                                    .heads_loaded = heads}};
    metrics_event(m, &e);
}

static void
control(struct metrics *m, const char *name, const char *text, uint64_t t_us, uint32_t round)
{
    struct event e = {.type = EVENT_CONTROL, .t_us = t_us, .round = round, .control = {.new_text = text}};
    control_event_set_name(&e.control, name);
    metrics_event(m, &e);
}

TEST(measures_follow_their_definitions)
{
    struct metrics m;
    metrics_begin(&m, 32, 0.65);
    round_of(&m, 8, 8, 8, 9, 72, 30); /* all accepted, a bonus */
    round_of(&m, 8, 6, 2, 3, 60, 20); /* rejected at the third; two were never verified */
    round_of(&m, 0, 0, 0, 1, 32, 1);  /* one autoregressive step */
    round_of(&m, 2, 2, 0, 1, 40, 9);  /* rejected at once */
    control(&m, "baseline", "1000", 5000, 4);
    struct measures s = metrics_measures(&m, &m.total);
    assert_near(14 * 1e6 / (4 * 900), s.tokens_per_s, 1e-9);
    assert_near(10.0 / 16, s.acceptance_rate, 1e-9);
    assert_near(10.0 / (10 + 2), s.per_token_acceptance, 1e-9);
    assert_near(14.0 / 4, s.tokens_per_round, 1e-9);
    assert_near(14.0 / 204, s.etpl, 1e-9);
    assert_near((18.0 - 10) / 14, s.discard_rate, 1e-9);
    assert_near(4.0 / 14, s.verification_rate, 1e-9);
    assert_near(14 * 1e6 / (4 * 900) / 1000, s.speedup, 1e-9);
    assert_near(14 * (32 + 0.65) / (204 + 0.65 * 60), s.modelled, 1e-9);
    assert_near(s.speedup / s.modelled, s.overhead, 1e-9);
    double a = 10.0 / 12, w = 4; /* 16 verified in 4 rounds */
    assert_near(32 * (a + a * a + a * a * a + a * a * a * a) / (w * 10 + 32 - 10), s.predicted, 1e-9);
    assert_near(0.6, s.draft_share, 1e-9);
    assert_near(0.3, s.verify_share, 1e-9);
    assert_near(0.1, s.probe_share, 1e-9);
}

static void
token(struct metrics *m, uint32_t seq, uint32_t pos, enum token_source source, uint64_t t_us)
{
    const struct event e = {.type = EVENT_TOKEN, .seq = seq, .t_us = t_us, .token = {.pos = pos, .source = source}};
    metrics_event(m, &e);
}

TEST(the_time_of_a_prefill_ends_with_the_first_generated_token)
{
    struct metrics m;
    char text[64];
    metrics_begin(&m, 32, 0.65);
    for (uint32_t pos = 0; pos < 100; pos++)
        token(&m, 0, pos, SOURCE_PROMPT, 1000 + pos);
    token(&m, 0, 100, SOURCE_PREFILL, 1099 + 400000);
    token(&m, 0, 101, SOURCE_DRAFT, 900000);
    assert_string_equal("prompt 100 tokens in 0.40 s, 250/s", metrics_prefill_text(&m, text, sizeof text));
    token(&m, 1, 0, SOURCE_PROMPT, 1000000); /* the next sequence of a batch */
    token(&m, 1, 1, SOURCE_PREFILL, 31000000);
    assert_string_equal("prompt 101 tokens in 30 s, 3/s", metrics_prefill_text(&m, text, sizeof text));
    control(&m, "run", "restart", 31000000, 1);
    assert_int_equal(0, m.prefilled);
    token(&m, 0, 0, SOURCE_PROMPT, 32000000);
    token(&m, 0, 1, SOURCE_PREFILL, 32000000);
    assert_string_equal("prompt 1 token in 0.00 s, –/s", metrics_prefill_text(&m, text, sizeof text));
}

TEST(measures_that_are_not_defined_are_nan)
{
    struct metrics m;
    metrics_begin(&m, 16, 1);
    struct measures s = metrics_measures(&m, &m.total);
    const double *all = (const double *)&s;
    for (size_t i = 0; i < sizeof s / sizeof *all; i++)
        assert_true(isnan(all[i]));
    round_of(&m, 0, 0, 0, 1, 16, 1);
    s = metrics_measures(&m, &m.total);
    assert_true(isnan(s.acceptance_rate) && isnan(s.per_token_acceptance) && isnan(s.predicted));
    assert_true(isnan(s.speedup) && isnan(s.overhead)); /* no baseline was measured */
    assert_near(1, s.modelled, 1e-9);                   /* the step equals a baseline step */
}

TEST(perfect_drafts_are_the_limit_of_the_prediction)
{
    struct metrics m;
    metrics_begin(&m, 32, 0.65);
    round_of(&m, 8, 8, 8, 9, 72, 30);
    assert_near(32.0 * 8 / (8 * 10 + 22), metrics_measures(&m, &m.total).predicted, 1e-9);
}

TEST(the_window_holds_the_latest_rounds)
{
    struct metrics m;
    metrics_begin(&m, 32, 0.65);
    for (uint32_t i = 0; i < 100; i++)
        round_of(&m, 1, 1, i >= 100 - METRICS_WINDOW, 1, 1, 1);
    struct tally t = metrics_window(&m);
    assert_int_equal(t.rounds, METRICS_WINDOW);
    assert_int_equal(t.accepted, METRICS_WINDOW);
    assert_int_equal(t.rejected_rounds, 0);
    assert_int_equal(m.total.rounds, 100);
    assert_int_equal(m.total.rejected_rounds, 100 - METRICS_WINDOW);
}

TEST(a_new_run_starts_over_but_for_the_baseline)
{
    struct metrics m;
    metrics_begin(&m, 32, 0.65);
    round_of(&m, 8, 8, 8, 9, 72, 30);
    control(&m, "baseline", "398.5", 5000, 1);
    control(&m, "lossless", "yes", 5000, 1);
    assert_int_equal(m.lossless, LOSSLESS_YES);
    control(&m, "run", "restart", 0, 0);
    assert_int_equal(m.total.rounds, 0);
    assert_int_equal(metrics_window(&m).rounds, 0);
    assert_number_equal(m.baseline, 398.5f);
    assert_int_equal(m.baseline_t_us, 5000);
    assert_int_equal(m.baseline_round, 1);
    assert_int_equal(m.lossless, LOSSLESS_UNKNOWN); /* the new run has not been compared yet */
    assert_int_equal(m.layers, 32);
    control(&m, "run", "prompt", 0, 0);
    assert_number_equal(m.baseline, 0); /* the baseline was measured on another prompt */
}

TEST(a_speedup_is_of_one_state_of_the_machine)
{
    struct metrics m;
    metrics_begin(&m, 32, 0.65);
    for (int i = 0; i < 4; i++)
        round_of(&m, 8, 8, 8, 9, 72, 30);
    control(&m, "baseline_se", "20", 1, 1);
    control(&m, "baseline", "1000", 1, 1);
    assert_near(10, metrics_measures(&m, &m.total).speedup, 1e-9); /* 9 tokens in 900 us */
    assert_near(20, metrics_baseline(&m).se, 1e-9);
    control(&m, "pace", "25", 1, 1); /* from here on rounds begin cold */
    assert_true(isnan(metrics_baseline(&m).value) && isnan(metrics_measures(&m, &m.total).speedup));
    control(&m, "baseline", "500", 1, 1);
    assert_near(20, metrics_measures(&m, &m.total).speedup, 1e-9);
    assert_true(isnan(metrics_baseline(&m).se)); /* no standard error was recorded */
    control(&m, "run", "restart", 0, 0);
    assert_near(500, metrics_baseline(&m).value, 1e-9);
    control(&m, "pace", "0", 1, 1);
    assert_true(isnan(metrics_baseline(&m).value));
}

TEST(a_round_of_several_sequences_is_one_sample)
{
    struct metrics m;
    metrics_begin(&m, 32, 0.65);
    struct ratio_sums speed = {0}, length = {0}, all = {0};
    for (uint32_t round = 1; round <= METRICS_WINDOW + 5; round++) {
        double emitted = 0;
        for (uint32_t seq = 0; seq < 3; seq++) {
            const uint32_t accepted = (round * 7 + seq * 3) % 5;
            struct event e = {.type = EVENT_ROUND, .round = round, .seq = seq};
            e.round_end = (struct round_event){.draft_us = 100 + round,
                                               .verify_us = 200,
                                               .verified = 5,
                                               .accepted = accepted,
                                               .emitted = accepted + 1};
            emitted += accepted + 1;
            metrics_event(&m, &e);
        }
        ratio_add(&all, emitted, 3);
        if (round <= 5)
            continue;
        ratio_add(&speed, emitted, 3 * (300 + round) * 1e-6);
        ratio_add(&length, emitted, 3);
    }
    assert_int_equal(m.n, METRICS_WINDOW);
    assert_int_equal(metrics_window(&m).rounds, 3 * METRICS_WINDOW);
    const struct estimates e = metrics_estimates(&m);
    assert_int_equal(e.tokens_per_s.n, METRICS_WINDOW);
    assert_near(1, e.tokens_per_s.value / ratio_estimate(&speed).value, 1e-9);
    assert_near(1, e.tokens_per_s.se / ratio_estimate(&speed).se, 1e-9);
    assert_near(ratio_estimate(&length).value, e.tokens_per_round.value, 1e-9);
    assert_near(1, e.tokens_per_round.se / ratio_estimate(&length).se, 1e-9);
    assert_int_equal(metrics_generated(&m), m.total.emitted + 3);
    const struct estimate run = metrics_run_estimates(&m).tokens_per_round;
    assert_int_equal(run.n, METRICS_WINDOW + 5);
    assert_near(ratio_estimate(&all).value, run.value, 1e-9);
    assert_near(1, run.se / ratio_estimate(&all).se, 1e-9);
}

/* Autoregressive decoding of a batch reads the layers once for all sequences. Sequences end one after another. */
TEST(a_batch_is_modelled_against_autoregressive_decoding_of_the_batch)
{
    struct metrics plain, drafted;
    metrics_begin(&plain, 32, 0.65);
    metrics_begin(&drafted, 32, 0.65);
    for (uint32_t round = 1; round <= 60; round++) {
        const uint32_t live = round < 20 ? 4 : round < 40 ? 3 : 1;
        for (uint32_t seq = 0; seq < live; seq++) {
            struct event e = {.type = EVENT_ROUND, .round = round, .seq = seq};
            e.round_end = (struct round_event){
                .emitted = 1, .layers_loaded = 32.0f / (float)live, .heads_loaded = 1.0f / (float)live};
            metrics_event(&plain, &e);
            e.round_end.emitted = 3; /* three times the tokens for twice the loads */
            e.round_end.layers_loaded *= 2;
            e.round_end.heads_loaded *= 2;
            metrics_event(&drafted, &e);
        }
    }
    const struct tally window = metrics_window(&drafted);
    const double modelled[] = {
        metrics_measures(&plain, &plain.total).modelled, metrics_estimates(&plain).modelled.value,
        metrics_measures(&drafted, &drafted.total).modelled, metrics_measures(&drafted, &window).modelled,
        metrics_estimates(&drafted).modelled.value};
    const double expected[] = {1, 1, 1.5, 1.5, 1.5};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_near(modelled[i], expected[i], 1e-6); /* loads are floats */
}

TEST(the_result_of_a_comparison_is_stored)
{
    struct metrics m;
    metrics_begin(&m, 32, 0.65);
    assert_int_equal(m.lossless, LOSSLESS_UNKNOWN);
    round_of(&m, 8, 8, 8, 9, 72, 30);
    control(&m, "lossless", "yes", 1, 1);
    assert_int_equal(m.compared, 10); /* includes the prefill's token */
    round_of(&m, 8, 8, 8, 9, 72, 30);
    control(&m, "lossless", "nothing to compare yet", 1, 1);
    assert_int_equal(m.lossless, LOSSLESS_YES);
    assert_int_equal(m.compared, 10);
    control(&m, "lossless", "no: token 17", 1, 1);
    assert_int_equal(m.lossless, LOSSLESS_NO);
    assert_int_equal(m.compared, 19);
    control(&m, "lossless", "sampled", 1, 1);
    assert_int_equal(m.lossless, LOSSLESS_SAMPLED);
    control(&m, "baseline", "nonsense", 1, 1); /* a trace of another program may contain this */
    control(&m, "baseline", "-1", 1, 1);
    control(&m, "baseline", "nan", 1, 1);
    assert_number_equal(m.baseline, 0);
    control(&m, "tau", "0.5", 1, 1); /* a knob */
    assert_int_equal(m.lossless, LOSSLESS_SAMPLED);
}

/* In older traces, "yes" does not include the number of sequences, so the compared tokens are unknown. */
TEST(a_comparison_of_several_sequences_contains_their_number)
{
    struct metrics m;
    struct event e = {.type = EVENT_ROUND, .round = 1, .round_end = {.emitted = 9, .verify_us = 1}};
    metrics_begin(&m, 32, 0.65);
    metrics_event(&m, &e);
    e.seq = 1;
    metrics_event(&m, &e);
    control(&m, "lossless", "yes", 1, 1);
    assert_int_equal(m.lossless, LOSSLESS_YES);
    assert_int_equal(m.compared, 0);
    control(&m, "lossless", "yes: 2 sequences", 1, 1);
    assert_int_equal(m.lossless, LOSSLESS_YES);
    assert_int_equal(m.compared, 20);
    control(&m, "lossless", "no: token 3 of sequence 1", 1, 1);
    assert_int_equal(m.lossless, LOSSLESS_NO);
}

TEST(the_drafts_time_is_split_where_it_is_known)
{
    struct metrics m;
    metrics_begin(&m, 32, 0.65);
    struct event e = {
        .type = EVENT_ROUND,
        .round_end = {
            .draft_us = 600, .verify_us = 300, .probe_us = 100, .emitted = 1, .heads_us = 150, .wait_us = 250}};
    metrics_event(&m, &e);
    struct measures s = metrics_measures(&m, &m.total);
    assert_near(0.6, s.draft_share, 1e-9);
    assert_near(0.15, s.heads_share, 1e-9); /* a part of the draft's time */
    assert_near(0.2, s.wait_share, 1e-9);   /* all threads were idle in 250 of 1250 */
    assert_near(1e6 / 900, s.tokens_per_s, 1e-9);
    e.round_end.heads_us = NAN; /* an older trace, or a backend that cannot measure it */
    metrics_event(&m, &e);
    s = metrics_measures(&m, &m.total);
    assert_true(isnan(s.heads_share));
    assert_near(0.6, s.draft_share, 1e-9);
}

TEST(a_round_of_which_only_the_time_is_known_has_no_shares_of_it)
{
    struct metrics m;
    struct event e = {.type = EVENT_ROUND,
                      .round_end = {.verify_us = 1000,
                                    .drafted = 3,
                                    .verified = 3,
                                    .accepted = 2,
                                    .emitted = 3,
                                    .exit_layer = -1,
                                    .d_max = -1,
                                    .w_max = -1,
                                    .layers_loaded = NAN,
                                    .heads_loaded = NAN,
                                    .heads_us = NAN}};
    metrics_begin(&m, 1, (double)NAN);
    metrics_event(&m, &e);
    const struct measures s = metrics_measures(&m, &m.total);
    assert_near(3000, s.tokens_per_s, 1e-9);
    assert_near(2.0 / 3, s.acceptance_rate, 1e-9);
    assert_true(isnan(s.draft_share));
    assert_true(isnan(s.modelled));
    assert_true(isnan(s.etpl));
    assert_true(isnan(s.predicted));
}

TEST(learning_passes_are_shown_after_the_speed)
{
    struct metrics m;
    metrics_begin(&m, 32, 0.65);
    control(&m, "baseline", "1000", 1, 1);
    struct event e = {
        .type = EVENT_ROUND,
        .round_end = {.draft_us = 600, .verify_us = 300, .probe_us = 100, .emitted = 3, .learning_us = 600}};
    metrics_event(&m, &e);
    struct measures s = metrics_measures(&m, &m.total);
    assert_near(3e6 / 900, s.tokens_per_s, 1e-9);
    assert_near(3e6 / 1500, s.tokens_per_s_all_in, 1e-9);
    assert_near(3e3 / 900, s.speedup, 1e-9);
    assert_near(2, s.speedup_all_in, 1e-9);
    assert_near(0.375, s.learning_share, 1e-9); /* 600 of 1600 */
    e.round_end.learning_us = NAN;              /* an older trace */
    metrics_event(&m, &e);
    s = metrics_measures(&m, &m.total);
    assert_true(isnan(s.tokens_per_s_all_in) && isnan(s.speedup_all_in) && isnan(s.learning_share));
    assert_near(6e6 / 1800, s.tokens_per_s, 1e-9);
}

TEST(percents_add_up_to_a_hundred)
{
    int percent[METRICS_SHARES];
    const double thirds[] = {1 / 3.0, 1 / 3.0, 1 / 3.0, 0};
    metrics_percents(thirds, percent, 4);
    assert_int_equal(percent[0] + percent[1] + percent[2], 100);
    assert_int_equal(percent[3], 0);
    const double halves[] = {0.125, 0.125, 0.125, 0.625}; /* each rounded by itself: 13 + 13 + 13 + 63 */
    metrics_percents(halves, percent, 4);
    assert_int_equal(percent[0] + percent[1] + percent[2] + percent[3], 100);
    const double none[] = {(double)NAN, (double)NAN, 0};
    metrics_percents(none, percent, 3);
    assert_int_equal(percent[0] + percent[1] + percent[2], 0);
    uint32_t random = 5;
    for (int n = 0; n < 10000; n++) {
        double share[METRICS_SHARES], sum = 0;
        const int count = 1 + n % METRICS_SHARES;
        for (int i = 0; i < count; i++) {
            random = random * 1664525U + 1013904223U;
            sum += share[i] = random >> 28 == 0 ? 0 : (double)(random >> 8);
        }
        int all = 0;
        metrics_percents(share, percent, count);
        for (int i = 0; i < count; i++) {
            all += percent[i];
            if (sum > 0)
                assert_near(percent[i], share[i] / sum * 100, 1); /* no error reaches a whole percent */
        }
        assert_int_equal(all, sum > 0 ? 100 : 0);
    }
}
