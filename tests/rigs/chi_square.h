/* Bounds of chi-square statistics. */
#pragma once

#include <math.h>

/* Returns the point above which the standard normal distribution has probability alpha. */
static inline double
normal_quantile(double alpha)
{
    double low = 0, high = 10;
    for (int i = 0; i < 100; i++) {
        const double mid = (low + high) / 2;
        if (0.5 * erfc(mid / sqrt(2)) > alpha)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* Returns the value that a statistic with df degrees of freedom exceeds with probability alpha, by Wilson and
 * Hilferty's approximation. */
static inline double
chi_square_limit(double df, double alpha)
{
    const double k = 2 / (9 * df);
    return df * pow(1 - k + normal_quantile(alpha) * sqrt(k), 3);
}
