/* Forecasts: measures of simulated rounds with their uncertainty, gains on the same text, and estimates from wrong
 * drafts. */
#include <math.h>

#include "base/rng.h"
#include "engine/measure/forecast.h"
#include "engine/measure/layer_record.h"
#include "engine/measure/metrics.h"
#include "policies/what_if.h"
#include "tests/rigs/test.h"

enum { LAYERS = 4, ROWS = 168 };

static struct layer_record record;

/* Makes a record: layers disagree at every fourth row, with confidences of 0.1 and 0.6 in turn; else they are sure. */
static void
fill_record(void)
{
    record.n = record.first = record.begin = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        struct layer_sample row[LAYERS];
        for (uint32_t l = 1; l <= LAYERS; l++) {
            const bool agrees = l == LAYERS || i % 4 != 3;
            const float p = agrees ? 0.9f : i % 8 == 3 ? 0.1f : 0.6f;
            row[l - 1] = (struct layer_sample){.agrees = agrees, .confidence = p, .entropy = 1, .top_p = {p}};
        }
        layer_record_add(&record, row, 1000);
    }
    record.head_load = record.layers_load = 1;
    record.probes = 64;
}

/* Drafts with layer 2 until its confidence is below values[0], at most values[1] tokens. */
static bool
chain(const struct layer_record *r, const double *values, struct tally *out)
{
    struct what_if w;
    what_if_begin(&w, r, out);
    while (what_if_round(&w)) {
        bool stops = false;
        while (!stops && w.drafted < (uint32_t)values[1] && !what_if_full(&w)) {
            stops = (double)what_if_inspect(&w, 2)->confidence < values[0];
            what_if_propose(&w, 2, false);
        }
        what_if_verify(&w);
    }
    return true;
}

static const struct policy_ops policy = {.name = "chain", .what_if = chain};

static struct forecast
forecast_with(double threshold, double most)
{
    struct forecast f;
    assert_true(forecast_make(&policy, &record, (const double[]){threshold, most}, 1, NULL, &f));
    return f;
}

TEST(a_forecast_has_the_measures_of_its_rounds)
{
    fill_record();
    struct tally t;
    const struct forecast f = forecast_with(0, 2);
    assert_true(chain(&record, (const double[]){0, 2}, &t));
    assert_int_equal(f.tokens, ROWS);
    assert_int_equal(t.emitted, ROWS);
    assert_near((double)f.layers, t.layers / ROWS, 1e-6);
    assert_near((double)f.heads, t.heads / ROWS, 1e-6);
    assert_near((double)f.tokens_per_round, (double)ROWS / (double)t.rounds, 1e-6);
    assert_near((double)f.modelled, ROWS * (LAYERS + 1) / (t.layers + t.heads), 1e-5);
}

/* Without wrong drafts, nothing is drawn at random. */
TEST(draws_differ_only_where_words_are_drawn)
{
    fill_record();
    const struct forecast sure = forecast_with(0.5, 1), goes_on = forecast_with(0.05, 12);
    assert_number_equal(sure.draw[0], sure.draw[1]);
    assert_number_equal(sure.draw[0], sure.draw[FORECAST_DRAWS - 1]);
    assert_greater(goes_on.draw[0], 0); /* the threshold is below every confidence, so drafting continues in any draw */
    assert_number_equal(goes_on.draw[0], goes_on.draw[3]);
    record.lost = 0.5;
    const struct forecast drawn = forecast_with(0.5, 12);
    assert_true(drawn.draw[1] != drawn.draw[FORECAST_DRAWS - 1]);
    assert_greater(drawn.se, 0);
}

/* The share of lost words decides how long drafting continues after a wrong draft. */
TEST(lost_words_end_a_draft_sooner)
{
    fill_record();
    struct tally lost, found;
    const double values[] = {0.5, 12};
    record.lost = 1;
    assert_true(chain(&record, values, &lost));
    record.lost = 0;
    assert_true(chain(&record, values, &found));
    assert_less(lost.drafted + 10, found.drafted); /* 21 rounds continue after a wrong draft of 0.6 */
    assert_int_equal(lost.accepted, found.accepted);
    assert_int_equal(lost.emitted, found.emitted);
}

TEST(a_gain_is_of_the_same_text)
{
    fill_record();
    const struct forecast now = forecast_with(0.5, 2), more = forecast_with(0.5, 3), far = forecast_with(0.05, 32);
    const struct estimate none = forecast_gain(&now, &now);
    assert_number_equal(none.value, 0);
    assert_number_equal(none.se, 0);
    assert_false(forecast_better(&now, &now));
    assert_true(forecast_better(&more, &now)); /* every fourth token is wrong, so 3 drafts of each block are right */
    assert_less(forecast_gain(&far, &now).value, 0);
    assert_false(forecast_better(&far, &now));
    assert_less(forecast_gain(&more, &now).se, (double)more.se + (double)now.se);
}

/* A pass of n rows takes 1 + share · (n − 1) times as long as that of one row, at every step. */
static struct cost_model
costs_of_rows(double share)
{
    struct cost_model m = {.context = 64};
    for (uint32_t a = 0; a < COST_ARRAYS; a++)
        for (uint32_t i = 0; i < COST_ROWS; i++)
            m.us[a][i] = a == COST_OF_PASS ? cost_rows[i] : 1 + share * (cost_rows[i] - 1);
    cost_reset(&m);
    return m;
}

extern const struct policy_ops policy_ngram;

TEST(a_ceiling_is_the_speed_with_all_drafts_accepted)
{
    fill_record();
    const double values[] = {0, 6};
    const struct cost_model cheap = costs_of_rows(0.01), dear = costs_of_rows(1);
    struct forecast f;
    assert_true(forecast_make(&policy, &record, values, 1, &cheap, &f) && f.in_time);
    assert_less(f.acceptance, 1);
    const double ceiling = forecast_ceiling(&policy, &record, values, 1, &cheap);
    /* a round emits seven tokens for six drafts of two layers and a head each, and a verification */
    assert_greater(ceiling, (double)f.speedup);
    assert_greater(ceiling, 1.1);
    assert_less(ceiling, 4);
    assert_less(forecast_ceiling(&policy, &record, values, 1, &dear), 1);
    assert_true(isnan(forecast_ceiling(&policy, &record, values, 1, NULL)));
    assert_true(record.cells[0].agrees && !record.cells[3 * LAYERS].agrees && !record.accepts);
}

/* A copied draft has no ceiling, because another text may repeat itself more. */
TEST(copies_of_a_text_have_no_ceiling)
{
    fill_record();
    const struct cost_model dear = costs_of_rows(1);
    for (uint32_t i = 0; i < 200; i++)
        record.text[i] = (token_t)(i % 7);
    record.n_text = 200;
    record.first = 40;
    const double values[] = {3, 1, 4, 0};
    struct forecast f;
    assert_true(forecast_make(&policy_ngram, &record, values, 1, &dear, &f));
    assert_greater(f.acceptance, 0);
    assert_true(isnan(forecast_ceiling(&policy_ngram, &record, values, 1, &dear)));
    record.n_text = 0;
    assert_true(isnan(forecast_ceiling(&policy_ngram, &record, values, 1, &dear)));
}

TEST(a_gain_below_2_per_cent_is_not_better)
{
    struct forecast now = {.speedup = 2, .tokens = ROWS}, more = now;
    more.speedup = 2.03f; /* the gain is the same in every part and draw, so it is certain */
    for (uint32_t i = 0; i < FORECAST_DRAWS; i++) {
        now.draw[i] = now.speedup;
        more.draw[i] = more.speedup;
    }
    assert_false(forecast_better(&more, &now));
    for (uint32_t i = 0; i < FORECAST_DRAWS; i++)
        more.draw[i] = more.speedup = 2.05f;
    assert_true(forecast_better(&more, &now));
}

TEST(a_short_text_has_few_blocks)
{
    static const struct {
        uint32_t tokens, blocks;
    } cases[] = {{24, 4}, {64, 4}, {127, 4}, {128, 8}, {255, 8}, {256, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct forecast f = {.speedup = 1, .tokens = cases[i].tokens};
        assert_int_equal(forecast_gain(&f, &f).n, cases[i].blocks);
    }
}

/* Makes a record of passages of 5 to 15 tokens that are easy or hard, so that neighbouring tokens are similar. */
static void
fill_with_passages(uint32_t rows, uint64_t *random)
{
    double easy = 0;
    record.n = record.first = record.begin = 0;
    for (uint32_t i = 0, left = 0; i < rows; i++, left--) {
        struct layer_sample row[LAYERS];
        if (left == 0) {
            left = 5 + (uint32_t)(splitmix64(random) % 11);
            easy = splitmix64(random) % 2 == 0 ? 0.95 : 0.4;
        }
        const bool right = (double)(splitmix64(random) >> 11) * 0x1p-53 < easy;
        for (uint32_t l = 1; l <= LAYERS; l++)
            row[l - 1] = (struct layer_sample){
                .agrees = l == LAYERS || right, .confidence = 0.9f, .entropy = 1, .top_p = {0.9f}};
        layer_record_add(&record, row, 1000);
    }
    record.head_load = record.layers_load = 1;
    record.probes = 64;
}

/* Returns the share of texts of so many tokens whose interval contains the true gain of 6 drafts a round over 1. */
static double
covering(uint32_t tokens, double truth, uint64_t *random)
{
    uint32_t covered = 0;
    for (int i = 0; i < 400; i++) {
        fill_with_passages(tokens, random);
        const struct forecast now = forecast_with(0, 1), more = forecast_with(0, 6);
        const struct estimate gain = forecast_gain(&more, &now);
        covered += fabs(gain.value - truth) <= estimate_reach((double)gain.n - 1) * gain.se;
    }
    print_message("# %u tokens: %.1f%% of the intervals contain the gain\n", (unsigned)tokens, covered / 4.0);
    return covered / 400.0;
}

TEST(intervals_on_short_texts_contain_the_gain_on_long_ones)
{
    static const double drafts[2][2] = {{0, 1}, {0, 6}};
    struct tally all[2] = {{0}}, t;
    uint64_t random = 11;
    for (int i = 0; i < 2000; i++) {
        fill_with_passages(RECORD_TOKENS, &random);
        for (int k = 0; k < 2; k++) {
            assert_true(chain(&record, drafts[k], &t));
            tally_add(&all[k], &t);
        }
    }
    double modelled[2];
    for (int k = 0; k < 2; k++)
        modelled[k] = (double)all[k].emitted * (LAYERS + 1) / (all[k].layers + all[k].heads);
    const double truth = modelled[1] - modelled[0];
    const double shortest = covering(40, truth, &random), middle = covering(100, truth, &random),
                 longest = covering(256, truth, &random);
    assert_greater(shortest, 0.9);
    assert_greater(middle, 0.9);
    assert_greater(longest, 0.9);
}

TEST(a_policy_without_what_if_has_no_forecast)
{
    fill_record();
    const struct policy_ops none = {.name = "none"};
    struct forecast f;
    assert_false(forecast_make(&none, &record, (const double[]){0, 1}, 1, NULL, &f));
    assert_true(isnan(f.modelled));
    assert_int_equal(f.tokens, 0);
    record.begin = record.n;
    assert_false(forecast_make(&policy, &record, (const double[]){0, 1}, 1, NULL, &f));
}

/* ---- wrong paths ---- */

static struct wrong_paths paths;

static void
ask(uint32_t pos, float confidence)
{
    wrong_paths_event(
        &paths,
        &(struct event){.type = EVENT_LAYER,
                        .layer = {.pos = pos, .layer = 2, .confidence = confidence, .probed_by = PROBED_POLICY}});
}

/* Plays a round that drafts four tokens after position `pos` and has `right` of them accepted. */
static void
play_round(uint32_t pos, uint32_t right, float confidence)
{
    for (uint32_t i = 1; i <= 4; i++)
        ask(pos + i, i > right + 1 ? confidence : 0.9f);
    const struct event last = {
        .type = EVENT_TOKEN, .token = {.pos = pos + right + 1, .source = right < 4 ? SOURCE_CORRECTION : SOURCE_BONUS}};
    wrong_paths_event(&paths, &last);
    wrong_paths_event(&paths, &(struct event){.type = EVENT_ROUND});
}

TEST(words_after_a_wrong_draft_are_collected)
{
    wrong_paths_reset(&paths);
    play_round(10, 4, 0.5f);
    assert_int_equal(paths.n_words, 0);
    play_round(15, 1, 0.5f); /* position 17 is corrected: 18 and 19 are on a wrong path */
    assert_int_equal(paths.n_words, 2);
    assert_int_equal(paths.words[0].pos, 18);
    assert_int_equal(paths.words[1].pos, 19);
    for (uint32_t i = 0; i < 400; i++)
        play_round(20, 0, 0.25f);
    assert_int_equal(paths.n_words, WRONG_PATH_WORDS);
    assert_number_equal(paths.words[0].confidence, 0.25f); /* the oldest were dropped */
}

TEST(the_share_of_lost_predictions_follows_the_events)
{
    fill_record(); /* confidences: 0.7625 on average, 0.35 where layers disagree */
    wrong_paths_reset(&paths);
    wrong_paths_estimate(&paths, &record);
    assert_number_equal(record.lost, RECORD_LOST);
    assert_number_equal(record.lost_se, RECORD_LOST_SE);
    static const double lost[] = {0, 0.2, 0.6, 1};
    for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
        wrong_paths_reset(&paths);
        for (uint32_t n = 0; n < 200; n++)
            play_round(10, 0, (float)(0.7625 - 0.4125 * lost[i]));
        wrong_paths_estimate(&paths, &record);
        assert_near(record.lost, lost[i], 0.06); /* the estimate includes the prior */
        assert_less(record.lost_se, RECORD_LOST_SE);
    }
}

static int
open_record(void **state)
{
    (void)state;
    struct err err;
    return layer_record_open(&record, LAYERS, &err) ? 0 : 1;
}

static int
close_record(void **state)
{
    (void)state;
    layer_record_close(&record);
    return 0;
}

FIXTURE(open_record, close_record);
