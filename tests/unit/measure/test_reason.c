/* Why there is no gain: a setting is made for each reason, and one that gains has none. */
#include <math.h>

#include "base/rng.h"
#include "engine/measure/reason.h"
#include "tests/rigs/test.h"

enum { LAYERS = 20, EXIT = 5, ROUNDS = 1000 };

/* Times of a machine, in microseconds. */
struct machine {
    double layer, head; /* of one row; verification's head call is one, too */
    double probe;       /* of a draft */
    double row;         /* of a further row, as a share of one row */
};

static const struct machine usual = {.layer = 100, .head = 200, .probe = 100, .row = 0.05};

static struct cost_model
costs_of(const struct machine *m)
{
    struct cost_model c = {.context = 100};
    cost_reset(&c);
    for (int i = 0; i < COST_ROWS; i++) {
        const double rows = 1 + m->row * (cost_rows[i] - 1);
        c.us[COST_OF_LAYER][i] = m->layer * rows;
        c.us[COST_OF_HEAD][i] = m->head * rows;
        c.us[COST_OF_PASS][i] = m->layer * cost_rows[i];
        c.us[COST_OF_PROBE][i] = m->probe * rows;
    }
    return c;
}

static double
plain_us(const struct machine *m)
{
    return LAYERS * m->layer + m->head;
}

/* Rounds of k drafts from layer EXIT, each of which is accepted with probability a. */
static struct reason_rounds
rounds_of(const struct machine *m, uint32_t k, double a, uint32_t n, uint64_t seed)
{
    struct reason_rounds r = {.plain_us = plain_us(m), .speedup_se = 0.001};
    struct tally *t = &r.of;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t right = 0;
        while (right < k && (double)(splitmix64(&seed) >> 11) * 0x1p-53 < a)
            right++;
        t->rounds++;
        t->drafting_rounds += k > 0;
        t->drafted += k;
        t->verified += k;
        t->accepted += right;
        t->rejected_rounds += right < k;
        t->emitted += right + 1;
        t->exit_layers += (double)k * EXIT;
        t->heads_us += k * m->probe;
        t->draft_us += k * (EXIT * m->layer + m->probe);
        t->verify_us += plain_us(m) * (1 + m->row * k);
    }
    return r;
}

static struct reason
find(const struct machine *m, const struct reason_rounds *r)
{
    const struct cost_model costs = costs_of(m);
    return reason_find(r, LAYERS, 2, &costs, NULL);
}

static struct reason
reason_with(const struct machine *m, uint32_t k, double a)
{
    const struct reason_rounds r = rounds_of(m, k, a, ROUNDS, 1);
    return find(m, &r);
}

static const char *
text_of(const struct reason *r)
{
    static char text[500];
    struct reason_line line;
    reason_print(r, NULL, NULL, &line);
    return reason_text(&line, text, sizeof text);
}

TEST(probes_of_many_layers_are_the_reason_where_accepted_drafts_alone_do_not_pay)
{
    const struct machine m = {.layer = 100, .head = 1000, .probe = 2600, .row = 0.05};
    const struct reason r = reason_with(&m, 4, 0.9);
    assert_int_equal(r.kind, REASON_COSTS);
    assert_int_equal(r.part, REASON_HEADS);
    assert_less(r.ceiling, 1);
    assert_near(r.probe_layers, 26, 0.01);
    assert_contains(text_of(&r), "a probe of all tokens costs 26 layers here");
}

TEST(layers_are_the_reason_where_drafting_runs_nearly_all_of_them)
{
    struct machine m = usual;
    m.probe = 10;
    struct reason_rounds r = rounds_of(&m, 4, 0.9, ROUNDS, 1);
    r.of.draft_us *= 6;
    const struct reason why = find(&m, &r);
    assert_int_equal(why.kind, REASON_COSTS);
    assert_int_equal(why.part, REASON_LAYERS);
    r.model = true;
    assert_contains(text_of(&(struct reason){.kind = REASON_COSTS, .part = find(&m, &r).part, .probe_layers = 9}),
                    "the drafter takes");
}

TEST(wrong_drafts_are_the_reason_where_few_are_accepted)
{
    const struct reason r = reason_with(&usual, 4, 0.02);
    assert_int_equal(r.kind, REASON_DRAFTS);
    assert_at_least(r.ceiling, 1);
    assert_near(r.have.value, 0.02, 0.02);
    assert_less(r.have.value, r.need);
    assert_int_equal(r.layer, EXIT);
    assert_contains(text_of(&r), "2% of tested drafts accepted");
}

TEST(verification_is_the_reason_where_rows_cost_nearly_as_much_as_steps)
{
    const struct machine m = {.layer = 100, .head = 200, .probe = 20, .row = 0.45};
    const struct reason r = reason_with(&m, 4, 0.86);
    assert_less(r.speedup, REASON_GAINS);
    assert_int_equal(r.kind, REASON_VERIFICATION);
    assert_int_equal(r.rows, 5);
    assert_near(r.rows_cost, 1 + 0.45 * 4, 0.01);
    assert_contains(text_of(&r), "5 rows cost 2.8× one here");
}

TEST(a_small_gain_and_noise_are_called_so)
{
    struct reason_rounds r = rounds_of(&usual, 2, 0.9, ROUNDS, 1);
    const double now = find(&usual, &r).speedup;
    r.plain_us *= 1.03 / now;
    r.speedup_se = 0.005;
    assert_int_equal(find(&usual, &r).kind, REASON_SMALL);
    r.speedup_se = 0.02;
    assert_int_equal(find(&usual, &r).kind, REASON_NOISE);
    const struct reason noise = find(&usual, &r);
    assert_contains(text_of(&noise), "no clear difference from plain decoding: 1.03× ±0.02");
}

TEST(no_drafts_are_a_reason_of_their_own)
{
    const struct reason r = reason_with(&usual, 0, 0);
    assert_int_equal(r.kind, REASON_NO_DRAFTS);
}

TEST(a_setting_that_gains_never_has_a_reason)
{
    uint64_t random = 7;
    uint32_t gains = 0;
    for (int i = 0; i < 2000; i++) {
        const struct machine m = {.layer = 100,
                                  .head = (double)(splitmix64(&random) % 3000),
                                  .probe = (double)(splitmix64(&random) % 500),
                                  .row = (double)(splitmix64(&random) % 40) / 100};
        const double a = (double)(splitmix64(&random) % 100) / 100;
        const struct reason_rounds rounds = rounds_of(&m, (uint32_t)(1 + splitmix64(&random) % 8), a, 100, random);
        const struct reason r = find(&m, &rounds);
        assert_at_least(r.ceiling, r.speedup);
        assert_int_equal(r.kind == REASON_NONE, r.speedup >= REASON_GAINS);
        gains += r.kind == REASON_NONE;
    }
    assert_between(gains, 200, 1800);
}

TEST(at_the_needed_acceptance_the_speed_is_that_of_plain_decoding)
{
    for (uint32_t k = 1; k <= 8; k++) {
        const struct reason r = reason_with(&usual, k, 0.3);
        if (r.need < 1)
            assert_near(reason_with(&usual, k, r.need).speedup, 1, 0.06);
    }
}

TEST(few_rounds_of_a_setting_that_is_as_fast_seldom_have_wrong_drafts_as_their_reason)
{
    const double a = reason_with(&usual, 4, 0.3).need;
    uint32_t wrong = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct reason_rounds r = rounds_of(&usual, 4, a, 30, seed * 1000);
        r.speedup_se = 0.1;
        wrong += find(&usual, &r).kind == REASON_DRAFTS;
    }
    assert_at_most(wrong, 60);
}

TEST(without_costs_the_weights_take_their_place)
{
    const struct reason_rounds r = rounds_of(&usual, 4, 0.02, ROUNDS, 1);
    assert_near(reason_find(&r, LAYERS, 2.4, NULL, NULL).probe_layers, 2.4, 1e-9);
    struct reason_rounds unknown = r;
    unknown.plain_us = NAN;
    assert_int_equal(reason_find(&unknown, LAYERS, 2.4, NULL, NULL).kind, REASON_NONE);
}

TEST(the_fastest_remedies_are_kept_in_order)
{
    const struct knob k = {.name = "gamma", .kind = KNOB_INTEGER, .min = 1, .max = 9, .step = 1, .def = 4};
    const struct reason r = reason_with(&usual, 4, 0.02);
    struct remedies all = {.n = 0};
    struct reason_line line;
    char text[500];
    remedies_add_knob(&all, &k, 2, 0.97);
    remedies_add_policy(&all, "one", 1.2);
    remedies_add_policy(&all, "two", 1.1);
    remedies_add_policy(&all, "three", (double)NAN);
    reason_print(&r, &all, "mine", &line);
    assert_contains(reason_text(&line, text, sizeof text), "mine: no gain: ");
    assert_contains(text, "; next: P one 1.20×; P two 1.10×");
    assert_string_equal(line.part[line.n - 1].command, "policy two");
    all = (struct remedies){.n = 0};
    remedies_add_knob(&all, &k, 2, 0.97);
    assert_string_equal(all.at[0].command, "set gamma 2");
    assert_string_equal(all.at[0].text, "gamma 2");
}
