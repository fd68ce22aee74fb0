/* Declarations of knobs and series, and values of knobs as text. */
#include <math.h>

#include "engine/events/policy.h"
#include "tests/rigs/test.h"

static const char *const modes[] = {"dynamic", "tpl"};
static const struct knob tau = {"tau", "τ", "confidence threshold", KNOB_REAL, 0, 1, 0.05, 0.55, NULL};
static const struct knob d_max = {"d_max", "", "deepest exit", KNOB_INTEGER, 1, 31, 1, 10, NULL};
static const struct knob odd = {"stride", "", "odd numbers only", KNOB_INTEGER, 1, 9, 2, 1, NULL};
static const struct knob mode = {"mode", "", "what limits a draft", KNOB_CHOICE, 0, 1, 1, 0, modes};

TEST(knobs_start_at_their_default)
{
    struct policy p = {0};
    assert_true(policy_knob(&p, &tau));
    assert_true(policy_knob(&p, &d_max));
    assert_true(policy_knob(&p, &mode));
    assert_int_equal(p.info.n_knobs, 3);
    assert_number_equal(p.value[0], 0.55);
    assert_number_equal(p.value[1], 10);
    assert_number_equal(p.value[2], 0);
}

TEST(knobs_are_found_by_name_and_symbol)
{
    struct policy p = {0};
    policy_knob(&p, &d_max);
    policy_knob(&p, &tau);
    assert_int_equal(policy_knob_index(&p.info, "tau"), 1);
    assert_int_equal(policy_knob_index(&p.info, "τ"), 1);
    assert_int_equal(policy_knob_index(&p.info, "d_max"), 0);
    assert_int_equal(policy_knob_index(&p.info, "gamma"), -1);
    assert_int_equal(policy_knob_index(&p.info, ""), -1); /* d_max has no symbol */
}

TEST(names_of_controls_are_refused)
{
    static const char *const reserved[] = {
        "run", "prompt",   "policy",   "state", "probe",       "head",   "break",          "joined", "left",  "back",
        "end", "baseline", "lossless", "pace",  "baseline_se", "device", "baseline_slice", "race",   "server"};
    struct policy p = {0};
    struct err err;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        struct knob k = tau;
        snprintf(k.name, sizeof k.name, "%s", reserved[i]);
        assert_false(policy_knob(&p, &k));
        assert_false(knob_valid(&k, &err));
        assert_contains(err.text, reserved[i]);
    }
    assert_int_equal(p.info.n_knobs, 0);
}

TEST(numbers_and_choices_are_declared_in_a_line)
{
    static const char *const names[] = {"off", "paper", "code", NULL};
    struct policy p = {0};
    assert_true(policy_number(&p, "tau", "τ", 0, 1, 0.05, 0.55, "confidence threshold"));
    assert_true(policy_number(&p, "d_max", "", 1, 31, 1, 10, "deepest exit"));
    assert_true(policy_choice(&p, "tree", "", names, 1, "siblings"));
    assert_int_equal(p.info.knobs[0].kind, KNOB_REAL);
    assert_int_equal(p.info.knobs[1].kind, KNOB_INTEGER);
    const struct knob *tree = &p.info.knobs[2];
    assert_int_equal(tree->kind, KNOB_CHOICE);
    assert_number_equal(tree->min, 0);
    assert_number_equal(tree->max, 2);
    assert_number_equal(p.value[2], 1);
    assert_string_equal(tree->choices[2], "code");
    assert_false(policy_choice(&p, "other", "", names, 3, "a default that there is not"));
    assert_false(policy_choice(&p, "none", "", names + 3, 0, "nothing to choose"));
}

/* ---- opening ---- */

static bool
declares_twice(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return policy_knob(p, &tau) && policy_knob(p, &tau);
}

TEST(a_policy_that_cannot_open_gives_the_reason)
{
    const struct policy_ops deep = {.name = "deep", .title = "", .paper = "", .least_layers = 3, .state_size = 8};
    const struct policy_ops twice = {.name = "twice", .title = "", .paper = "", .open = declares_twice};
    const struct model_info model = {.layers = 2};
    const struct sampling greedy = {.top_p = 1};
    struct policy p;
    struct err err;
    assert_false(policy_open(&p, &deep, &model, &greedy, &err));
    assert_string_equal(err.text, "deep needs a model of 3 layers or more, this one has 2");
    policy_close(&p);
    assert_false(policy_open(&p, &twice, &model, &greedy, &err));
    assert_contains(err.text, "twice declares");
    policy_close(&p);
}

TEST(unsound_declarations_are_refused)
{
    struct policy p = {0};
    struct knob k = tau;
    assert_true(policy_knob(&p, &tau));
    assert_false(policy_knob(&p, &tau)); /* twice */
    k = d_max, k.name[0] = '\0';
    assert_false(policy_knob(&p, &k));
    k = d_max, k.max = 0;
    assert_false(policy_knob(&p, &k));
    k = d_max, k.def = 32;
    assert_false(policy_knob(&p, &k));
    k = d_max, k.min = 0.5;
    assert_false(policy_knob(&p, &k));
    k = d_max, k.max = (double)NAN;
    assert_false(policy_knob(&p, &k));
    k = mode, k.choices = NULL;
    assert_false(policy_knob(&p, &k));
    k = d_max, memset(k.help, 'x', sizeof k.help);
    assert_false(policy_knob(&p, &k));
    assert_false(policy_series(&p, "", "", SERIES_LINE, 1, 1));
    assert_false(policy_series(&p, "mask", "", SERIES_MASK, 0, 1));
    assert_false(policy_series(&p, "mask", "", SERIES_MASK, 1 << 20, 1 << 20));
    assert_false(policy_series(&p, "a key that is much too long", "", SERIES_LINE, 1, 1));
    assert_true(policy_series(&p, "mask", "", SERIES_MASK, 2, 16));
    assert_false(policy_series(&p, "mask", "", SERIES_LINE, 1, 1)); /* twice */
    assert_int_equal(p.info.n_knobs, 1);
    assert_int_equal(p.info.n_series, 1);
    assert_int_equal(policy_series_index(&p.info, "mask"), 0);
    assert_int_equal(policy_series_index(&p.info, "tau"), -1);
    assert_int_equal(series_cells(&p.info.series[0]), 32);
}

TEST(how_drafts_are_judged_is_declared)
{
    struct policy p = {0};
    assert_true(policy_series(&p, "plain", "", SERIES_GRID, 4, 3));
    assert_true(policy_series(&p, "line", "", SERIES_LINE, 1, 1));
    assert_true(policy_series(&p, "p", "", SERIES_DRAFTS, 1, 63));
    assert_true(policy_series(&p, "reject", "", SERIES_DRAFTS, 2, 8));
    assert_true(policy_series(&p, "table", "", SERIES_GRID, 4, 3));
    assert_true(policy_series(&p, "rows", "", SERIES_EDGES, 4, 1));
    assert_true(policy_series(&p, "columns", "", SERIES_EDGES, 1, 3));
    assert_true(policy_series(&p, "cell", "", SERIES_MARKS, 1, 8));
    assert_true(policy_series(&p, "goodput", "", SERIES_CHOICE, 2, 64));
    assert_false(policy_series(&p, "x", "", SERIES_DRAFTS, 1, 64));
    assert_false(policy_series(&p, "x", "", SERIES_DRAFTS, 3, 8));
    assert_false(policy_series(&p, "x", "", SERIES_MARKS, 2, 8));
    assert_false(policy_series(&p, "x", "", SERIES_CHOICE, 1, 8));
    assert_false(policy_series(&p, "x", "", SERIES_CHOICE, 2, 65));
    assert_false(policy_series(&p, "x", "", SERIES_EDGES, 2, 2));
    static const bool judges[] = {false, false, true, true, true, true, true, true, true};
    static const bool of_round[] = {false, false, true, true, false, false, false, true, true};
    assert_int_equal(p.info.n_series, 9);
    for (uint32_t i = 0; i < p.info.n_series; i++) {
        assert_int_equal(series_judges(&p.info, i), judges[i]);
        assert_int_equal(series_of_round(&p.info.series[i]), of_round[i]);
    }
    assert_int_equal(series_cells(&p.info.series[3]), 16);
    assert_int_equal(series_of_grid(&p.info, 0, SERIES_MARKS, false), -1); /* these series belong to the other grid */
    assert_int_equal(series_of_grid(&p.info, 4, SERIES_MARKS, false), 7);
    assert_int_equal(series_of_grid(&p.info, 4, SERIES_EDGES, true), 5);
    assert_int_equal(series_of_grid(&p.info, 4, SERIES_EDGES, false), 6);
}

TEST(a_full_policy_takes_no_more)
{
    struct policy p = {0};
    for (int i = 0; i < POLICY_KNOBS + 3; i++) {
        struct knob k = d_max;
        snprintf(k.name, sizeof k.name, "knob%d", i);
        assert_int_equal(policy_knob(&p, &k), i < POLICY_KNOBS);
    }
    for (int i = 0; i < POLICY_SERIES + 3; i++) {
        char key[24];
        snprintf(key, sizeof key, "series%d", i);
        assert_int_equal(policy_series(&p, key, "", SERIES_LINE, 1, 1), i < POLICY_SERIES);
    }
}

TEST(values_land_on_the_grid)
{
    static const struct {
        const struct knob *knob;
        const char *text;
        double value;
    } cases[] = {
        {&tau, "0.55", 0.55}, {&tau, "0.561", 0.55},    {&tau, "5e-1", 0.5}, {&tau, ".1", 0.1},  {&tau, "0", 0},
        {&tau, "1", 1},       {&tau, "-0", 0},          {&d_max, "10", 10},  {&d_max, "31", 31}, {&d_max, "1e1", 10},
        {&odd, "4", 5},       {&odd, "3", 3},           {&odd, "9", 9},      {&mode, "tpl", 1},  {&mode, "dynamic", 0},
        {&tau, "+0.3", 0.3},  {&tau, "0.3000001", 0.3}, {&tau, "0.999", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = -1;
        struct err err;
        assert_ok(knob_parse(cases[i].knob, cases[i].text, &value, &err), err);
        if (value != cases[i].value)
            fail_msg("%s became %.17g", cases[i].text, value);
        assert_false(signbit(value));
    }
}

TEST(bad_values_are_refused_in_one_line_with_the_valid_range)
{
    static const struct {
        const struct knob *knob;
        const char *text, *says;
    } cases[] = {
        {&tau, "1.01", "from 0 to 1"}, {&tau, "-0.01", "from 0 to 1"}, {&tau, "nan", "from 0 to 1"},
        {&tau, "inf", "from 0 to 1"},  {&tau, "0x1", "from 0 to 1"},   {&tau, "", "from 0 to 1"},
        {&tau, " 1", "from 0 to 1"},   {&tau, "0,5", "from 0 to 1"},   {&tau, "0.5 ", "from 0 to 1"},
        {&tau, "half", "from 0 to 1"}, {&tau, "1e999", "from 0 to 1"}, {&d_max, "3.5", "whole number from 1 to 31"},
        {&d_max, "0", "from 1 to 31"}, {&d_max, "32", "from 1 to 31"}, {&mode, "length", "dynamic, tpl"},
        {&mode, "1", "dynamic, tpl"},  {&mode, "", "dynamic, tpl"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = 17;
        struct err err = {0};
        assert_false(knob_parse(cases[i].knob, cases[i].text, &value, &err));
        assert_int_equal(err.kind, ERR_USAGE);
        assert_number_equal(value, 17);
        if (strstr(err.text, cases[i].says) == NULL || strstr(err.text, cases[i].knob->name) == NULL)
            fail_msg("%s: %s", cases[i].text, err.text);
    }
    double value;
    assert_false(knob_check(&tau, (double)NAN, &value, NULL));
}

TEST(formatted_values_parse_as_the_same_value)
{
    struct knob third = tau;
    third.step = 1.0 / 3;
    struct knob free_knob = tau;
    free_knob.step = 0;
    struct knob wide = {"wide", "", "", KNOB_REAL, -1e6, 1e6, 0.001, 0, NULL};
    const struct knob *knobs[] = {&tau, &third, &free_knob, &wide, &d_max, &odd, &mode};
    srand(1);
    for (size_t k = 0; k < sizeof knobs / sizeof *knobs; k++)
        for (int i = 0; i < 20000; i++) {
            double any = knobs[k]->min + (knobs[k]->max - knobs[k]->min) * (double)rand() / (double)RAND_MAX;
            double value, again;
            char text[40];
            assert_true(knob_check(knobs[k], any, &value, NULL));
            assert_between(value, knobs[k]->min, knobs[k]->max);
            knob_format(knobs[k], value, text, sizeof text);
            assert_true(knob_parse(knobs[k], text, &again, NULL));
            if (value != again)
                fail_msg("%s: %.17g became %s became %.17g", knobs[k]->name, value, text, again);
        }
}

TEST(values_are_shown_as_people_write_them)
{
    char text[40];
    knob_format(&tau, 0.55, text, sizeof text);
    assert_string_equal(text, "0.55");
    knob_format(&d_max, 10, text, sizeof text);
    assert_string_equal(text, "10");
    knob_format(&mode, 1, text, sizeof text);
    assert_string_equal(text, "tpl");
}
