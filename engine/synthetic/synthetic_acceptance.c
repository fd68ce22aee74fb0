#include "engine/synthetic/synthetic_acceptance.h"

#include <math.h>

/* P(standard normal > x) */
static double
above(double x)
{
    return 0.5 * erfc(x * 0.70710678118654752);
}

double
synthetic_quantile(double p)
{
    double low = -40, high = 40;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (above(middle) > p)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static double
density(double x)
{
    return 0.39894228040143268 * exp(-0.5 * x * x);
}

/* With (x, y) the two logits of one token, r their correlation and s = sqrt(1 - r^2), the probability is
 *   V * integral of f(x, y) * P(X <= x and Y <= y)^(V-1) dx dy,
 * where f(x, y) = density(x) * density((y - r x) / s) / s, and the power is exp((V-1) log(1 - outside)) with
 *   outside = P(X > x) + P(Y > y) - P(X > x and Y > y).
 * The last term, for one y, is an integral over x that grows by a strip as x descends, so a grid costs two functions a
 * point. Trapezes on smooth functions that vanish at both ends: a step of s / 2 is plenty. */
double
synthetic_agreement(uint32_t vocab, double tangent)
{
    const double r = 1 / sqrt(1 + tangent * tangent), s = tangent * r, others = vocab - 1.0;
    const double step = fmin(0.05, s / 2), none = 1e-9;
    double low = -8, high = 0;
    while (others * above(low) > 45 && above(low + step) > 0) /* exp(-45): the largest is above */
        low += step;
    while (vocab * above(high) > none)
        high += step;
    const int steps = (int)ceil((high - low) / step);
    double sum = 0;
    for (int j = 0; j < steps; j++) {
        const double y = low + j * step, y_above = above(y);
        double both = 0, strip_before = 0; /* P(X > x and Y > y) */
        for (int i = 0; i < steps; i++) {
            const double x = high - i * step, z = (y - r * x) / s;
            if (z > 8 && x < y) /* and lower x only raise it: nothing comes any more */
                break;
            const double f = density(x), strip = f * above(z);
            both += 0.5 * (strip + strip_before) * step;
            strip_before = strip;
            const double outside = above(x) + y_above - both;
            if (fabs(z) < 8 && outside < 1)
                sum += f * density(z) / s * exp(others * log1p(-outside));
        }
    }
    return vocab * sum * step * step;
}

double
synthetic_tangent(uint32_t vocab, double acceptance)
{
    double low = 0.004, high = 4;
    while (synthetic_agreement(vocab, 2 * low) > acceptance && 2 * low < high)
        low *= 2; /* from below in steps: a small tangent's grid is fine, and half of it is not needed */
    high = fmin(high, 2 * low);
    for (int i = 0; i < 12; i++) {
        const double middle = sqrt(low * high);
        if (synthetic_agreement(vocab, middle) > acceptance)
            low = middle;
        else
            high = middle;
    }
    int exponent;
    const double fraction = frexp(sqrt(low * high), &exponent);
    return ldexp(nearbyint(ldexp(fraction, 10)), exponent - 10);
}
