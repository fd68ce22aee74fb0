/* SWIFT's search: on landscapes with a known best set, its first set, its end, and a saved search that resumes. */
#include <math.h>

#include "base/rng.h"
#include "policies/swift_search.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

static uint64_t seed = 11;

static double
uniform(uint64_t *state)
{
    return (double)(splitmix64(state) >> 11) * 0x1p-53;
}

/* ---- searching ---- */

#define LAYERS 10 /* 16 switches, 7 of them skipped: 11440 sets */

/* A landscape with a known best set: skipping a switch reduces the matchness by the switch's price, and the best set
 * contains the cheap switches. */
struct landscape {
    double price[2 * (LAYERS - 2)];
    double best;
};

static void
landscape_draw(struct landscape *p, uint64_t *random, uint32_t skipped)
{
    uint32_t n = 2 * (LAYERS - 2);
    for (uint32_t i = 0; i < n; i++)
        p->price[i] = 0.06 + 0.04 * uniform(random);
    for (uint32_t left = skipped; left > 0;) {
        uint32_t i = (uint32_t)(splitmix64(random) % n);
        if (p->price[i] > 0.05) {
            p->price[i] = 0.004;
            left--;
        }
    }
    p->best = 1 - 0.004 * skipped;
}

static double
matchness(const struct landscape *p, const bool *set)
{
    double m = 1;
    for (uint32_t i = 0; i < 2 * (LAYERS - 2); i++)
        m -= set[i] ? p->price[i] : 0;
    return m;
}

/* Returns the number of steps until the search finds the best set. */
static uint32_t
steps_to_find(uint64_t s, uint32_t interval, uint32_t most)
{
    struct swift_search search;
    struct landscape p;
    uint64_t random = s;
    assert_true(search_open(&search, LAYERS, search_skipped(LAYERS, 0.45), s));
    landscape_draw(&p, &random, search.skipped);
    const struct search_limits limits = {.max_steps = most, .patience = most, .target = p.best - 1e-9};
    double kept = -1;
    while (search_phase(&search, &limits) == SEARCH_RUNNING) {
        search_propose(&search, interval);
        uint32_t off = 0;
        for (uint32_t i = 0; i < search.switches; i++)
            off += search.proposed[i];
        assert_int_equal(off, search.skipped);
        search_score(&search, matchness(&p, search.proposed));
        assert_at_least(search.best_matchness, kept); /* the best set never gets worse */
        assert_near(matchness(&p, search.best), search.best_matchness, 1e-12);
        kept = search.best_matchness;
    }
    uint32_t steps = search.steps;
    search_close(&search);
    return steps;
}

static int
ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

TEST(bayesian_search_finds_the_best_set_in_fewer_steps_than_random_search)
{
    enum { SEEDS = 20 };
    uint32_t bayesian[SEEDS], random[SEEDS];
    for (uint64_t s = 0; s < SEEDS; s++) {
        bayesian[s] = steps_to_find(seed + s, 5, 3000);
        random[s] = steps_to_find(seed + s, 0, 3000);
    }
    qsort(bayesian, SEEDS, sizeof *bayesian, ascending);
    qsort(random, SEEDS, sizeof *random, ascending);
    print_message("# medians over %d seeds: Bayesian every 5th step %u, random %u\n", SEEDS,
                  (unsigned)bayesian[SEEDS / 2], (unsigned)random[SEEDS / 2]);
    assert_less(bayesian[SEEDS / 2], random[SEEDS / 2]);
}

static void
score_next(struct swift_search *s, uint32_t interval, double matchness)
{
    search_propose(s, interval);
    search_score(s, matchness);
}

TEST(the_search_ends_by_target_patience_or_steps)
{
    struct swift_search s;
    struct search_limits limits = {.max_steps = 50, .patience = 4, .target = 0.9};
    assert_true(search_open(&s, 6, 4, 1));
    score_next(&s, 0, 0.5);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(search_phase(&s, &limits), SEARCH_RUNNING);
        score_next(&s, 0, 0.4);
    }
    assert_int_equal(search_phase(&s, &limits), SEARCH_STALE);
    limits.patience = 10; /* the search resumes */
    assert_int_equal(search_phase(&s, &limits), SEARCH_RUNNING);
    limits.max_steps = s.steps;
    assert_int_equal(search_phase(&s, &limits), SEARCH_SPENT);
    score_next(&s, 0, 0.95);
    assert_int_equal(search_phase(&s, &limits), SEARCH_FOUND);
    search_close(&s);
}

/* ---- proposals ---- */

TEST(the_initial_set_is_spread_evenly_over_the_depth)
{
    for (uint32_t layers = 2; layers <= 40; layers++)
        for (int percent = 0; percent <= 90; percent += 5) {
            struct swift_search s;
            const uint32_t inner = layers - 2, skipped = search_skipped(layers, percent / 100.0);
            assert_int_equal(skipped, 2 * inner * (uint32_t)percent / 100);
            assert_true(search_open(&s, layers, skipped, 1));
            uint32_t so_far = 0, halves = 0;
            for (uint32_t i = 0; i < inner; i++) { /* each prefix of the layers has its share, in whole layers */
                assert_true(s.best[2 * i] || !s.best[2 * i + 1]);
                halves += s.best[2 * i] != s.best[2 * i + 1];
                so_far += (uint32_t)s.best[2 * i] + (uint32_t)s.best[2 * i + 1];
                assert_at_most(fabs(so_far - (double)skipped * (i + 1) / inner), 2);
            }
            assert_int_equal(halves, skipped % 2);
            assert_int_equal(so_far, skipped);
            search_propose(&s, 25); /* the initial set is scored first */
            assert_memory_equal(s.proposed, s.best, s.switches * sizeof *s.best);
            search_close(&s);
        }
}

/* If all sets are equally good, many values of the Gaussian process are equal. */
TEST(equal_values_at_the_cut_do_not_favour_the_shallow_end)
{
    uint32_t shallow = 0, all = 0;
    for (uint64_t i = 0; i < 300; i++) {
        struct swift_search s;
        assert_true(search_open(&s, LAYERS, 2, seed + i));
        for (int step = 0; step < 5; step++)
            score_next(&s, 0, 0.5);
        search_propose(&s, 6); /* every sixth proposal is the process's */
        for (uint32_t k = 0; k < s.switches; k++) {
            all += s.proposed[k];
            shallow += s.proposed[k] && k < s.switches / 2;
        }
        search_close(&s);
    }
    print_message("# %u of %u in the shallow half\n", (unsigned)shallow, (unsigned)all);
    assert_in_range(shallow, all * 2 / 5, all * 3 / 5);
}

/* ---- saving ---- */

static double
some_matchness(const struct swift_search *s)
{
    double m = 0;
    for (uint32_t i = 0; i < s->switches; i++)
        m += s->proposed[i] ? 0.9 / (i + 7) : 0;
    return fmin(1, m);
}

TEST(a_saved_search_resumes_with_the_same_steps)
{
    enum { STEPS = 100, SAVED = 83 }; /* more than GP_POINTS */
    struct swift_search whole, begun, resumed;
    assert_true(search_open(&whole, LAYERS, 7, 1) && search_open(&begun, LAYERS, 7, 1) &&
                search_open(&resumed, LAYERS, 7, 99));
    for (int i = 0; i < STEPS; i++) {
        search_propose(&whole, 5);
        search_score(&whole, some_matchness(&whole));
        if (i == SAVED) {
            void *saved = search_save(&begun);
            assert_non_null(saved);
            search_load(&resumed, saved);
            free(saved);
        }
        struct swift_search *s = i < SAVED ? &begun : &resumed;
        search_propose(s, 5);
        assert_memory_equal(s->proposed, whole.proposed, s->switches * sizeof *s->proposed);
        search_score(s, some_matchness(s));
        assert_memory_equal(s->best, whole.best, s->switches * sizeof *s->best);
        assert_number_equal(s->best_matchness, whole.best_matchness);
        assert_number_equal(s->last_matchness, whole.last_matchness);
        assert_int_equal(s->steps, whole.steps);
        assert_int_equal(s->best_step, whole.best_step);
        assert_int_equal(s->random, whole.random);
    }
    assert_int_equal(resumed.gp.n, GP_POINTS);
    search_close(&whole);
    search_close(&begun);
    search_close(&resumed);
}

TEST(a_saved_search_of_another_shape_changes_nothing)
{
    struct swift_search s, other;
    assert_true(search_open(&s, 6, 3, 1) && search_open(&other, 6, 4, 1));
    score_next(&s, 0, 0.5);
    void *saved = search_save(&s);
    search_load(&other, saved); /* another ratio */
    assert_int_equal(other.steps, 0);
    search_close(&other);
    assert_true(search_open(&other, 8, 3, 1));
    search_load(&other, saved); /* another model */
    assert_int_equal(other.steps, 0);
    search_close(&other);
    free(saved);
    search_close(&s);
}

TEST_SEED(seed, seed);
