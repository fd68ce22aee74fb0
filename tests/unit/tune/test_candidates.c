/* Candidates of a policy with a known forecast: its best value is a candidate, and no two candidates are equal. */
#include <math.h>

#include "engine/measure/metrics.h"
#include "engine/tune/candidates.h"
#include "tests/rigs/test.h"

/* The fastest point is a = 7, b = 0.3; c has no effect. */
static double
speedup(const double *value)
{
    return 3 - 0.02 * (value[0] - 7) * (value[0] - 7) - (value[1] - 0.3) * (value[1] - 0.3);
}

static bool
open(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return policy_number(p, "a", "a", 1, 12, 1, 2, "a whole number") &&
           policy_number(p, "b", "b", 0, 1, 0.05, 0.9, "a share") &&
           policy_number(p, "c", "c", 1, 8, 1, 1, "no effect");
}

/* The fastest point is n_max = 5 with n_min of at least 5, which counts as 5. */
static bool
open_capped(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return policy_number(p, "n_max", "n_max", 1, 12, 1, 2, "upper end") &&
           policy_number(p, "n_min", "n_min", 1, 34, 1, 1, "lower end");
}

static bool
what_if_capped(const struct layer_record *record, const double *value, struct tally *out)
{
    const double a = value[0], c = fmin(value[0], value[1]), times = 2 - 0.02 * (a - 5) * (a - 5) + 0.01 * c;
    *out = (struct tally){.rounds = 100, .emitted = 100, .layers = 100 * record->layers / times, .heads = 100 / times};
    return true;
}

static bool
open_lengths(struct policy *p, const struct model_info *model, const struct sampling *sampling, struct err *err)
{
    (void)model, (void)sampling, (void)err;
    return policy_number(p, "k", "K", 1, 32, 1, 5, "drafts");
}

static bool
what_if(const struct layer_record *record, const double *value, struct tally *out)
{
    *out = (struct tally){
        .rounds = 100, .emitted = 100, .layers = 100 * record->layers / speedup(value), .heads = 100 / speedup(value)};
    return true;
}

static bool
no_what_if(const struct layer_record *record, const double *value, struct tally *out)
{
    (void)record, (void)value, (void)out;
    return false;
}

static const struct policy_ops
    known = {.name = "known", .title = "of known speed", .paper = "", .open = open, .what_if = what_if},
    capped = {.name = "capped", .title = "a range", .paper = "", .open = open_capped, .what_if = what_if_capped},
    lengths = {.name = "lengths", .title = "without what-if", .paper = "", .open = open_lengths, .length = "k"},
    failing = {.name = "failing",
               .title = "no forecast",
               .paper = "",
               .open = open_lengths,
               .length = "k",
               .what_if = no_what_if};

static uint32_t
find(const struct policy_ops *ops, struct candidate found[CANDIDATES_MOST])
{
    const struct model_info model = {.layers = 8, .width = 16, .vocab = 100, .rho = 1};
    const struct sampling greedy = {.top_p = 1};
    const struct layer_record record = {.layers = 8, .n = 100};
    struct policy p;
    struct err err;
    assert_ok(policy_open(&p, ops, &model, &greedy, &err), err);
    const uint32_t n = candidates_of(&p.info, ops, &record, 1, model.rho, NULL, found);
    policy_close(&p);
    return n;
}

TEST(the_best_forecast_comes_first_and_then_the_defaults)
{
    struct candidate found[CANDIDATES_MOST];
    assert_int_equal(find(&known, found), CANDIDATES_MOST);
    assert_string_equal(found[0].preset.set[0].text, "7");
    assert_near(strtod(found[0].preset.set[1].text, NULL), 0.3, 0.05);
    assert_string_equal(found[1].preset.set[0].text, "2");
    assert_string_equal(found[1].preset.set[1].text, "0.9");
}

TEST(no_two_differ_only_in_a_knob_without_effect)
{
    struct candidate found[CANDIDATES_MOST];
    const uint32_t n = find(&known, found);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            assert_true(strcmp(found[i].preset.set[0].text, found[j].preset.set[0].text) != 0 ||
                        strcmp(found[i].preset.set[1].text, found[j].preset.set[1].text) != 0);
}

TEST(the_setting_next_to_the_defaults_is_the_candidate_of_equal_forecasts)
{
    struct candidate found[CANDIDATES_MOST];
    (void)find(&capped, found);
    assert_string_equal(found[0].preset.set[0].text, "5");
    assert_string_equal(found[0].preset.set[1].text, "5");
}

TEST(n_min_is_at_most_n_max)
{
    struct candidate found[CANDIDATES_MOST];
    const uint32_t n = find(&capped, found);
    assert_int_equal(n, CANDIDATES_MOST);
    for (uint32_t i = 0; i < n; i++) {
        print_message("n_max=%s n_min=%s\n", found[i].preset.set[0].text, found[i].preset.set[1].text);
        assert_at_most(strtol(found[i].preset.set[1].text, NULL, 10), strtol(found[i].preset.set[0].text, NULL, 10));
        for (uint32_t j = 0; j < i; j++)
            assert_true(strcmp(found[i].preset.set[0].text, found[j].preset.set[0].text) != 0 ||
                        strcmp(found[i].preset.set[1].text, found[j].preset.set[1].text) != 0);
    }
}

TEST(a_policy_without_forecasts_has_several_lengths)
{
    static const struct policy_ops *const both[] = {&lengths, &failing};
    for (int i = 0; i < 2; i++) {
        struct candidate found[CANDIDATES_MOST];
        assert_int_equal(find(both[i], found), CANDIDATES_MOST);
        assert_string_equal(found[0].preset.set[0].text, "5");
        assert_string_equal(found[1].preset.set[0].text, "3");
        assert_string_equal(found[2].preset.set[0].text, "8");
        assert_string_equal(found[4].preset.set[0].text, "10");
        assert_string_equal(found[5].preset.set[0].text, "1");
    }
}

extern const struct policy_ops policy_eagle, policy_dspark;

TEST(eagle_has_chains_and_trees_of_several_depths)
{
    struct candidate found[CANDIDATES_MOST];
    uint32_t trees = 0, chains = 0;
    assert_int_equal(find(&policy_eagle, found), CANDIDATES_MOST);
    for (uint32_t i = 0; i < CANDIDATES_MOST; i++) {
        assert_string_equal(found[i].preset.set[1].name, "topk");
        trees += strcmp(found[i].preset.set[1].text, "4") == 0;
        chains += strcmp(found[i].preset.set[1].text, "1") == 0;
        for (uint32_t j = 0; j < i; j++)
            assert_true(strcmp(found[i].preset.set[0].text, found[j].preset.set[0].text) != 0 ||
                        strcmp(found[i].preset.set[1].text, found[j].preset.set[1].text) != 0);
    }
    assert_int_equal(trees, 3);
    assert_int_equal(chains, 3);
}

/* k, conf_min and topk of each; the model has no block drafter, so a block has 15 drafts. */
TEST(a_block_drafter_has_parts_of_the_block_and_least_confidences)
{
    static const char *const wanted[][3] = {{"15", "0", "1"}, {"8", "0", "1"}, {"15", "0.4", "1"},
                                            {"15", "0", "4"}, {"4", "0", "1"}, {"15", "0.2", "4"}};
    struct candidate found[CANDIDATES_MOST];
    assert_int_equal(find(&policy_dspark, found), CANDIDATES_MOST);
    for (uint32_t i = 0; i < CANDIDATES_MOST; i++)
        for (uint32_t k = 0; k < 3; k++)
            assert_string_equal(found[i].preset.set[k].text, wanted[i][k]);
}
