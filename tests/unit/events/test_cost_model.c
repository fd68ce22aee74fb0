/* The cost model: prices compared with a slow definition, counts of simulated rounds, corrections by rounds of known
 * costs, and the model's text form. */
#include <math.h>

#include "base/rng.h"
#include "engine/events/cost_model.h"
#include "engine/measure/forecast.h"
#include "policies/what_if.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

extern const struct policy_ops policy_dspark;

enum { LAYERS = 6, ROWS = 200, CALLS = 200 };

static uint64_t seed;
TEST_SEED(seed, 7);

/* Returns a number with few digits, as the engine measures: the text form has at most 15. */
static double
random_to(uint64_t *random, double most)
{
    return floor((double)(splitmix64(random) >> 11) * 0x1p-53 * most * 1e4) / 1e4;
}

static struct cost_model
random_model(uint64_t *random)
{
    struct cost_model m = {.draft = random_to(random, 5),
                           .round = random_to(random, 20),
                           .first = random_to(random, 20),
                           .first_draft = random_to(random, 20),
                           .context = 64};
    for (int a = 0; a < COST_ARRAYS; a++) {
        for (int i = 0; i < COST_ROWS; i++)
            m.us[a][i] = random_to(random, 50);
    }
    for (int f = 0; f < COST_FAR; f++)
        for (int i = 0; i < COST_ROWS; i++)
            m.far[f][i] = random_to(random, 30);
    cost_reset(&m);
    return m;
}

/* Returns the value for some rows: on the line through the two measured numbers of rows around it, or the last two. */
static double
on_line(const double us[COST_ROWS], uint32_t rows)
{
    int i = 1;
    while (i + 1 < COST_ROWS && cost_rows[i] < rows)
        i++;
    const double from = cost_rows[i - 1], to = cost_rows[i];
    return us[i - 1] + (us[i] - us[i - 1]) * (rows - from) / (to - from);
}

static double
slow_call(const struct cost_model *m, enum cost_array array, uint32_t rows, double position)
{
    double far[COST_ROWS];
    for (int i = 0; i < COST_ROWS; i++) {
        far[i] = array == COST_OF_LAYER   ? m->far[COST_FAR_LAYER][i]
                 : array == COST_OF_DRAFT ? m->far[COST_FAR_DRAFT][i]
                 : array == COST_OF_PASS  ? m->far[COST_FAR_LAYER][0] * cost_rows[i]
                                          : 0;
        far[i] = fmin(far[i], m->us[array][i] * 1000 / m->context); /* the cost at position 0 is not negative */
    }
    return on_line(m->us[array], rows) + on_line(far, rows) * (position - m->context) / 1000;
}

static bool
near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b)) + 1e-9;
}

TEST(a_price_is_the_sum_of_its_calls)
{
    static const enum cost_array array[COST_STEPS] = {
        COST_OF_PASS,          COST_OF_LAYER,     COST_OF_PROBE,      COST_OF_TRAINED_PROBE, COST_OF_EXITS,
        COST_OF_TRAINED_EXITS, COST_OF_DRAFT,     COST_OF_DRAFT_HEAD, COST_OF_FEED,          COST_OF_MARKOV,
        COST_OF_SET_PROBE,     COST_OF_SET_EXITS, COST_OF_PASS,       COST_OF_LAYER,         COST_OF_HEAD};
    static const enum cost_phase phase[COST_STEPS] = {
        COST_DRAFTING,   COST_DRAFTING,   COST_HEADS,        COST_HEADS,        COST_EXIT_HEADS,
        COST_EXIT_HEADS, COST_MODEL,      COST_HEADS,        COST_MODEL,        COST_HEADS,
        COST_HEADS,      COST_EXIT_HEADS, COST_VERIFICATION, COST_VERIFICATION, COST_VERIFICATION};
    uint64_t random = seed;
    struct cost_model m = random_model(&random);
    for (int p = 0; p < COST_PHASES; p++)
        m.factor[p] = 0.5 + random_to(&random, 1);
    struct cost_count c = {.passes = 9, .rounds = 4, .first = 3, .first_draft = 2};
    double slow[COST_PHASES] = {[COST_HOST] = 13 * m.draft,
                                [COST_DRAFTING] = 3 * m.first,
                                [COST_MODEL] = 2 * m.first_draft,
                                [COST_VERIFICATION] = 4 * m.round},
           us[COST_PHASES], sum = 0;
    for (int i = 0; i < CALLS; i++) {
        const enum cost_step s = (enum cost_step)(splitmix64(&random) % COST_STEPS);
        const uint32_t rows = 1 + (uint32_t)(splitmix64(&random) % 300),
                       position = (uint32_t)(splitmix64(&random) % 4000);
        const double calls = 1 + (double)(splitmix64(&random) % 20);
        cost_add(&c, s, rows, calls, position);
        slow[phase[s]] += calls * slow_call(&m, array[s], rows, position);
    }
    const double price = cost_price(&m, &c, us);
    for (int p = 0; p < COST_PHASES; p++) {
        assert_true(near(us[p], slow[p] * m.factor[p]));
        sum += us[p];
    }
    assert_true(near(price, sum));
    struct cost_count part = {.rounds = 0};
    cost_add_all(&part, &c, 0.25);
    cost_add_all(&part, &c, 0.75);
    assert_true(near(cost_price(&m, &part, us), price));
    memset(m.us[COST_OF_DRAFT], 0, sizeof m.us[COST_OF_DRAFT]);
    assert_true(isnan(cost_price(&m, &c, us))); /* passes of a draft model that was not measured */
}

TEST(an_autoregressive_step_is_a_round_without_drafts)
{
    uint64_t random = seed;
    const struct cost_model m = random_model(&random);
    struct cost_count c = {.rounds = 1};
    double us[COST_PHASES];
    cost_add(&c, COST_PASS, LAYERS, 1, 500);
    cost_add(&c, COST_HEAD, 1, 1, m.context);
    cost_price(&m, &c, us);
    assert_true(near(us[COST_VERIFICATION], cost_autoregressive(&m, LAYERS, 500)));
}

TEST(no_call_has_a_negative_price)
{
    uint64_t random = seed;
    struct cost_model m = random_model(&random);
    double us[COST_PHASES];
    for (int i = 0; i < COST_ROWS; i++)
        m.far[COST_FAR_LAYER][i] = 1e6; /* noise of a measurement */
    for (uint32_t rows = 1; rows <= 8; rows++) {
        struct cost_count c = {.rounds = 0};
        cost_add(&c, COST_LAYER, rows, 1, 0);
        assert_greater(cost_price(&m, &c, us), -1e-9); /* allows rounding errors */
    }
    assert_greater(cost_autoregressive(&m, LAYERS, 0), -1e-9);
}

/* ---- counts of simulated rounds ---- */

/* A random record; the deeper a layer, the more often it agrees. */
static void
fill_record(struct layer_record *r, uint64_t *random)
{
    struct err err;
    assert_ok(layer_record_open(r, LAYERS, &err), err);
    for (uint32_t i = 0; i < ROWS; i++) {
        struct layer_sample row[LAYERS];
        for (uint32_t l = 1; l <= LAYERS; l++)
            row[l - 1] = (struct layer_sample){.agrees = l == LAYERS || random_to(random, LAYERS + 1) < l,
                                               .confidence = (float)random_to(random, 1),
                                               .entropy = 1};
        layer_record_add(r, row, 1000);
    }
    r->head_load = r->layers_load = 1;
    r->lost = r->lost_se = 0;
    r->probes = 512;
}

static struct cost_count slow; /* the count by definition: a call for each layer of each pass */

static void
slow_pass(uint32_t *depth, uint32_t rows, uint32_t to, enum cost_step step, uint32_t position)
{
    uint32_t alone = 0; /* layers that the last row runs alone, from the first one on */
    for (uint32_t l = 1; l <= to; l++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < rows; i++)
            n += depth[i] < l;
        const bool is_alone = step == COST_LAYER && n == 1 && depth[rows - 1] == 0 && alone == l - 1;
        alone += is_alone;
        if (n > 0 && !is_alone)
            cost_add(&slow, step, n, 1, position);
        if (step == COST_DRAFT_ROWS) /* the last row's layer is part of its pass */
            cost_add(&slow, step, 1, -1, position);
    }
    if (step == COST_DRAFT_ROWS)
        cost_add(&slow, COST_DRAFT_PASS, to, 1, position);
    if (alone > 0)
        cost_add(&slow, COST_PASS, alone, 1, position);
    for (uint32_t i = 0; i < rows; i++)
        depth[i] = depth[i] < to ? to : depth[i];
}

/* Each token exits at the first layer whose confidence reaches values[0]; a round has values[1] drafts. */
static bool
exits(const struct layer_record *r, const double *value, struct tally *out)
{
    float temperature[LAYERS + 1], threshold[LAYERS + 1];
    for (int l = 0; l <= LAYERS; l++) {
        temperature[l] = 1;
        threshold[l] = (float)value[0];
    }
    struct what_if w;
    what_if_begin(&w, r, out);
    slow = (struct cost_count){0};
    while (what_if_round(&w)) {
        uint32_t depth[VERIFY_NODES] = {0}, rows = 1, exit = 1;
        const uint32_t at = r->first + w.at;
        while (w.drafted < value[1] && !what_if_full(&w) && exit > 0) {
            exit =
                what_if_until(&w, LAYERS - 1, &(struct exit_rule){.temperature = temperature, .threshold = threshold});
            slow_pass(depth, rows, exit > 0 ? exit : LAYERS - 1, COST_DRAFT_ROWS, at);
            cost_add(&slow, COST_EXITS, exit > 0 ? exit : LAYERS - 1, 1, at);
            slow.first += w.drafted == 0;
            slow.passes++;
            if (exit > 0) {
                what_if_propose(&w, exit, false);
                rows++;
            }
        }
        what_if_verify(&w);
        slow_pass(depth, rows, LAYERS, COST_LAYER, at);
        cost_add(&slow, COST_HEAD, rows, 1, at);
        slow.rounds++;
    }
    return true;
}

static const struct policy_ops exiting = {.name = "exiting", .what_if = exits};

TEST(simulated_rounds_count_the_rows_of_each_layer)
{
    uint64_t random = seed;
    struct layer_record r;
    struct record_loads loads = {.drawn = 0};
    struct cost_count all = {.rounds = 0};
    struct tally t;
    fill_record(&r, &random);
    r.loads = &loads;
    assert_true(exits(&r, (const double[]){0.6, 12}, &t));
    for (int i = 0; i < RECORD_BLOCKS; i++) {
        assert_greater(loads.steps[i].rounds, 0);
        cost_add_all(&all, &loads.steps[i], 1);
    }
    assert_true(near(all.passes, slow.passes) && near(all.rounds, (double)t.rounds) && near(all.first, slow.first));
    for (int s = 0; s < COST_STEPS; s++)
        for (int i = 0; i < COST_ROWS; i++)
            assert_true(near(all.calls[s][i], slow.calls[s][i]) && near(all.thousands[s][i], slow.thousands[s][i]));
    layer_record_close(&r);
}

/* A round of a block drafter: it is fed what the last round emitted, drafts a block up to a small confidence, and the
 * target verifies. Returns the number of emitted tokens. */
static uint32_t
slow_block(const struct layer_record *r, uint32_t row, uint32_t unread, uint32_t k, double conf_min)
{
    const struct record_drafter *d = &r->draft;
    const uint32_t at = r->first + row;
    uint32_t drafted = 0;
    if (k > 0) {
        if (unread > 0)
            cost_add(&slow, COST_FEED, unread, 1, at);
        cost_add(&slow, COST_DRAFT, d->block, 1, at);
        cost_add(&slow, COST_DRAFT_HEAD, k, 1, at);
        slow.first_draft++;
    }
    for (bool sure = true; drafted < k && sure; drafted += sure) {
        cost_add(&slow, COST_MARKOV, 1, 1, at);
        sure = (double)d->confidence[row * d->drafts + drafted] >= conf_min;
    }
    cost_add(&slow, drafted > 0 ? COST_LAYER : COST_PASS, drafted > 0 ? 1 + drafted : LAYERS, drafted > 0 ? LAYERS : 1,
             at);
    cost_add(&slow, COST_HEAD, 1 + drafted, 1, at);
    slow.rounds++;
    return 1 + (d->run[row] < drafted ? d->run[row] : drafted);
}

TEST(rounds_of_a_block_drafter_count_what_it_is_fed_its_block_and_its_markov_head)
{
    enum { BLOCK = 6, DRAFTS = 5, K = 4 };
    const double conf_min = 0.3, values[] = {K, conf_min, 1, 16};
    static uint8_t run[ROWS];
    static float confidence[ROWS * DRAFTS];
    uint64_t random = seed;
    struct layer_record r;
    struct record_loads loads = {.drawn = 0};
    struct cost_count all = {.rounds = 0};
    struct tally t;
    fill_record(&r, &random);
    r.loads = &loads;
    for (int i = 0; i < ROWS; i++)
        run[i] = (uint8_t)(splitmix64(&random) % (DRAFTS + 1));
    for (int i = 0; i < ROWS * DRAFTS; i++)
        confidence[i] = (float)random_to(&random, 1);
    r.draft.role = AUX_BLOCK;
    r.draft.known = r.draft.markov = true;
    r.draft.block = BLOCK;
    r.draft.drafts = DRAFTS;
    r.draft.run = run;
    r.draft.confidence = confidence;
    slow = (struct cost_count){0};
    for (uint32_t row = r.begin, emitted = 0; row < r.n; row += emitted)
        emitted = slow_block(&r, row, emitted, r.n - 1 - row < K ? r.n - 1 - row : K, conf_min);
    assert_true(policy_dspark.what_if(&r, values, &t));
    for (int i = 0; i < RECORD_BLOCKS; i++)
        cost_add_all(&all, &loads.steps[i], 1);
    assert_true(near(all.rounds, (double)t.rounds) && near(all.first_draft, slow.first_draft));
    for (int s = 0; s < COST_STEPS; s++)
        for (int i = 0; i < COST_ROWS; i++)
            assert_true(near(all.calls[s][i], slow.calls[s][i]) && near(all.thousands[s][i], slow.thousands[s][i]));
    r.draft.markov = false; /* dspark's drafts are others */
    assert_true(policy_dspark.what_if(&r, values, &t) && t.rounds == 0);
    layer_record_close(&r);
}

TEST(a_forecast_in_time_is_autoregressive_time_by_the_rounds_price)
{
    uint64_t random = seed;
    const struct cost_model m = random_model(&random);
    const double value[] = {0.6, 12};
    struct layer_record r;
    struct forecast f, without;
    double us[COST_PHASES];
    fill_record(&r, &random);
    assert_true(forecast_make(&exiting, &r, value, 1, &m, &f) && forecast_make(&exiting, &r, value, 1, NULL, &without));
    assert_true(f.in_time && !without.in_time);
    assert_number_equal(f.modelled, without.modelled);
    assert_number_equal(without.speedup, without.modelled);
    const double price = cost_price(&m, &slow, us), one = cost_autoregressive(&m, LAYERS, ROWS / 2.0);
    assert_near((double)f.speedup, one * ROWS / price, 1e-4 * one * ROWS / price);
    assert_greater((double)f.se, (double)f.speedup * m.error);
    layer_record_close(&r);
}

/* ---- corrections ---- */

static struct cost_count
random_rounds(uint64_t *random, bool model)
{
    struct cost_count c = {.rounds = 10, .passes = 40};
    for (int i = 0; i < 40; i++) {
        const uint32_t rows = 1 + (uint32_t)(splitmix64(random) % 3);
        cost_add(&c, model ? COST_DRAFT : COST_DRAFT_PASS, rows, 4, 100);
        cost_add(&c, COST_PROBE, 1, 4, 100);
    }
    cost_add(&c, COST_LAYER, 5, 40, 100);
    cost_add(&c, COST_HEAD, 5, 10, 100);
    return c;
}

/* On a simulated machine each phase takes a different multiple of the measured cost. Its times vary by a tenth, and
 * policies draft with layers and with a model in turn. */
TEST(corrections_converge_to_the_true_costs)
{
    for (int machine = 0; machine < 20; machine++) {
        uint64_t random = seed + (uint64_t)machine;
        struct cost_model m = random_model(&random), truth = m;
        for (int p = 0; p < COST_PHASES; p++)
            truth.factor[p] = exp(random_to(&random, 2) - 1);
        for (int i = 0; i < 60; i++) {
            const struct cost_count c = random_rounds(&random, i % 2 == 0);
            double price[COST_PHASES], us[COST_PHASES];
            cost_price(&m, &c, price);
            cost_price(&truth, &c, us);
            for (int p = 0; p < COST_PHASES; p++)
                us[p] *= 0.95 + random_to(&random, 0.1);
            cost_correct(&m, price, us[COST_HOST] + us[COST_DRAFTING] + us[COST_MODEL] + us[COST_HEADS], us[COST_HEADS],
                         us[COST_VERIFICATION]);
        }
        for (int i = 0; i < 2; i++) {
            const struct cost_count c = random_rounds(&random, i == 0);
            double us[COST_PHASES];
            const double is = cost_price(&truth, &c, us), was = cost_price(&m, &c, us);
            assert_near(was / is, 1, 0.05);
        }
        assert_less(m.error, 0.05);
    }
}

TEST(unknown_head_times_correct_drafts_as_a_whole)
{
    uint64_t random = seed;
    struct cost_model m = random_model(&random);
    const struct cost_count c = random_rounds(&random, false);
    double us[COST_PHASES];
    for (int i = 0; i < 40; i++) {
        cost_price(&m, &c, us);
        cost_correct(&m, us, 3000, NAN, 700);
    }
    cost_price(&m, &c, us);
    assert_near(us[COST_HOST] + us[COST_DRAFTING] + us[COST_HEADS], 3000, 30);
    assert_near(us[COST_VERIFICATION], 700, 7);
}

/* The machine takes 1.7 times as long as when the costs were measured. */
TEST(the_first_correction_concerns_all_phases)
{
    uint64_t random = seed;
    struct cost_model by_rounds = random_model(&random), by_baseline = by_rounds;
    const struct cost_count layers = random_rounds(&random, false), model = random_rounds(&random, true);
    double us[COST_PHASES], own[COST_PHASES];
    const double before = cost_price(&by_rounds, &model, us), step = cost_autoregressive(&by_rounds, LAYERS, 100);
    cost_price(&by_rounds, &layers, own);
    cost_correct(&by_rounds, own, 1.7 * (own[COST_HOST] + own[COST_DRAFTING] + own[COST_HEADS]), 1.7 * own[COST_HEADS],
                 1.7 * own[COST_VERIFICATION]);
    cost_correct_autoregressive(&by_baseline, LAYERS, 100, 1.7 * step);
    assert_true(near(cost_price(&by_rounds, &model, us), 1.7 * before));
    assert_true(near(cost_price(&by_baseline, &model, us), 1.7 * before));
    assert_true(near(cost_autoregressive(&by_rounds, LAYERS, 100), 1.7 * step));
}

TEST(a_later_baseline_corrects_autoregressive_steps_alone)
{
    uint64_t random = seed;
    struct cost_model m = random_model(&random);
    double factor[COST_PHASES];
    const double before = cost_autoregressive(&m, LAYERS, 100);
    cost_correct_autoregressive(&m, LAYERS, 100, before);
    memcpy(factor, m.factor, sizeof factor);
    cost_correct_autoregressive(&m, LAYERS, 100, 1.5 * before);
    const double after = cost_autoregressive(&m, LAYERS, 100);
    assert_greater(after, before);
    assert_less(after, 1.5 * before);
    assert_memory_equal(factor, m.factor, sizeof factor);
    cost_correct_autoregressive(&m, LAYERS, 100, NAN);
    assert_true(near(cost_autoregressive(&m, LAYERS, 100), after));
}

/* ---- the text form ---- */

TEST(a_text_of_costs_reads_back_the_same)
{
    uint64_t random = seed;
    struct cost_model m = random_model(&random), back;
    char text[COST_TEXT];
    struct err err;
    memset(m.us[COST_OF_DRAFT_HEAD], 0, sizeof m.us[COST_OF_DRAFT_HEAD]);
    assert_true(cost_model_print(&m, text));
    assert_ok(cost_model_parse(text, &back, &err), err);
    assert_memory_equal(&m, &back, sizeof m);
}

TEST(a_wrong_text_of_costs_is_refused)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"context\": -1}",
        "{\"context\": 64, \"fixed_draft\": 1, \"fixed_first\": 1, \"fixed_first_draft\": 1, \"fixed_round\": 1}",
        "{\"context\": 64, \"fixed_draft\": 1, \"fixed_first\": 1, \"fixed_first_draft\": 1, \"fixed_round\": 1, "
        "\"layer\": [1, 2]}",
        "{\"context\": 64, \"fixed_draft\": 1, \"fixed_first\": 1, \"fixed_first_draft\": 1, \"fixed_round\": 1, "
        "\"far_layer\": [1, "
        "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}",
        "{\"context\": 64, \"fixed_draft\": \"1\", \"fixed_round\": 1}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct cost_model m;
        struct err err = {.kind = ERR_NONE};
        assert_false(cost_model_parse(wrong[i], &m, &err));
        assert_int_equal(err.kind, ERR_WORK);
        assert_int_not_equal(err.text[0], '\0');
    }
}
