#include "policies/gaussian_process.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/rng.h"

#define NOISE       1e-2
#define CANDIDATES  96
#define LOCAL_STEPS 64

static double
uniform(uint64_t *state)
{
    return splitmix64_uniform(state);
}

bool
gp_open(struct gaussian_process *g, uint32_t d)
{
    *g = (struct gaussian_process){.d = d};
    g->x = calloc((size_t)GP_POINTS * (d > 0 ? d : 1), sizeof *g->x);
    g->factor = calloc((size_t)GP_POINTS * GP_POINTS, sizeof *g->factor);
    return g->x != NULL && g->factor != NULL;
}

void
gp_close(struct gaussian_process *g)
{
    free(g->x);
    free(g->factor);
    *g = (struct gaussian_process){0};
}

void
gp_add(struct gaussian_process *g, const double *x, double y)
{
    uint32_t at = g->n;
    if (g->n == GP_POINTS) { /* the worst of the older half says least about where the best is */
        at = 0;
        for (uint32_t i = 1; i < GP_POINTS / 2; i++)
            if (g->y[i] < g->y[at])
                at = i;
        memmove(g->y + at, g->y + at + 1, (GP_POINTS - 1 - at) * sizeof *g->y);
        memmove(g->x + (size_t)at * g->d, g->x + (size_t)(at + 1) * g->d,
                (size_t)(GP_POINTS - 1 - at) * g->d * sizeof *g->x);
        at = GP_POINTS - 1;
    } else {
        g->n++;
    }
    g->y[at] = y;
    memcpy(g->x + (size_t)at * g->d, x, g->d * sizeof *x);
    g->fitted = false;
}

static double
matern(const struct gaussian_process *g, double length, const double *a, const double *b)
{
    double sum = 0;
    for (uint32_t i = 0; i < g->d; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    double r = sqrt(5 * sum / g->d) / length;
    return (1 + r + r * r / 3) * exp(-r);
}

/* In place: the lower Cholesky factor of a (n, n), of which only the lower triangle is read. False: it has none. */
static bool
cholesky(double *a, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t i = j; i < n; i++) {
            double sum = a[i * GP_POINTS + j];
            for (uint32_t k = 0; k < j; k++)
                sum -= a[i * GP_POINTS + k] * a[j * GP_POINTS + k];
            if (i == j && !(sum > 0))
                return false;
            a[i * GP_POINTS + j] = i == j ? sqrt(sum) : sum / a[j * GP_POINTS + j];
        }
    return true;
}

/* In place: y becomes L⁻¹ y, */
static void
solve_lower(const struct gaussian_process *g, double *y)
{
    for (uint32_t i = 0; i < g->n; i++) {
        for (uint32_t j = 0; j < i; j++)
            y[i] -= g->factor[i * GP_POINTS + j] * y[j];
        y[i] /= g->factor[i * GP_POINTS + i];
    }
}

/* … and L⁻ᵀ y. */
static void
solve_upper(const struct gaussian_process *g, double *y)
{
    for (uint32_t i = g->n; i-- > 0;) {
        for (uint32_t j = i + 1; j < g->n; j++)
            y[i] -= g->factor[j * GP_POINTS + i] * y[j];
        y[i] /= g->factor[i * GP_POINTS + i];
    }
}

/* Factor and weights for one length scale; the log marginal likelihood, or -INFINITY. */
static double
factorise(struct gaussian_process *g, double length)
{
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t j = 0; j <= i; j++)
            g->factor[i * GP_POINTS + j] =
                matern(g, length, g->x + (size_t)i * g->d, g->x + (size_t)j * g->d) + (i == j ? NOISE : 0);
    if (!cholesky(g->factor, g->n))
        return -INFINITY;
    double likelihood = 0;
    for (uint32_t i = 0; i < g->n; i++)
        g->weights[i] = (g->y[i] - g->mean) / g->deviation;
    double y[GP_POINTS];
    memcpy(y, g->weights, g->n * sizeof *y);
    solve_lower(g, g->weights);
    solve_upper(g, g->weights);
    for (uint32_t i = 0; i < g->n; i++)
        likelihood -= 0.5 * y[i] * g->weights[i] + log(g->factor[i * GP_POINTS + i]);
    return likelihood;
}

bool
gp_fit(struct gaussian_process *g)
{
    static const double lengths[] = {0.15, 0.3, 0.6, 1.0, 2.0, 4.0};
    g->fitted = false;
    if (g->n < 2 || g->d == 0)
        return false;
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < g->n; i++)
        sum += g->y[i];
    g->mean = sum / g->n;
    for (uint32_t i = 0; i < g->n; i++)
        squares += (g->y[i] - g->mean) * (g->y[i] - g->mean);
    g->deviation = sqrt(squares / g->n);
    if (!(g->deviation > 1e-12)) /* all the same: any scale will do */
        g->deviation = 1;
    double best = -INFINITY;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        double likelihood = factorise(g, lengths[i]);
        if (likelihood > best) {
            best = likelihood;
            g->length = lengths[i];
        }
    }
    g->fitted = best > -INFINITY && factorise(g, g->length) > -INFINITY;
    return g->fitted;
}

void
gp_predict(const struct gaussian_process *g, const double *x, double *mean, double *deviation)
{
    double k[GP_POINTS], m = 0, explained = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        k[i] = matern(g, g->length, x, g->x + (size_t)i * g->d);
        m += k[i] * g->weights[i];
    }
    solve_lower(g, k); /* variance 1 − |L⁻¹ k|² */
    for (uint32_t i = 0; i < g->n; i++)
        explained += k[i] * k[i];
    *mean = g->mean + g->deviation * m;
    *deviation = g->deviation * sqrt(fmax(0, 1 - explained));
}

static double
bound(const struct gaussian_process *g, double kappa, const double *x)
{
    double mean, deviation;
    gp_predict(g, x, &mean, &deviation);
    return mean + kappa * deviation;
}

void
gp_suggest(const struct gaussian_process *g, double kappa, uint64_t *random, double *x)
{
    double most = -INFINITY;
    uint64_t best = 0;
    for (int c = 0; c < CANDIDATES; c++) {
        uint64_t state = *random, begin = state;
        for (uint32_t i = 0; i < g->d; i++)
            x[i] = uniform(&state);
        *random = state;
        double value = bound(g, kappa, x);
        if (value > most) {
            most = value;
            best = begin;
        }
    }
    for (uint32_t i = 0; i < g->d; i++) /* the same numbers again: the best candidate */
        x[i] = uniform(&best);
    for (int step = 0; step < LOCAL_STEPS; step++) {
        uint32_t i = (uint32_t)(splitmix64(random) % g->d);
        double before = x[i];
        x[i] = before > 0.5 ? 0 : 1;
        double value = bound(g, kappa, x);
        if (value > most)
            most = value;
        else
            x[i] = before;
    }
}
