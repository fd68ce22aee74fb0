#include "engine/trained/sv_profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t
bin_of(const float *edge, uint32_t n_bins, double value)
{
    uint32_t bin = 0;
    while (bin + 1 < n_bins && (double)edge[bin] <= value)
        bin++;
    return bin;
}

static int
by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Edges between values, so that bins hold about as many of the n each; returns how many bins. values are sorted. */
static uint32_t
find_edges(float *values, size_t n, uint32_t most, float *edge)
{
    uint32_t bins = 1;
    qsort(values, n, sizeof *values, by_value);
    for (uint32_t i = 1; i < most; i++) {
        const float value = values[n * i / most];
        if (value > values[0] && (bins == 1 || value > edge[bins - 2]))
            edge[bins++ - 1] = value;
    }
    return bins;
}

/* -Σ p log2 p of counts. */
static double
entropy_of(const uint64_t *count, uint32_t n)
{
    double all = 0, h = 0;
    for (uint32_t i = 0; i < n; i++)
        all += (double)count[i];
    for (uint32_t i = 0; i < n; i++)
        if (count[i] > 0)
            h -= (double)count[i] / all * log2((double)count[i] / all);
    return h;
}

typedef uint64_t histogram[SV_ACCEPTED];

/* Σ over `groups` histograms, each by its share, of what is uncertain in it. */
static double
entropy_given(histogram *of, size_t groups, size_t n)
{
    double h = 0;
    for (size_t g = 0; g < groups; g++) {
        uint64_t own = 0;
        for (uint32_t k = 0; k < SV_ACCEPTED; k++)
            own += of[g][k];
        h += (double)own / (double)n * entropy_of(of[g], SV_ACCEPTED);
    }
    return h;
}

static bool
find_entropy(struct sv_profile *p, const struct sv_observation *o, size_t n)
{
    histogram *by = calloc(1 + 2 * SV_BINS + SV_BINS * SV_BINS, sizeof *by);
    if (by == NULL)
        return false;
    histogram *all = by, *by_s = all + 1, *by_a = by_s + SV_BINS, *by_both = by_a + SV_BINS;
    for (size_t i = 0; i < n; i++) {
        const uint32_t s = bin_of(p->s_edge, p->n_s, (double)o[i].s), a = bin_of(p->a_edge, p->n_a, (double)o[i].a);
        uint32_t k = (uint32_t)((double)o[i].accepted * SV_ACCEPTED);
        k = k < SV_ACCEPTED ? k : SV_ACCEPTED - 1;
        all[0][k]++;
        by_s[s][k]++;
        by_a[a][k]++;
        by_both[s * SV_BINS + a][k]++;
    }
    p->entropy = (struct sv_entropy){.h = entropy_given(all, 1, n),
                                     .given_s = entropy_given(by_s, SV_BINS, n),
                                     .given_a = entropy_given(by_a, SV_BINS, n),
                                     .given_both = entropy_given(by_both, SV_BINS * SV_BINS, n)};
    free(by);
    return true;
}

static bool
in_bounds(const struct sv_observation *o)
{
    return o->s >= 0 && o->s <= 1 && o->a >= 0 && o->a <= 1 && o->accepted >= 0 && o->accepted <= 1;
}

bool
sv_profile_make(struct sv_profile *p, uint32_t n_s, uint32_t n_a, const struct sv_observation *o, size_t n,
                struct err *err)
{
    if (n == 0)
        return err_set(err, ERR_WORK, "a profile needs observations: give more prompts");
    if (n_s < 1 || n_s > SV_BINS || n_a < 1 || n_a > SV_BINS)
        return err_set(err, ERR_USAGE, "a profile has 1 to %d bins of each kind", SV_BINS);
    float *values = malloc(n * sizeof *values);
    if (values == NULL)
        return err_set(err, ERR_WORK, "out of memory for a profile of %zu observations", n);
    for (size_t i = 0; i < n; i++) {
        if (!in_bounds(&o[i])) {
            free(values);
            return err_set(err, ERR_WORK, "observation %zu of a profile is not within [0, 1]", i);
        }
        values[i] = o[i].s;
    }
    p->n_s = find_edges(values, n, n_s, p->s_edge);
    for (size_t i = 0; i < n; i++)
        values[i] = o[i].a;
    p->n_a = find_edges(values, n, n_a, p->a_edge);
    free(values);
    memset(p->count, 0, sizeof p->count);
    memset(p->sum, 0, sizeof p->sum);
    for (size_t i = 0; i < n; i++) {
        const uint32_t s = bin_of(p->s_edge, p->n_s, (double)o[i].s), a = bin_of(p->a_edge, p->n_a, (double)o[i].a);
        p->count[s][a]++;
        p->sum[s][a] += (double)o[i].accepted;
    }
    return find_entropy(p, o, n) || err_set(err, ERR_WORK, "out of memory for a profile");
}

uint32_t
sv_profile_cell(const struct sv_profile *p, double s, double a)
{
    return bin_of(p->s_edge, p->n_s, s) * p->n_a + bin_of(p->a_edge, p->n_a, a);
}

double
sv_profile_accepted(const struct sv_profile *p, double s, double a)
{
    const uint32_t row = bin_of(p->s_edge, p->n_s, s), column = bin_of(p->a_edge, p->n_a, a);
    if (p->count[row][column] > 0)
        return p->sum[row][column] / (double)p->count[row][column];
    double row_sum = 0, row_count = 0, column_sum = 0, column_count = 0;
    for (uint32_t i = 0; i < p->n_a; i++) {
        row_sum += p->sum[row][i];
        row_count += (double)p->count[row][i];
    }
    for (uint32_t i = 0; i < p->n_s; i++) {
        column_sum += p->sum[i][column];
        column_count += (double)p->count[i][column];
    }
    if (!(row_count > 0) || !(column_count > 0))
        return row_count > 0 ? row_sum / row_count : column_count > 0 ? column_sum / column_count : 0;
    return (row_sum / row_count + column_sum / column_count) / 2;
}

double
sv_information_gain(const struct sv_entropy *e)
{
    return e->h > 0 ? (e->h - e->given_both) / e->h : 0;
}

uint64_t
sv_profile_observations(const struct sv_profile *p)
{
    uint64_t n = 0;
    for (uint32_t s = 0; s < p->n_s; s++)
        for (uint32_t a = 0; a < p->n_a; a++)
            n += p->count[s][a];
    return n;
}
