/* DEL's sums alone, with small numbers that can be checked by hand. */

#include "policies/del.h"
#include "tests/rigs/test.h"

struct shadow { /* token and confidence of layers 1..3 of 3 */
    token_t token[3];
    float confidence[3];
};

static void
open_sums(struct del_sums *s, const struct shadow *rows, size_t n)
{
    assert_true(del_sums_open(s, 3));
    for (size_t i = 0; i < n; i++) {
        struct prediction g[3] = {{0}};
        for (int l = 0; l < 3; l++) {
            g[l].token = rows[i].token[l];
            g[l].confidence = rows[i].confidence[l];
        }
        del_sums_add(s, g);
    }
}

/* Chooses with three layers, of which the lower two can be exits. */
static struct del_choice
choose(const struct del_sums *s, uint32_t d_max)
{
    return del_choose(s, (struct del_bounds){.e_min = 1, .e_max = 2, .d_max = d_max});
}

TEST(sums_count_matches_and_confidences_apart)
{
    const struct shadow rows[] = {{{5, 9, 9}, {0.25f, 0.5f, 0.75f}}, {{4, 4, 4}, {0.5f, 0.75f, 1}}};
    struct del_sums s;
    open_sums(&s, rows, 2);
    assert_number_equal(s.n, 2);
    assert_number_equal(s.c[1], 1);
    assert_number_equal(s.c[2], 2);
    assert_number_equal(s.c[3], 2);
    assert_number_equal(del_alpha(&s, 1), 0.5);
    assert_number_equal(del_alpha(&s, 2), 1);
    assert_number_equal(del_matched(&s, 1), 0.5);
    assert_number_equal(del_mismatched(&s, 1), 0.25);
    assert_number_equal(del_tau(&s, 1), 0.375);
    del_sums_decay(&s, 0.5); /* ratios do not change */
    assert_number_equal(s.n, 1);
    assert_number_equal(del_alpha(&s, 1), 0.5);
    assert_number_equal(del_tau(&s, 1), 0.375);
    del_sums_decay(&s, 0);
    assert_number_equal(s.n, 0);
    assert_number_equal(del_alpha(&s, 1), 0);
    assert_number_equal(del_tau(&s, 1), 0);
    del_sums_close(&s);
}

TEST(a_side_without_observations_counts_as_nothing)
{
    const struct shadow matches[] = {{{4, 4, 4}, {0.5f, 0.75f, 1}}}, mismatches[] = {{{1, 2, 4}, {0.5f, 0.75f, 1}}};
    struct del_sums s;
    open_sums(&s, matches, 1);
    for (int i = 0; i < 50; i++)
        del_sums_decay(&s, 0.95); /* rounding errors of n - c must not become a denominator */
    assert_number_equal(del_mismatched(&s, 1), 0);
    assert_near(del_tau(&s, 1), 0.25, 1e-12);
    del_sums_close(&s);
    open_sums(&s, mismatches, 1);
    assert_number_equal(del_matched(&s, 1), 0);
    assert_number_equal(del_tau(&s, 1), 0.25);
    del_sums_close(&s);
}

TEST(tpl_stays_finite_when_every_token_matched)
{
    const struct shadow rows[] = {{{4, 4, 4}, {1, 1, 1}}};
    struct del_sums s;
    open_sums(&s, rows, 1);
    assert_number_equal(del_alpha(&s, 1), 1); /* α is not clamped here, only in TPL */
    for (uint32_t d = 0; d <= DEL_LENGTH_MOST; d++) {
        double all = (d + 1.0) / (d * 1.0 + 3);
        assert_at_most(del_tpl(&s, 1, d), all);
        assert_greater(del_tpl(&s, 1, d), all * (1 - 1e-4));
    }
    struct del_choice c = choose(&s, DEL_LENGTH_MOST);
    assert_int_equal(c.exit_layer, 1);
    assert_int_equal(c.length, DEL_LENGTH_MOST);
    del_sums_close(&s);
}

TEST(ties_go_to_the_smaller_length_then_the_smaller_layer)
{
    struct del_sums s;
    const struct shadow nothing[] = {{{1, 2, 4}, {0.5f, 0.5f, 0.5f}}};
    open_sums(&s, nothing, 1); /* TPL(l, 0) = 1/L for all l, less for every d above */
    struct del_choice c = choose(&s, 18);
    assert_int_equal(c.exit_layer, 1);
    assert_int_equal(c.length, 0);
    del_sums_close(&s);
    /* All rates are too low to draft, and differ by layer: all TPL(l, 0) are 1/L, whatever the rounding. */
    for (uint32_t n = 4; n < 60; n++) {
        assert_true(del_sums_open(&s, 3));
        s.n = n;
        s.c[1] = n / 4;
        s.c[2] = n / 2;
        s.c[3] = n;
        for (uint32_t l = 1; l <= 3; l++)
            assert_number_equal(del_tpl(&s, l, 0), 1.0 / 3);
        c = choose(&s, 18);
        assert_int_equal(c.exit_layer, 1);
        assert_int_equal(c.length, 0);
        del_sums_close(&s);
    }
    /* α_1 = 1/3 gives TPL(1, 1) = (4/3)/4 = TPL(l, 0): the shorter draft is chosen */
    const struct shadow third[] = {{{4, 2, 4}, {1, 1, 1}}, {{1, 2, 4}, {1, 1, 1}}, {{1, 2, 4}, {1, 1, 1}}};
    open_sums(&s, third, 3);
    c = choose(&s, 1);
    assert_int_equal(c.length, 0);
    del_sums_close(&s);
}

/* α_l = l/L makes TPL(l, 1) equal to TPL(l, 0), however both are rounded. */
TEST(exact_ties_do_not_depend_on_rounding)
{
    for (uint32_t layers = 2; layers <= 64; layers++)
        for (uint32_t l = 1; l < layers; l++) {
            struct del_sums s;
            assert_true(del_sums_open(&s, layers));
            s.n = layers;
            s.c[l] = l;
            for (int i = 0; i < 7; i++, del_sums_decay(&s, 0.95)) {
                const struct del_choice c =
                    del_choose(&s, (struct del_bounds){.e_min = 1, .e_max = layers - 1, .d_max = 18});
                assert_int_equal(c.length, 0);
                assert_int_equal(c.exit_layer, 1);
            }
            del_sums_close(&s);
        }
}

TEST(del_expects_one_token_a_round_without_observations)
{
    struct del_sums s;
    assert_true(del_sums_open(&s, 3));
    struct del_choice c = choose(&s, 18);
    assert_int_equal(c.exit_layer, 1);
    assert_int_equal(c.length, 0);
    del_sums_close(&s);
}

TEST(bounds_are_kept_to)
{
    struct del_sums s;
    const struct shadow all[] = {{{4, 4, 4}, {1, 1, 1}}};
    open_sums(&s, all, 1); /* every layer is right, so the shallowest one is best */
    for (uint32_t least = 1; least <= 2; least++)
        for (uint32_t most = least; most <= 2; most++) {
            struct del_choice c = del_choose(&s, (struct del_bounds){least, most, 5});
            assert_int_equal(c.exit_layer, least);
            assert_int_equal(c.length, 5);
        }
    del_sums_close(&s);
}
