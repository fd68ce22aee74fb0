/* Comparison of a benchmark's candidates pass by pass, on simulated passes. */

#include "base/rng.h"
#include "cli/bench/bench.h"
#include "tests/rigs/test.h"

enum { PASSES = 5, CANDIDATES = 4 };

struct made {
    struct pass pass[CANDIDATES][PASSES];
    struct bench_candidate candidates[CANDIDATES];
    struct bench bench;
};

/* Makes passes of ar and three points with these speeds. The machine becomes slower with each pass. */
static void
make(struct made *m, const double speed[CANDIDATES], double noise)
{
    static const char *const points[CANDIDATES] = {"", "gamma=2", "gamma=3", "gamma=4"};
    memset(m, 0, sizeof *m);
    for (int i = 0; i < CANDIDATES; i++) {
        m->candidates[i].policy = i == 0 ? "ar" : "layerskip";
        snprintf(m->candidates[i].point, sizeof m->candidates[i].point, "%s", points[i]);
        m->candidates[i].pass = m->pass[i];
        for (int p = 0; p < PASSES; p++) {
            const double drift = 1 + 0.2 * p, off = noise * ((i * 7 + p * 3) % 5 - 2);
            m->pass[i][p] = (struct pass){.tokens = 1000, .s = 1000 / speed[i] * drift * (1 + off)};
        }
    }
    m->bench = (struct bench){.candidates = m->candidates, .n_candidates = CANDIDATES, .passes = PASSES};
}

TEST(drift_of_all_settings_is_no_noise_between_them)
{
    struct made m;
    make(&m, (const double[]){100, 120, 121, 90}, 0.0001);
    const struct estimate r = passes_ratio(m.candidates[2].pass, m.candidates[0].pass, m.bench.passes);
    assert_near(r.value, 1.21, 0.001);
    assert_less(r.se, 0.001);
    assert_greater(passes_speed(m.candidates[2].pass, m.bench.passes).se, 3); /* the speed's error includes drift */
    assert_true(bench_is_ahead(&m.bench, &m.candidates[2], &m.candidates[1]));
    assert_false(bench_is_ahead(&m.bench, &m.candidates[1], &m.candidates[2]));
    char standing[400];
    assert_string_equal(bench_standing(&m.bench, &m.candidates[2], standing, sizeof standing),
                        "; faster than each other point");
    assert_string_equal(bench_standing(&m.bench, &m.candidates[0], standing, sizeof standing),
                        ""); /* ar has only one point */
}

TEST(settings_within_noise_of_the_best_are_named)
{
    struct made m;
    make(&m, (const double[]){100, 120, 121, 60}, 0.02);
    char standing[400];
    assert_false(bench_is_ahead(&m.bench, &m.candidates[2], &m.candidates[1]));
    assert_string_equal(bench_standing(&m.bench, &m.candidates[2], standing, sizeof standing),
                        "; no clear difference from gamma=2");
    m.bench.passes = 1;
    assert_false(bench_is_ahead(&m.bench, &m.candidates[2], &m.candidates[3]));
    assert_string_equal(bench_standing(&m.bench, &m.candidates[2], standing, sizeof standing),
                        "; one pass has no interval");
}

/* In 4,000 benchmarks of 3 passes ar is as fast as each point: 95% of the intervals of the speedup contain 1. */
TEST(intervals_of_few_passes_contain_the_true_speedup)
{
    struct made m;
    uint64_t random = 24;
    int holds = 0, ahead = 0;
    for (int run = 0; run < 4000; run++) {
        make(&m, (const double[]){100, 100, 100, 100}, 0);
        for (int i = 0; i < CANDIDATES; i++)
            for (int p = 0; p < PASSES; p++) {
                double off = -6; /* the sum of twelve uniform numbers is nearly normal, with deviation 1 */
                for (int k = 0; k < 12; k++)
                    off += splitmix64_uniform(&random);
                m.pass[i][p].s *= 1 + 0.05 * off;
            }
        m.bench.passes = 3;
        const struct comparison c =
            estimate_compare(passes_ratio(m.candidates[1].pass, m.candidates[0].pass, m.bench.passes));
        holds += c.low <= 1 && c.high >= 1;
        ahead += bench_is_ahead(&m.bench, &m.candidates[1], &m.candidates[0]);
        assert_int_equal(bench_is_ahead(&m.bench, &m.candidates[1], &m.candidates[0]), c.low > 1);
        assert_int_equal(bench_is_ahead(&m.bench, &m.candidates[0], &m.candidates[1]), c.high < 1);
    }
    assert_in_range(holds, 3760, 3840); /* 94 to 96% */
    assert_in_range(ahead, 60, 140);    /* half of the remaining 5% */
}
