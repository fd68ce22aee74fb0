#include "policies/sv_goodput.h"

#include <math.h>
#include <string.h>

#include "policies/chain.h"

/* ---- how many drafts are verified ---- */

double
goodput_expected(const double *p, uint32_t gamma)
{
    double expected = 0, all = 1;
    for (uint32_t i = 0; i < gamma; i++)
        expected += all *= p[i];
    return expected;
}

void
goodput_allocate(const double *const *p, const uint32_t *most, uint32_t n, const double *latency, bool past_dips,
                 uint32_t *gamma)
{
    double next[GOODPUT_SEQUENCES], tokens = n; /* next: gain of a sequence's next draft; tokens: expected in all */
    double highest = tokens / latency[0];
    uint32_t drafts = 0, best_gamma[GOODPUT_SEQUENCES] = {0};
    for (uint32_t i = 0; i < n; i++) {
        gamma[i] = 0;
        next[i] = most[i] > 0 ? p[i][0] : -1;
    }
    for (;;) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < n; i++)
            if (next[i] > next[best])
                best = i;
        if (next[best] < 0)
            break;
        tokens += next[best];
        drafts++;
        gamma[best]++;
        const double here = tokens / latency[drafts];
        if (here > highest) {
            highest = here;
            memcpy(best_gamma, gamma, n * sizeof *gamma);
        } else if (!past_dips) {
            break;
        }
        next[best] = gamma[best] < most[best] ? next[best] * p[best][gamma[best]] : -1;
    }
    memcpy(gamma, best_gamma, n * sizeof *gamma);
}

void
goodput_monotone(double *latency, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        double mean = latency[i];
        /* start of the block that ends at i; its mean must not be below that of the block before it */
        uint32_t first = i;
        while (first > 0 && latency[first - 1] > mean) {
            const double before = latency[first - 1];
            uint32_t start = first - 1;
            while (start > 0 && latency[start - 1] == before)
                start--;
            mean = (mean * (i + 1 - first) + before * (first - start)) / (i + 1 - start);
            first = start;
        }
        for (uint32_t k = first; k <= i; k++)
            latency[k] = mean;
    }
}

/* ---- latency ---- */

enum {
    PASSES = 3, /* over all numbers of rows; the least time of each number counts */
    FEW = 3     /* verifications by rounds that count, at least */
};

/* The number of rows to measure after n: all up to 8, then a quarter more. */
static uint32_t
after(uint32_t n, uint32_t rows)
{
    const uint32_t next = n < 8 ? n + 1 : n + n / 4;
    return n < rows && next > rows ? rows : next;
}

/* The content of the rows does not matter. */
static bool
verify(struct round *r, uint32_t n, double *ms)
{
    token_t tokens[SV_ROWS];
    struct prediction predictions[SV_ROWS];
    const uint32_t length = context_length(r->ctx, r->seq), before = length < n ? 0 : length - n;
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = r->tokens[r->n_tokens - 1];
    const double since = round_learning_ms(r);
    round_learning_begin(r);
    const bool ok = chain_rerun(r, before, tokens, n, r->layers, NULL, predictions);
    round_learning_end(r);
    *ms = round_learning_ms(r) - since;
    return ok;
}

/* Interpolates between the measured numbers of rows up to `last`, and extrapolates to `rows`. */
static void
fill(double *ms, uint32_t last, uint32_t rows)
{
    for (uint32_t n = 1, next; n < last; n = next) {
        next = after(n, last);
        for (uint32_t i = n + 1; i < next; i++)
            ms[i - 1] = ms[n - 1] + (ms[next - 1] - ms[n - 1]) * (i - n) / (next - n);
    }
    const double row = last > 1 ? (ms[last - 1] - ms[0]) / (last - 1) : ms[0];
    for (uint32_t i = last; i < rows; i++)
        ms[i] = ms[i - 1] + row;
}

bool
sv_latency_measure(struct sv_latency *l, struct round *r, uint32_t rows, uint32_t room)
{
    double *ms = l->verify_ms;
    const uint32_t last = rows < room ? rows : room;
    l->rows = 0;
    for (uint32_t i = 0; i < last; i++)
        ms[i] = INFINITY;
    for (int pass = 0; pass < PASSES; pass++)
        for (uint32_t n = 1; n <= last; n = after(n, last)) {
            double taken;
            if (!verify(r, n, &taken))
                return false;
            ms[n - 1] = fmin(ms[n - 1], taken);
        }
    fill(ms, last, rows);
    memcpy(l->first_ms, ms, rows * sizeof *ms);
    memset(l->verified, 0, sizeof l->verified);
    goodput_monotone(ms, rows);
    l->rows = rows;
    return true;
}

/* The median of n values, at most SV_ROWS; of an even number the lower middle value. */
static double
median(const double *values, uint32_t n)
{
    double sorted[SV_ROWS];
    for (uint32_t i = 0, at; i < n; i++) {
        for (at = i; at > 0 && sorted[at - 1] > values[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = values[i];
    }
    return sorted[(n - 1) / 2];
}

void
sv_latency_verified(struct sv_latency *l, uint32_t rows, double ms)
{
    double change[SV_ROWS];
    uint32_t n = 0;
    if (rows < 1 || rows > l->rows || !(ms > 0))
        return;
    l->recent_ms[rows - 1][l->verified[rows - 1]++ % SV_RECENT] = ms;
    for (uint32_t i = 0; i < l->rows; i++) {
        const uint32_t known = l->verified[i] < SV_RECENT ? l->verified[i] : SV_RECENT;
        l->verify_ms[i] = known >= FEW ? median(l->recent_ms[i], known) : 0;
        if (known >= FEW)
            change[n++] = l->verify_ms[i] / l->first_ms[i];
    }
    const double common = n > 0 ? median(change, n) : 1;
    for (uint32_t i = 0; i < l->rows; i++)
        if (!(l->verify_ms[i] > 0))
            l->verify_ms[i] = l->first_ms[i] * common;
    goodput_monotone(l->verify_ms, l->rows);
}

void
sv_latency_drafted(struct sv_latency *l, uint32_t window, uint32_t sequences, double ms)
{
    if (l->window != window)
        for (uint32_t i = 0; i <= SV_ROWS; i++)
            l->draft_ms[i] = 0;
    l->window = window;
    double *least = &l->draft_ms[sequences];
    *least = *least > 0 ? fmin(*least, ms) : ms;
}

double
sv_latency_of(const struct sv_latency *l, uint32_t window, uint32_t sequences, uint32_t rows)
{
    const uint32_t whole = rows / SV_ROWS, rest = rows % SV_ROWS, most = whole > 0 ? SV_ROWS : rest;
    if (l->rows < most || l->window != window || !(l->draft_ms[sequences] > 0))
        return (double)NAN;
    return l->draft_ms[sequences] + (whole > 0 ? whole * l->verify_ms[SV_ROWS - 1] : 0) +
           (rest > 0 ? l->verify_ms[rest - 1] : 0);
}
