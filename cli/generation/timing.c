#include "cli/generation/timing.h"

#include <stdlib.h>

#include "engine/base/clock.h"

double
now_us(void)
{
    return (double)clock_ns() * 1e-3;
}

static int
ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double
median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, ascending);
    return v[n / 2];
}
