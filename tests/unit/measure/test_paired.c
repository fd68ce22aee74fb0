/* Comparison of two settings segment by segment, on rounds with simulated times: how often equal settings are called
 * different, and how often real differences are found. */
#include <math.h>

#include "base/rng.h"
#include "engine/measure/estimate.h"
#include "tests/rigs/test.h"

enum { TOKENS = 200, RUNS = 2000 };

static double
normal(uint64_t *random)
{
    const double u = splitmix64_uniform(random), v = splitmix64_uniform(random);
    return sqrt(-2 * log(1 - u)) * cos(2 * 3.14159265358979323846 * v);
}

/* Returns the tokens of a round with a draft of up to `most` tokens. They depend only on the place in the text, as in
 * greedy decoding. */
static uint32_t
round_length(uint64_t text, uint32_t at, uint32_t most)
{
    uint32_t n = 0;
    while (n < most && splitmix64_mix(text + (at + n) * SPLITMIX64_STEP) % 100 < 65)
        n++;
    return n + 1;
}

struct machine {
    double wobble, drift; /* deviations of log time: of a round; of a step of the common drift */
    double burst;         /* probability that another process takes the processor for 4 ms */
    double slow;          /* the current log slowdown */
};

static uint32_t
time_of(struct machine *m, uint64_t *random, uint32_t drafted, double factor)
{
    m->slow += m->drift * normal(random) - 0.02 * m->slow;
    double us = (1000 + 250.0 * drafted) * factor * exp(m->slow + m->wobble * normal(random));
    if (splitmix64_uniform(random) < m->burst)
        us += 4000;
    return (uint32_t)us;
}

/* Runs two settings in turn with drafts of up to most0 and most1 tokens. The second takes `factor` times as long. */
static struct comparison
run(uint64_t *random, const struct machine *of, uint32_t most0, uint32_t most1, double factor)
{
    const uint64_t text = splitmix64(random);
    struct machine m = *of;
    struct paired p = {0};
    uint32_t at[2] = {0, 0};
    while (at[0] < TOKENS || at[1] < TOKENS) {
        const uint32_t side = at[0] > at[1], most = side == 0 ? most0 : most1;
        struct round_event r = {.emitted = round_length(text, at[side], most)};
        r.draft_us = time_of(&m, random, most, side == 0 ? 1 : factor);
        at[side] += r.emitted;
        paired_add(&p, side, &r);
    }
    return paired_comparison(&p);
}

static const struct machine machines[] = {
    {.wobble = 0.03, .drift = 0.002}, /* an idle machine */
    {.wobble = 0.1, .drift = 0.05},   /* its speed drifts by a third */
    {.wobble = 0.1, .drift = 0.02, .burst = 0.1},
};

TEST(equal_settings_have_a_z_of_deviation_one)
{
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        uint64_t random = 40 + i;
        double sum = 0, squares = 0;
        int different = 0;
        for (int k = 0; k < RUNS; k++) {
            const struct comparison c = run(&random, &machines[i], 5, 5, 1);
            const double z = log(c.value) / (log(c.high / c.low) / 2 / estimate_reach((double)c.n - 1));
            assert_at_least(c.n, 10);
            sum += z;
            squares += z * z;
            different += c.verdict == DIFFERENCE_MORE || c.verdict == DIFFERENCE_LESS;
        }
        const double mean = sum / RUNS, deviation = sqrt(squares / RUNS - mean * mean);
        if (!(fabs(mean) < 0.1 && deviation > 0.9 && deviation < 1.1 && different < RUNS * 7 / 100))
            fail_msg("machine %zu: z has mean %.3f and deviation %.3f; %d of %d called different", i, mean, deviation,
                     different, RUNS);
    }
}

/* The settings draft differently, so that their ratio of speeds varies over the text. */
TEST(a_fifth_is_found_in_most_runs)
{
    static const struct {
        uint32_t first, second;
    } drafts[] = {{5, 5}, {3, 6}, {2, 3}, {0, 2}};
    for (size_t i = 0; i < sizeof drafts / sizeof drafts[0]; i++) {
        uint64_t random = 80 + i;
        double ratio = 0;
        int found = 0, wrong = 0;
        for (int k = 0; k < RUNS; k++) /* the ratio of speeds without a factor */
            ratio += log(run(&random, &machines[0], drafts[i].first, drafts[i].second, 1).value) / RUNS;
        for (int k = 0; k < RUNS; k++) {
            const struct comparison c = run(&random, &machines[0], drafts[i].first, drafts[i].second, exp(ratio) / 1.2);
            found += c.verdict == DIFFERENCE_MORE;
            wrong += c.verdict == DIFFERENCE_LESS;
        }
        if (!(found > RUNS * 80 / 100 && wrong == 0))
            fail_msg("drafts of %u and %u: found in %d of %d runs, the wrong way round in %d",
                     (unsigned)drafts[i].first, (unsigned)drafts[i].second, found, RUNS, wrong);
    }
}

static bool
add(struct paired *p, uint32_t side, uint32_t tokens, uint32_t us)
{
    return paired_add(p, side, &(struct round_event){.emitted = tokens, .draft_us = us / 4, .verify_us = us - us / 4});
}

TEST(segments_are_whole_rounds_of_both)
{
    struct paired p = {0};
    assert_false(add(&p, 0, 6, 600));
    assert_false(add(&p, 1, 6, 300)); /* both rounds end together, but too early for a segment */
    assert_false(add(&p, 0, 6, 600));
    assert_false(add(&p, 1, 5, 300));
    assert_true(add(&p, 1, 1, 300));
    assert_number_equal(p.from, 0);
    assert_number_equal(p.to, 12);
    assert_near(p.y, 1200e-6, 1e-12);
    assert_near(p.x, 900e-6, 1e-12);
    assert_int_equal(paired_comparison(&p).verdict, DIFFERENCE_UNKNOWN); /* one segment has no standard error */
    for (int i = 0; i < 3; i++) {
        add(&p, 0, 8, 1000 + 10 * (uint32_t)i);
        assert_true(add(&p, 1, 8, 500));
    }
    assert_int_equal(paired_comparison(&p).n, 4);
}

/* Both settings emit 5 tokens a round, but the first emits 2 in its first round: no rounds end together. */
TEST(rounds_that_never_end_together_are_divided)
{
    struct paired p = {0};
    uint32_t at[2] = {0, 0};
    uint64_t segments = 0;
    while (at[0] < 200) {
        const uint32_t side = at[0] > at[1], tokens = side == 0 && at[0] == 0 ? 2 : 5;
        segments += add(&p, side, tokens, tokens * (side == 0 ? 300 : 100));
        at[side] += tokens;
    }
    assert_at_least(segments, 5);
    assert_int_equal(paired_comparison(&p).n, segments);
    assert_near(paired_comparison(&p).value, 3, 1e-9); /* each token takes three times as long */
}

TEST(a_restart_discards_the_lead_of_one_side)
{
    struct paired p = {0};
    add(&p, 0, 9, 900);
    paired_restart(&p); /* the first is nine tokens ahead, which must not count */
    assert_false(add(&p, 1, 9, 900));
    add(&p, 0, 8, 500);
    assert_true(add(&p, 1, 8, 250));
    assert_near(p.y, 500e-6, 1e-12);
    assert_near(p.x, 250e-6, 1e-12);
    paired_restart(&p);
    add(&p, 0, 8, 100);
    assert_true(add(&p, 1, 8, 100)); /* both were at the same token at the restart */
    assert_int_equal(paired_comparison(&p).n, 1);
}

/* Runs a policy that drafts, with slices of four autoregressive steps in between. `factor` scales the time of a step at
 * which both are equally fast. */
static struct estimate
run_with_slices(uint64_t *random, const struct machine *of, double factor)
{
    const uint64_t text = splitmix64(random);
    struct machine m = *of;
    struct sliced s = {0};
    const double even = 2250.0 / 2.61; /* mean microseconds of a round, divided by its mean tokens */
    for (uint32_t at = 0, rounds = 1; at < 2 * TOKENS; rounds++) {
        const uint32_t tokens = round_length(text, at, 5);
        sliced_round(&s, tokens, time_of(&m, random, 5, 1) * 1e-6);
        at += tokens;
        double us = 0;
        for (int i = 0; i < 4 && rounds % 8 == 0; i++)
            us += time_of(&m, random, 0, even * factor / 1000);
        if (rounds % 8 == 0)
            sliced_slice(&s, 4e6 / us);
    }
    return sliced_speedup(&s);
}

TEST(rounds_as_fast_as_slices_between_them_are_not_called_different)
{
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        uint64_t random = 60 + i;
        double mean = 0;
        int different = 0, found = 0;
        for (int k = 0; k < RUNS; k++)
            mean += log(run_with_slices(&random, &machines[i], 1).value) / RUNS;
        for (int k = 0; k < RUNS; k++) {
            const struct comparison same = estimate_compare(run_with_slices(&random, &machines[i], exp(-mean))),
                                    more = estimate_compare(run_with_slices(&random, &machines[i], 1.5 * exp(-mean)));
            different += same.verdict != DIFFERENCE_NOISE;
            found += more.verdict == DIFFERENCE_MORE;
        }
        if (!(different < RUNS * 8 / 100 && found > RUNS * 80 / 100))
            fail_msg("machine %zu: %d of %d called different; half as fast again was found in %d", i, different, RUNS,
                     found);
    }
}
