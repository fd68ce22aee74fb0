/* The Gaussian process against a slow definition. */
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

static double
matern(const double *a, const double *b, uint32_t d, double length)
{
    double sum = 0;
    for (uint32_t i = 0; i < d; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    double r = sqrt(sum / d) / length;
    return (1 + sqrt(5) * r + 5 * r * r / 3) * exp(-sqrt(5) * r);
}

/* Solves A z = b by Gauss-Jordan elimination with pivoting: no Cholesky factor. */
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

TEST(posterior_mean_and_deviation_follow_the_definition)
{
    enum { N = 12, D = 5 };
    struct gaussian_process g;
    struct blocks blocks = {0};
    uint64_t random = seed;
    double x[N][D], y[N], at[D];
    gp_open(&g, D, &blocks);
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
        assert_near(mean, g.mean + g.deviation * m, 1e-9);
        assert_near(deviation, g.deviation * sqrt(fmax(0, 1 - explained)), 1e-6);
    }
    blocks_free(&blocks);
}

TEST(points_are_bounded_and_the_best_ones_stay)
{
    struct gaussian_process g;
    struct blocks blocks = {0};
    uint64_t random = seed;
    gp_open(&g, 3, &blocks);
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
    assert_number_equal(kept, best);
    assert_true(gp_fit(&g));
    blocks_free(&blocks);
}

TEST(points_that_are_all_alike_do_not_break_the_fit)
{
    struct gaussian_process g;
    struct blocks blocks = {0};
    const double x[2] = {0.5, 0.5};
    double mean, deviation;
    gp_open(&g, 2, &blocks);
    assert_false(gp_fit(&g));
    for (int i = 0; i < 30; i++)
        gp_add(&g, x, 0.25);
    assert_true(gp_fit(&g));
    gp_predict(&g, x, &mean, &deviation);
    assert_near(mean, 0.25, 1e-6);
    assert_at_least(deviation, 0);
    blocks_free(&blocks);
}

TEST_SEED(seed, seed);
