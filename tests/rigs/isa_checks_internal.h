/* What the files of isa_checks.h share. */
#ifndef TESTS_RIGS_ISA_CHECKS_INTERNAL_H
#define TESTS_RIGS_ISA_CHECKS_INTERNAL_H

#include <math.h>
#include <stdio.h>

#include "tests/rigs/isa_checks.h"

#define MOST_COLS 800

struct checks {
    const struct cpu_isa *isa;
    uint64_t state;
    int failures;
};

static inline uint32_t
next(struct checks *c)
{
    c->state = c->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(c->state >> 33);
}

static inline size_t
between(struct checks *c, size_t low, size_t high)
{
    return low + next(c) % (high - low + 1);
}

static inline float
real(struct checks *c)
{
    return (float)next(c) / 0x1p30f - 1.0f;
}

static inline void
fill(struct checks *c, float *x, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++)
        x[i] = real(c) * scale;
}

/* Of sums, relative to their terms: `sizes` are the sums of their absolute values. Terms may cancel, errors don't. */
static inline double
distance_of_sums(const float *a, const double *b, const double *sizes, size_t n)
{
    double diff = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        diff += (a[i] - b[i]) * (a[i] - b[i]);
        norm += sizes[i] * sizes[i];
    }
    return norm > 0 ? sqrt(diff / norm) : sqrt(diff);
}

static inline void
expect(struct checks *c, bool ok, const char *what, double value, double bound)
{
    if (ok)
        return;
    c->failures++;
    printf("%s: %s: %g, bound %g\n", c->isa->name, what, value, bound);
}

void isa_check_rows(struct checks *);
void isa_check_attention(struct checks *);
void isa_check_softmax(struct checks *);

#endif
