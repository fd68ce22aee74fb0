/* Linear regression: the solution satisfies the normal equations, which have one. */
#include "base/rng.h"
#include "engine/training/ridge.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define WIDTH  150 /* three blocks of columns, the last one smaller */
#define ROWS   600 /* three parts, the last one smaller */
#define STRIDE (2 * WIDTH + 3)

struct data {
    float rows[ROWS * STRIDE]; /* x, then y */
    float a[WIDTH * WIDTH], b[WIDTH];
};

static double
noise(uint64_t *random_state)
{
    return 2 * splitmix64_uniform(random_state) - 1;
}

/* x has a large mean in one element, and y is a linear map of it with noise. */
static struct data *
make_data(uint64_t random_state)
{
    struct data *d = calloc(1, sizeof *d);
    double *map = malloc(WIDTH * WIDTH * sizeof *map);
    assert_non_null(d);
    assert_non_null(map);
    for (size_t i = 0; i < WIDTH * WIDTH; i++)
        map[i] = noise(&random_state) / 4;
    for (size_t r = 0; r < ROWS; r++) {
        float *x = d->rows + r * STRIDE, *y = x + WIDTH;
        for (size_t k = 0; k < WIDTH; k++)
            x[k] = (float)(noise(&random_state) * (k % 3 == 0 ? 4 : 1) + (k == 7 ? 300 : 0));
        for (size_t i = 0; i < WIDTH; i++) {
            double sum = (double)i + 0.1 * noise(&random_state);
            for (size_t k = 0; k < WIDTH; k++)
                sum += map[i * WIDTH + k] * (double)x[k];
            y[i] = (float)sum;
        }
    }
    free(map);
    return d;
}

static double
residual(const struct data *d, size_t r, size_t i)
{
    const float *x = d->rows + r * STRIDE, *y = x + WIDTH;
    double sum = (double)y[i] - (double)x[i] - (double)d->b[i];
    for (size_t k = 0; k < WIDTH; k++)
        sum -= (double)d->a[i * WIDTH + k] * (double)x[k];
    return sum;
}

TEST(the_residuals_have_no_mean_and_no_slope_but_the_ridges)
{
    uint64_t seed = seed_or(5);
    struct data *d = make_data(seed);
    assert_true(ridge_fit(NULL, d->rows, d->rows + WIDTH, STRIDE, ROWS, WIDTH, NULL, d->a, d->b));
    double mean[WIDTH] = {0}, variance = 0;
    for (size_t k = 0; k < WIDTH; k++) {
        double sum = 0, squares = 0;
        for (size_t r = 0; r < ROWS; r++)
            sum += (double)d->rows[r * STRIDE + k];
        mean[k] = sum / ROWS;
        for (size_t r = 0; r < ROWS; r++)
            squares += ((double)d->rows[r * STRIDE + k] - mean[k]) * ((double)d->rows[r * STRIDE + k] - mean[k]);
        variance += squares / WIDTH;
    }
    double error = 0, size = 0;
    for (size_t i = 0; i < WIDTH; i += 29) {
        double of_row[ROWS], sum = 0;
        for (size_t r = 0; r < ROWS; r++)
            sum += of_row[r] = residual(d, r, i);
        assert_near(sum / ROWS, 0, 2e-3);
        for (size_t k = 0; k < WIDTH; k++) {
            double slope = 0;
            for (size_t r = 0; r < ROWS; r++)
                slope += of_row[r] * ((double)d->rows[r * STRIDE + k] - mean[k]);
            const double ridge = 1e-3 * variance * (double)d->a[i * WIDTH + k];
            error += (slope - ridge) * (slope - ridge);
            size += ridge * ridge;
        }
    }
    assert_greater(size, 0);
    assert_less(error, 0.01 * size);
    free(d);
}

TEST(rows_that_are_all_alike_give_their_difference)
{
    enum { N = 3, FEW = 2 };
    const float x[FEW * N] = {1, 2, 3, 1, 2, 3}, y[FEW * N] = {5, 5, 5, 5, 5, 5};
    float a[N * N], b[N];
    assert_true(ridge_fit(NULL, x, y, N, FEW, N, NULL, a, b));
    for (size_t i = 0; i < N; i++) {
        assert_near((double)b[i], 4 - (double)i, 1e-5);
        for (size_t k = 0; k < N; k++)
            assert_near((double)a[i * N + k], 0, 1e-6);
    }
}

TEST(a_cancelled_fit_changes_nothing)
{
    const atomic_bool cancel = true;
    const float x[] = {1, 2, 3, 5}, y[] = {5, 5, 6, 7};
    float a[4] = {9, 9, 9, 9}, b[2] = {9, 9};
    assert_true(ridge_fit(NULL, x, y, 2, 2, 2, &cancel, a, b));
    assert_number_equal(a[0], 9);
    assert_number_equal(b[1], 9);
}
