/* The ratio estimator, compared with its definition, and the share of its intervals of two standard errors that contain
 * the true value. */
#include <math.h>

#include "base/rng.h"
#include "engine/measure/estimate.h"
#include "tests/rigs/test.h"

static double
uniform(uint64_t *random)
{
    return splitmix64_uniform(random);
}

static double
normal(uint64_t *random)
{
    return sqrt(-2 * log(1 - uniform(random))) * cos(2 * 3.14159265358979323846 * uniform(random));
}

/* Simulates a round of specbound: up to eight drafts, each accepted with probability a, and then a token of the target.
 * Drafting and verification take different times, which vary by a tenth. */
static void
simulate(uint64_t *random, double a, double *tokens, double *seconds)
{
    int accepted = 0;
    while (accepted < 8 && uniform(random) < a)
        accepted++;
    *tokens = accepted + 1;
    *seconds = (0.5e-3 * (accepted + 1) + 2e-3) * exp(0.1 * normal(random));
}

/* Returns the expected tokens per expected second, by enumeration. */
static double
truth(double a)
{
    double tokens = 0, seconds = 0;
    for (int n = 0; n <= 8; n++) {
        const double p = n < 8 ? pow(a, n) * (1 - a) : pow(a, 8);
        tokens += p * (n + 1);
        seconds += p * (0.5e-3 * (n + 1) + 2e-3) * exp(0.1 * 0.1 / 2);
    }
    return tokens / seconds;
}

TEST(the_estimator_is_its_definition)
{
    enum { N = 40 };
    uint64_t random = 7;
    double y[N], x[N], sum_y = 0, sum_x = 0, residuals = 0;
    struct ratio_sums sums = {0};
    for (int i = 0; i < N; i++) {
        simulate(&random, 0.7, &y[i], &x[i]);
        ratio_add(&sums, y[i], x[i]);
        sum_y += y[i];
        sum_x += x[i];
    }
    const double r = sum_y / sum_x;
    for (int i = 0; i < N; i++)
        residuals += (y[i] - r * x[i]) * (y[i] - r * x[i]);
    const double se = sqrt(residuals / (N - 1) / N) / (sum_x / N);
    const struct estimate e = ratio_estimate(&sums);
    assert_int_equal(e.n, N);
    assert_near(e.value, r, 1e-9 * r);
    assert_near(e.se, se, 1e-9 * se);
}

TEST(undefined_measures_are_nan)
{
    struct ratio_sums sums = {0};
    assert_true(isnan(ratio_estimate(&sums).value));
    ratio_add(&sums, 0, 0); /* no draft was verified */
    assert_true(isnan(ratio_estimate(&sums).value));
    ratio_add(&sums, 3, 4);
    assert_number_equal(ratio_estimate(&sums).value, 0.75);
    sums = (struct ratio_sums){0};
    ratio_add(&sums, 3, 4);
    assert_true(isnan(ratio_estimate(&sums).se)); /* one sample has no standard error */
    const struct estimate one = ratio_estimate(&sums), none = {.value = NAN, .se = NAN};
    assert_int_equal(estimate_difference(one, one).verdict, DIFFERENCE_UNKNOWN);
    assert_int_equal(estimate_difference(one, none).verdict, DIFFERENCE_UNKNOWN);
    assert_true(isnan(estimate_quotient(one, none).value));
}

TEST(two_standard_errors_contain_the_truth_95_times_of_100)
{
    enum { REPEATS = 4000 };
    static const int rounds[] = {30, 60, 240};
    uint64_t random = 20261;
    for (size_t k = 0; k < 3; k++)
        for (double a = 0.5; a < 0.95; a += 0.2) {
            int held = 0;
            for (int i = 0; i < REPEATS; i++) {
                struct ratio_sums sums = {0};
                double tokens, seconds;
                for (int r = 0; r < rounds[k]; r++) {
                    simulate(&random, a, &tokens, &seconds);
                    ratio_add(&sums, tokens, seconds);
                }
                const struct estimate e = ratio_estimate(&sums);
                held += fabs(e.value - truth(a)) <= 2 * e.se;
            }
            const double share = (double)held / REPEATS;
            const double least = rounds[k] < 100 ? 0.91 : 0.935; /* few rounds have a skewed distribution */
            if (!(share > least && share < 0.97))
                fail_msg("%d rounds at a = %.1f: %.3f of the intervals hold the truth", rounds[k], a, share);
        }
}

static double
called_different(uint64_t *random, int rounds, double a, double b)
{
    enum { REPEATS = 4000 };
    int called = 0;
    for (int i = 0; i < REPEATS; i++) {
        struct ratio_sums sums[2] = {{0}, {0}};
        double tokens, seconds;
        for (int r = 0; r < 2 * rounds; r++) {
            simulate(random, r % 2 == 0 ? a : b, &tokens, &seconds);
            ratio_add(&sums[r % 2], tokens, seconds);
        }
        const struct difference d = estimate_difference(ratio_estimate(&sums[0]), ratio_estimate(&sums[1]));
        called += d.verdict == DIFFERENCE_LESS || d.verdict == DIFFERENCE_MORE;
    }
    return (double)called / REPEATS;
}

TEST(equal_settings_are_seldom_called_different)
{
    uint64_t random = 31;
    for (int rounds = 6; rounds <= 96; rounds *= 4) {
        const double wrong = called_different(&random, rounds, 0.7, 0.7);
        if (!(wrong > 0.02 && wrong < 0.075))
            fail_msg("%d rounds: equal ones are called different %.3f of the time", rounds, wrong);
    }
}

TEST(differences_are_found_with_enough_rounds)
{
    uint64_t random = 37;
    assert_less(called_different(&random, 8, 0.6, 0.7), 0.5);
    assert_greater(called_different(&random, 400, 0.6, 0.7), 0.98);
    struct estimate fast = {.value = 20, .se = 1, .n = 90}, slow = {.value = 10, .se = 1, .n = 90};
    assert_int_equal(estimate_difference(fast, slow).verdict, DIFFERENCE_MORE);
    assert_int_equal(estimate_difference(slow, fast).verdict, DIFFERENCE_LESS);
    assert_number_equal(estimate_difference(slow, fast).value, -10);
    fast.value = 12.8; /* the difference is 2.8, two standard errors are 2 * √2 = 2.83 */
    assert_int_equal(estimate_difference(fast, slow).verdict, DIFFERENCE_NOISE);
}

TEST(few_samples_reach_as_far_as_students_t)
{
    static const struct {
        double degrees, t;
    } table[] = {{1, 12.706}, {2, 4.303}, {3, 3.182}, {4, 2.776}, {5, 2.571}, {10, 2.228}, {30, 2.042}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        assert_near(estimate_reach(table[i].degrees) / table[i].t, 1, 0.01);
    assert_number_equal(estimate_reach(1000), 2);
    assert_true(isinf(estimate_reach(0)));
}

TEST(quotients_have_the_spread_of_both)
{
    const struct estimate a = {.value = 30, .se = 3, .n = 9}, b = {.value = 20, .se = 1, .n = 5};
    const struct estimate q = estimate_quotient(a, b);
    assert_near(q.value, 1.5, 1e-12);
    assert_near(q.se / q.value, sqrt(0.1 * 0.1 + 0.05 * 0.05), 1e-12);
    assert_int_equal(q.n, 5);
    assert_near(estimate_times(a, 2).se, 6, 1e-12);
}
