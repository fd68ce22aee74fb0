/* Divergence: partings of this program's own arithmetics are explained by rounding, those of other weights are not. */
#include <unistd.h>

#include "engine/session/divergence.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/draws.h"
#include "tests/rigs/test.h"

#define TEXTS 60
#define LEN   80

/* weights in blocks, so that activations are quantised; a flat distribution, whose best tokens are close */
static const struct tinymodel tiny = {.seed = 5,
                                      .attention = WEIGHT_Q8_0,
                                      .mlp = WEIGHT_Q8_0,
                                      .head = WEIGHT_Q8_0,
                                      .embedding = WEIGHT_Q8_0,
                                      .sharpness = 1};
static struct engine *exact, *rounded, *other;

static struct engine *
open_engine(const struct tinymodel *model, bool f32)
{
    char path[128];
    struct engine *e;
    struct err err = {0};
    assert_ok(tinymodel_write_temp(path, sizeof path, model, &err), err);
    const struct engine_options options = {.model_path = path,
                                           .backend = "cpu",
                                           .backend_options = {.exact = f32, .threads = 1, .gpu = -1},
                                           .heads = "none",
                                           .aux = {"none", "none"}};
    assert_ok(engine_open(&e, &options, NULL, NULL, &err), err);
    unlink(path);
    return e;
}

static int
open_engines(void **state)
{
    (void)state;
    struct tinymodel perturbed = tiny;
    perturbed.seed = 6;
    exact = open_engine(&tiny, true);
    rounded = open_engine(&tiny, false);
    other = open_engine(&perturbed, true);
    return 0;
}

static int
close_engines(void **state)
{
    (void)state;
    engine_close(exact);
    engine_close(rounded);
    engine_close(other);
    return 0;
}

FIXTURE(open_engines, close_engines);

static struct divergence
measure(const struct engine *a, const struct engine *b, const token_t *text, token_t here, token_t there)
{
    struct divergence d = {.here = here, .there = there};
    struct err err = {0};
    assert_ok(divergence_measure(&d, a, b, text, LEN, NULL, &err), err);
    return d;
}

static void
draw_text(token_t *text)
{
    for (int i = 0; i < LEN; i++)
        text[i] = (token_t)(TINYMODEL_FIRST_PIECE + random_below(60));
}

TEST(our_own_arithmetics_part_by_rounding)
{
    int parted = 0;
    for (int i = 0; i < 10 * TEXTS; i++) {
        token_t text[LEN];
        draw_text(text);
        const token_t x = measure(exact, rounded, text, 0, 0).best, y = measure(rounded, exact, text, 0, 0).best;
        if (x == y)
            continue;
        const struct divergence d = measure(exact, rounded, text, x, y);
        assert_int_equal(d.rows, DIVERGENCE_ROWS);
        assert_number_equal(d.distance, d.margin);
        assert_string_equal(divergence_names[d.verdict], "rounding");
        parted++;
    }
    printf("%d of %d texts part by quantised activations\n", parted, 10 * TEXTS);
    assert_at_least(parted, 1);
}

TEST(other_weights_are_not_explained_by_rounding)
{
    int found = 0, parted = 0;
    for (int i = 0; i < TEXTS; i++) {
        token_t text[LEN];
        draw_text(text);
        const token_t x = measure(exact, rounded, text, 0, 0).best, y = measure(other, exact, text, 0, 0).best;
        parted += x != y;
        found += x != y && measure(exact, rounded, text, x, y).verdict == DIVERGENCE_OTHER;
    }
    printf("%d of %d partings are not explained by rounding\n", found, parted);
    assert_at_least(parted, TEXTS / 2);
    assert_at_least(found, parted * 9 / 10);
}

TEST(a_token_far_below_the_best_is_not_explained_even_if_both_engines_are_close)
{
    token_t text[LEN], low[2] = {TOKEN_NONE, TOKEN_NONE};
    draw_text(text);
    for (token_t v = 0; (uint32_t)v < exact->model->desc.vocab && low[1] == TOKEN_NONE; v++)
        if (measure(exact, rounded, text, v, v).verdict == DIVERGENCE_OTHER)
            low[low[0] != TOKEN_NONE] = v;
    assert_int_equal(measure(exact, rounded, text, low[0], low[1]).verdict, DIVERGENCE_OTHER);
}

TEST(the_bound_is_four_deviations_and_three_times_it_is_undecided)
{
    assert_int_equal(divergence_judge(0.40F, 0.1F), DIVERGENCE_ROUNDING);
    assert_int_equal(divergence_judge(0.41F, 0.1F), DIVERGENCE_UNDECIDED);
    assert_int_equal(divergence_judge(1.19F, 0.1F), DIVERGENCE_UNDECIDED);
    assert_int_equal(divergence_judge(1.21F, 0.1F), DIVERGENCE_OTHER);
    assert_int_equal(divergence_judge(1e-6F, 0), DIVERGENCE_OTHER);
}

TEST(a_token_outside_of_the_vocabulary_is_an_error)
{
    token_t text[LEN];
    struct divergence d = {.here = 1, .there = 100000};
    struct err err = {0};
    draw_text(text);
    assert_false(divergence_measure(&d, exact, rounded, text, LEN, NULL, &err));
    assert_contains(err.text, "not one of the model's");
}
