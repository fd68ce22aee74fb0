/* Goodput against its definition, and the choice of γ against an exhaustive search. */
#include <math.h>

#include "base/rng.h"
#include "policies/sv_goodput.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

enum { MOST = 10, TRIALS = 2000 };

static uint64_t random_state;

static double
uniform(void)
{
    return (double)(splitmix64(&random_state) >> 11) * 0x1p-53;
}

/* Expected accepted drafts: the mean, over all outcomes of γ tests, of the number before the first rejection. */
static double
mean_accepted(const double *p, uint32_t gamma)
{
    double mean = 0;
    for (uint32_t outcome = 0; outcome < 1u << gamma; outcome++) {
        double probability = 1;
        uint32_t accepted = 0;
        for (uint32_t i = 0; i < gamma; i++)
            probability *= (outcome >> i & 1) != 0 ? p[i] : 1 - p[i];
        while (accepted < gamma && (outcome >> accepted & 1) != 0)
            accepted++;
        mean += probability * accepted;
    }
    return mean;
}

TEST(expected_is_the_mean_over_all_outcomes)
{
    for (uint32_t trial = 0; trial < 50; trial++) {
        double p[MOST];
        for (uint32_t i = 0; i < MOST; i++)
            p[i] = uniform();
        for (uint32_t gamma = 0; gamma <= MOST; gamma++)
            assert_near(goodput_expected(p, gamma), mean_accepted(p, gamma), 1e-12);
    }
}

static double
goodput(const double *p, uint32_t gamma, const double *latency)
{
    return (goodput_expected(p, gamma) + 1) / latency[gamma];
}

static uint32_t
choose(const double *p, uint32_t n, const double *latency)
{
    uint32_t gamma;
    goodput_allocate(&p, &n, 1, latency, false, &gamma);
    return gamma;
}

/* After a step in the latency, more drafts cost nothing. A search that climbs from γ = 0 stops before the step. */
TEST(the_choice_is_the_best_of_all_beyond_local_maxima)
{
    uint32_t further = 0;
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        double p[MOST], latency[MOST + 1] = {0.5 + uniform()}, q[2][MOST];
        const double *both[2] = {q[0], q[1]};
        uint32_t best = 0, gamma, n = MOST, half[2] = {MOST / 2, MOST / 2}, each[2];
        for (uint32_t i = 0; i < MOST; i++) {
            p[i] = uniform();
            q[0][i] = uniform();
            q[1][i] = uniform();
            latency[i + 1] = latency[i] + (i % 4 == 0 ? uniform() : 0);
        }
        for (uint32_t i = 1; i <= MOST; i++)
            best = goodput(p, i, latency) > goodput(p, best, latency) ? i : best;
        const double *one = p;
        goodput_allocate(&one, &n, 1, latency, true, &gamma);
        assert_int_equal(gamma, best);
        further += gamma > choose(p, MOST, latency);
        double highest = 0;
        for (uint32_t a = 0; a <= half[0]; a++)
            for (uint32_t b = 0; b <= half[1]; b++)
                highest = fmax(highest, (mean_accepted(q[0], a) + mean_accepted(q[1], b) + 2) / latency[a + b]);
        goodput_allocate(both, half, 2, latency, true, each);
        const double mine = mean_accepted(q[0], each[0]) + mean_accepted(q[1], each[1]) + 2;
        assert_near(mine / latency[each[0] + each[1]], highest, 1e-12);
    }
    assert_greater(further, 0);
}

TEST(the_choice_is_the_first_that_nothing_next_to_it_betters)
{
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        double p[MOST], latency[MOST + 1] = {0.5 + uniform()};
        const uint32_t n = (uint32_t)(splitmix64(&random_state) % (MOST + 1));
        for (uint32_t i = 0; i < MOST; i++) {
            p[i] = uniform();
            latency[i + 1] = latency[i] + 0.4 * uniform();
        }
        uint32_t want = n;
        for (uint32_t gamma = n; gamma-- > 0;)
            if ((mean_accepted(p, gamma + 1) + 1) / latency[gamma + 1] <=
                (mean_accepted(p, gamma) + 1) / latency[gamma])
                want = gamma;
        const uint32_t got = choose(p, n, latency);
        assert_int_equal(got, want);
        for (uint32_t i = got + 1; i < MOST; i++) /* values after draft γ + 1 have no effect */
            p[i] = uniform();
        assert_int_equal(choose(p, n, latency), got);
    }
}

TEST(the_choice_is_the_best_of_all_where_each_row_costs_the_same)
{
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        double p[MOST], latency[MOST + 1];
        const double base = 0.5 + uniform(), row = 0.5 * uniform();
        uint32_t best = 0;
        for (uint32_t i = 0; i < MOST; i++)
            p[i] = uniform();
        for (uint32_t gamma = 0; gamma <= MOST; gamma++) {
            latency[gamma] = base + row * gamma;
            if (goodput(p, gamma, latency) > goodput(p, best, latency))
                best = gamma;
        }
        const double chosen = goodput(p, choose(p, MOST, latency), latency);
        assert_near(chosen, goodput(p, best, latency), 1e-12);
    }
}

/* Several sequences. Where rows cost the same, the test tries all allocations. Elsewhere it checks the defining
 * property: no other sequence's next draft would have gained more, and values that were not read have no effect. */
TEST(a_batch_gives_rows_to_the_sequences_that_gain_most)
{
    enum { SEQUENCES = 3, LONG = 4 };
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        double p[SEQUENCES][LONG], latency[SEQUENCES * LONG + 1];
        const double *rows[SEQUENCES] = {p[0], p[1], p[2]};
        uint32_t most[SEQUENCES], gamma[SEQUENCES], again[SEQUENCES];
        const double base = 0.5 + uniform(), row = 0.5 * uniform();
        for (uint32_t k = 0; k <= SEQUENCES * LONG; k++)
            latency[k] = base + row * k;
        for (uint32_t i = 0; i < SEQUENCES; i++) {
            most[i] = (uint32_t)(splitmix64(&random_state) % (LONG + 1));
            for (uint32_t k = 0; k < LONG; k++)
                p[i][k] = uniform();
        }
        double best = 0, mine = SEQUENCES;
        for (uint32_t a = 0; a <= most[0]; a++)
            for (uint32_t b = 0; b <= most[1]; b++)
                for (uint32_t c = 0; c <= most[2]; c++)
                    best = fmax(best, (mean_accepted(p[0], a) + mean_accepted(p[1], b) + mean_accepted(p[2], c) + 3) /
                                          latency[a + b + c]);
        goodput_allocate(rows, most, SEQUENCES, latency, false, gamma);
        uint32_t drafts = 0;
        for (uint32_t i = 0; i < SEQUENCES; i++) {
            assert_at_most(gamma[i], most[i]);
            mine += mean_accepted(p[i], gamma[i]);
            drafts += gamma[i];
        }
        assert_near(mine / latency[drafts], best, 1e-12);
        for (uint32_t i = 0; i < SEQUENCES; i++)
            for (uint32_t k = gamma[i] + 1; k < LONG; k++) /* values after draft γ + 1 have no effect on any sequence */
                p[i][k] = uniform();
        goodput_allocate(rows, most, SEQUENCES, latency, false, again);
        assert_memory_equal(again, gamma, sizeof gamma);
    }
}

/* Isotonic regression at i is the maximum over blocks that begin at or before i of the minimum mean over blocks that
 * end at or after i. */
TEST(monotone_is_the_isotonic_regression)
{
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        double x[MOST], got[MOST];
        const uint32_t n = 1 + (uint32_t)(splitmix64(&random_state) % MOST);
        for (uint32_t i = 0; i < n; i++)
            got[i] = x[i] = trial % 2 == 0 ? uniform() + 0.1 * i : floor(4 * uniform());
        goodput_monotone(got, n);
        for (uint32_t i = 0; i < n; i++) {
            double most = -INFINITY;
            for (uint32_t a = 0; a <= i; a++) {
                double least = INFINITY, sum = 0;
                for (uint32_t b = a; b < n; b++) {
                    sum += x[b];
                    least = b >= i ? fmin(least, sum / (b - a + 1)) : least;
                }
                most = fmax(most, least);
            }
            assert_near(got[i], most, 1e-12);
            if (i > 0)
                assert_at_least(got[i], got[i - 1]);
        }
    }
}

TEST_SEED(random_state, 13);
