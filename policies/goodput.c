#include "policies/goodput.h"

#include <string.h>

double
goodput_expected(const double *p, uint32_t gamma)
{
    double expected = 0, all = 1;
    for (uint32_t i = 0; i < gamma; i++)
        expected += all *= p[i];
    return expected;
}

double
goodput(const double *p, uint32_t gamma, const double *latency)
{
    return (goodput_expected(p, gamma) + 1) / latency[gamma];
}

void
goodput_allocate(const double *const *p, const uint32_t *most, uint32_t n, const double *latency, bool past_dips,
                 uint32_t *gamma)
{
    double next[GOODPUT_SEQUENCES], tokens = n; /* what a sequence's next draft adds; expected in all */
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
        uint32_t first = i; /* of the block that ends at i, whose mean must not be below what is before it */
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
