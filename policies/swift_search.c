#include "policies/swift_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

/* ---- the Gaussian process ---- */

#define NOISE       1e-2
#define CANDIDATES  96
#define LOCAL_STEPS 64

void
gp_open(struct gaussian_process *g, uint32_t d, struct blocks *b)
{
    *g = (struct gaussian_process){.d = d};
    g->x = blocks_take(b, (size_t)GP_POINTS * d, sizeof *g->x);
    g->factor = blocks_take(b, (size_t)GP_POINTS * GP_POINTS, sizeof *g->factor);
}

void
gp_add(struct gaussian_process *g, const double *x, double y)
{
    uint32_t at = g->n;
    if (g->n == GP_POINTS) { /* the worst of the older half is the least useful */
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

/* Replaces a (n, n), of which only the lower triangle is read, by its lower Cholesky factor. Returns false if there is
 * none. */
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

/* y becomes L⁻¹ y. */
static void
solve_lower(const struct gaussian_process *g, double *y)
{
    for (uint32_t i = 0; i < g->n; i++) {
        for (uint32_t j = 0; j < i; j++)
            y[i] -= g->factor[i * GP_POINTS + j] * y[j];
        y[i] /= g->factor[i * GP_POINTS + i];
    }
}

/* y becomes L⁻ᵀ y. */
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
    if (!(g->deviation > 1e-12)) /* equal values fit any scale */
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
            x[i] = splitmix64_uniform(&state);
        *random = state;
        double value = bound(g, kappa, x);
        if (value > most) {
            most = value;
            best = begin;
        }
    }
    for (uint32_t i = 0; i < g->d; i++) /* draws the numbers of the best candidate again */
        x[i] = splitmix64_uniform(&best);
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

/* ---- the search ---- */

#define KAPPA 2.5

uint32_t
search_skipped(uint32_t layers, double ratio)
{
    return layers > 2 ? (uint32_t)floor(2 * (layers - 2) * ratio + 1e-9) : 0;
}

/* Both sublayers of layers that are spread evenly over the depth; if the number is odd, the attention alone of the last
 * one. */
static void
initial_set(const struct swift_search *s, bool *set)
{
    const uint32_t layers = s->switches / 2, chosen = (s->skipped + 1) / 2;
    memset(set, 0, s->switches * sizeof *set);
    for (uint32_t k = 0; k < s->skipped; k++)
        set[2 * ((2 * (k / 2) + 1) * layers / (2 * chosen)) + k % 2] = true;
}

bool
search_open(struct swift_search *s, uint32_t layers, uint32_t skipped, uint64_t seed)
{
    const uint32_t n = layers > 2 ? 2 * (layers - 2) : 0;
    *s = (struct swift_search){
        .switches = n, .skipped = skipped, .random = seed, .best_matchness = -1, .last_matchness = -1};
    s->best = blocks_take(&s->blocks, n + 1, sizeof *s->best);
    s->proposed = blocks_take(&s->blocks, n + 1, sizeof *s->proposed);
    s->point = blocks_take(&s->blocks, n + 1, sizeof *s->point);
    s->order = blocks_take(&s->blocks, n + 1, sizeof *s->order);
    gp_open(&s->gp, n, &s->blocks);
    if (s->blocks.starved)
        return false;
    initial_set(s, s->best);
    initial_set(s, s->proposed);
    return true;
}

void
search_close(struct swift_search *s)
{
    blocks_free(&s->blocks);
    *s = (struct swift_search){0};
}

enum search_phase
search_phase(const struct swift_search *s, const struct search_limits *limits)
{
    if (s->best_matchness >= limits->target)
        return SEARCH_FOUND;
    if (s->steps >= limits->max_steps)
        return SEARCH_SPENT;
    return s->steps - s->best_step >= limits->patience ? SEARCH_STALE : SEARCH_RUNNING;
}

static uint32_t
below(struct swift_search *s, uint32_t n)
{
    return (uint32_t)(splitmix64(&s->random) % n);
}

static void
random_set(struct swift_search *s)
{
    memset(s->proposed, 0, s->switches * sizeof *s->proposed);
    for (uint32_t i = s->switches - s->skipped; i < s->switches; i++) { /* Floyd's sampling without replacement */
        uint32_t k = below(s, i + 1);
        s->proposed[s->proposed[k] ? i : k] = true;
    }
}

/* Skips the switches with the largest values of a point; equal values are in random order. */
static void
largest_set(struct swift_search *s)
{
    for (uint32_t i = 0; i < s->switches; i++) { /* a random order, by inside-out shuffling */
        const uint32_t k = below(s, i + 1);
        s->order[i] = s->order[k];
        s->order[k] = i;
    }
    memset(s->proposed, 0, s->switches * sizeof *s->proposed);
    for (uint32_t left = s->skipped; left > 0; left--) {
        uint32_t at = s->switches;
        for (uint32_t k = 0; k < s->switches; k++) {
            const uint32_t i = s->order[k];
            if (!s->proposed[i] && (at == s->switches || s->point[i] > s->point[at]))
                at = i;
        }
        s->proposed[at] = true;
    }
}

void
search_propose(struct swift_search *s, uint32_t interval)
{
    if (s->steps == 0) {
        initial_set(s, s->proposed);
    } else if (interval > 0 && (s->steps + 1) % interval == 0 && gp_fit(&s->gp)) {
        gp_suggest(&s->gp, KAPPA, &s->random, s->point);
        largest_set(s);
    } else {
        random_set(s);
    }
}

void
search_score(struct swift_search *s, double matchness)
{
    for (uint32_t i = 0; i < s->switches; i++)
        s->point[i] = s->proposed[i] ? 1 : 0;
    gp_add(&s->gp, s->point, matchness);
    s->last_matchness = matchness;
    s->steps++;
    if (matchness > s->best_matchness) {
        memcpy(s->best, s->proposed, s->switches * sizeof *s->best);
        s->best_matchness = matchness;
        s->best_step = s->steps;
    }
}

/* ---- saved ---- */

struct saved_search {
    struct swift_search search; /* its pointers are invalid */
    double sets[];              /* (1 + gp.n, switches) the best set, then the points of the Gaussian process */
};

void *
search_save(const struct swift_search *s)
{
    const size_t points = (size_t)s->gp.n * s->switches;
    struct saved_search *saved = malloc(sizeof *saved + (s->switches + points) * sizeof *saved->sets);
    if (saved == NULL)
        return NULL;
    saved->search = *s;
    for (uint32_t i = 0; i < s->switches; i++)
        saved->sets[i] = s->best[i] ? 1 : 0;
    memcpy(saved->sets + s->switches, s->gp.x, points * sizeof *saved->sets);
    return saved;
}

void
search_load(struct swift_search *s, const void *from)
{
    const struct saved_search *saved = from;
    const struct swift_search *old = &saved->search;
    if (old->switches != s->switches || old->skipped != s->skipped)
        return;
    s->best_matchness = old->best_matchness;
    s->last_matchness = old->last_matchness;
    s->steps = old->steps;
    s->best_step = old->best_step;
    s->random = old->random;
    for (uint32_t i = 0; i < s->switches; i++)
        s->best[i] = saved->sets[i] > 0;
    s->gp.n = 0;
    for (uint32_t i = 0; i < old->gp.n; i++)
        gp_add(&s->gp, saved->sets + (size_t)(1 + i) * s->switches, old->gp.y[i]);
}
