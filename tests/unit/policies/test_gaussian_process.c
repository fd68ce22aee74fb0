/* The Gaussian process against a slow definition, and SWIFT's search on landscapes whose best set is known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernels/rng.h"
#include "policies/swift_search.h"
#include "tests/rigs/seed.h"

static uint64_t seed = 11;

static double
uniform(uint64_t *state)
{
    return (double)(splitmix64(state) >> 11) * 0x1p-53;
}

static double
matern(const double *a, const double *b, uint32_t d, double length)
{
    double sum = 0;
    for (uint32_t i = 0; i < d; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    double r = sqrt(sum / d) / length;
    return (1 + sqrt(5) * r + 5 * r * r / 3) * exp(-sqrt(5) * r);
}

/* Solves A z = b by Gauss-Jordan elimination with pivoting: no LAPACK, no Cholesky. */
static void
solve(double a[20][20], double *b, int n)
{
    for (int col = 0; col < n; col++) {
        int pivot = col;
        for (int i = col; i < n; i++)
            if (fabs(a[i][col]) > fabs(a[pivot][col]))
                pivot = i;
        for (int j = 0; j < n; j++) {
            double t = a[col][j];
            a[col][j] = a[pivot][j];
            a[pivot][j] = t;
        }
        double t = b[col];
        b[col] = b[pivot];
        b[pivot] = t;
        for (int i = 0; i < n; i++) {
            double f = i == col ? 0 : a[i][col] / a[col][col];
            for (int j = 0; j < n && f != 0; j++)
                a[i][j] -= f * a[col][j];
            b[i] -= f * b[col];
        }
    }
    for (int i = 0; i < n; i++)
        b[i] /= a[i][i];
}

static void
test_posterior_mean_and_deviation_follow_the_definition(void **state)
{
    (void)state;
    enum { N = 12, D = 5 };
    struct gaussian_process g;
    uint64_t random = seed;
    double x[N][D], y[N], at[D];
    assert_true(gp_open(&g, D));
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < D; j++)
            x[i][j] = uniform(&random);
        y[i] = sin(3 * x[i][0]) + x[i][1];
        gp_add(&g, x[i], y[i]);
    }
    assert_true(gp_fit(&g));
    for (int trial = 0; trial < 20; trial++) {
        double k[20][20], w[20], v[20], kx[20], mean, deviation;
        for (int j = 0; j < D; j++)
            at[j] = uniform(&random);
        for (int i = 0; i < N; i++) {
            kx[i] = v[i] = matern(at, x[i], D, g.length);
            w[i] = (y[i] - g.mean) / g.deviation;
        }
        for (int pass = 0; pass < 2; pass++) {
            for (int i = 0; i < N; i++)
                for (int j = 0; j < N; j++)
                    k[i][j] = matern(x[i], x[j], D, g.length) + (i == j ? 1e-2 : 0);
            solve(k, pass == 0 ? w : v, N);
        }
        double m = 0, explained = 0;
        for (int i = 0; i < N; i++) {
            m += kx[i] * w[i];
            explained += kx[i] * v[i];
        }
        gp_predict(&g, at, &mean, &deviation);
        assert_true(fabs(mean - (g.mean + g.deviation * m)) < 1e-9);
        assert_true(fabs(deviation - g.deviation * sqrt(fmax(0, 1 - explained))) < 1e-6);
    }
    gp_close(&g);
}

static void
test_points_are_bounded_and_the_best_ones_stay(void **state)
{
    (void)state;
    struct gaussian_process g;
    uint64_t random = seed;
    assert_true(gp_open(&g, 3));
    double best = -1;
    for (int i = 0; i < 5 * GP_POINTS; i++) {
        double x[3] = {uniform(&random), uniform(&random), uniform(&random)}, y = uniform(&random);
        best = fmax(best, y);
        gp_add(&g, x, y);
    }
    assert_int_equal(g.n, GP_POINTS);
    double kept = -1;
    for (uint32_t i = 0; i < g.n; i++)
        kept = fmax(kept, g.y[i]);
    assert_true(kept == best);
    assert_true(gp_fit(&g));
    gp_close(&g);
}

static void
test_points_that_are_all_alike_do_not_break_the_fit(void **state)
{
    (void)state;
    struct gaussian_process g;
    const double x[2] = {0.5, 0.5};
    double mean, deviation;
    assert_true(gp_open(&g, 2));
    assert_false(gp_fit(&g));
    for (int i = 0; i < 30; i++)
        gp_add(&g, x, 0.25);
    assert_true(gp_fit(&g));
    gp_predict(&g, x, &mean, &deviation);
    assert_true(fabs(mean - 0.25) < 1e-6 && deviation >= 0);
    gp_close(&g);
}

/* ---- the search ---- */

#define LAYERS 10 /* 16 switches, 7 of them skipped: 11440 sets */

/* A synthetic model: each switch has a price for being skipped; matchness is what is left. The planted best set skips
 * the cheap ones. */
struct planted {
    double price[2 * (LAYERS - 2)];
    double best;
};

static void
plant(struct planted *p, uint64_t *random, uint32_t skipped)
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
matchness(const struct planted *p, const bool *set)
{
    double m = 1;
    for (uint32_t i = 0; i < 2 * (LAYERS - 2); i++)
        m -= set[i] ? p->price[i] : 0;
    return m;
}

/* Steps until the planted set is found. */
static uint32_t
steps_to_find(uint64_t s, uint32_t interval, uint32_t most)
{
    struct swift_search search;
    struct planted p;
    uint64_t random = s;
    assert_true(search_open(&search, LAYERS, 0.45, s));
    plant(&p, &random, search.skipped);
    const struct search_limits limits = {
        .interval = interval, .max_steps = most, .patience = most, .target = p.best - 1e-9};
    double kept = -1;
    while (search.phase == SEARCH_RUNNING) {
        search_propose(&search, interval);
        uint32_t off = 0;
        for (uint32_t i = 0; i < search.switches; i++)
            off += search.proposed[i];
        assert_int_equal(off, search.skipped);
        search_score(&search, matchness(&p, search.proposed), &limits);
        assert_true(search.best_matchness >= kept); /* the kept set never gets worse */
        assert_true(fabs(matchness(&p, search.best) - search.best_matchness) < 1e-12);
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

static void
test_bayesian_search_finds_a_planted_set_in_fewer_steps_than_random_search(void **state)
{
    (void)state;
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
    assert_true(bayesian[SEEDS / 2] < random[SEEDS / 2]);
}

static void
test_the_search_ends_by_target_patience_or_steps(void **state)
{
    (void)state;
    struct swift_search s;
    assert_true(search_open(&s, 6, 0.5, 1));
    const struct search_limits limits = {.max_steps = 50, .patience = 4, .target = 0.9};
    search_propose(&s, 0);
    assert_true(search_score(&s, 0.5, &limits));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(s.phase, SEARCH_RUNNING);
        search_propose(&s, 0);
        assert_false(search_score(&s, 0.4, &limits));
    }
    assert_int_equal(s.phase, SEARCH_STALE);
    assert_true(search_score(&s, 0.95, &limits));
    assert_int_equal(s.phase, SEARCH_FOUND);
    search_close(&s);
}

static void
test_the_state_survives_in_a_file(void **state)
{
    (void)state;
    char folder[] = "/tmp/specscope-swift-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/state", folder);
    struct swift_search a, b, other;
    struct err err;
    const struct search_limits limits = {.max_steps = 50, .patience = 40, .target = 2};
    assert_true(search_open(&a, LAYERS, 0.45, 1) && search_open(&b, LAYERS, 0.45, 2) &&
                search_open(&other, 6, 0.45, 1));
    assert_false(search_load(&b, path, &err));
    assert_int_equal(err.kind, ERR_NONE); /* none there yet */
    for (int i = 0; i < 5; i++) {
        search_propose(&a, 0);
        search_score(&a, 0.1 * i, &limits);
    }
    assert_true(search_save(&a, path, &err));
    assert_true(search_load(&b, path, &err));
    assert_memory_equal(a.best, b.best, a.switches * sizeof *a.best);
    assert_true(b.best_matchness == a.best_matchness);
    assert_int_equal(b.steps, 5);
    assert_false(search_load(&other, path, &err)); /* another model's */
    FILE *f = fopen(path, "w");
    fputs("{\"switches\": 16, \"skipped\": [99", f);
    fclose(f);
    assert_false(search_load(&b, path, &err));
    assert_int_equal(err.kind, ERR_WORK);
    unlink(path);
    rmdir(folder);
    search_close(&a);
    search_close(&b);
    search_close(&other);
}

int
main(void)
{
    seed = seed_or(seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_posterior_mean_and_deviation_follow_the_definition),
        cmocka_unit_test(test_points_are_bounded_and_the_best_ones_stay),
        cmocka_unit_test(test_points_that_are_all_alike_do_not_break_the_fit),
        cmocka_unit_test(test_bayesian_search_finds_a_planted_set_in_fewer_steps_than_random_search),
        cmocka_unit_test(test_the_search_ends_by_target_patience_or_steps),
        cmocka_unit_test(test_the_state_survives_in_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
