#include "engine/measure/estimate.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

void
ratio_add(struct ratio_sums *s, double y, double x)
{
    s->n++;
    s->y += y;
    s->x += x;
    s->yy += y * y;
    s->xy += x * y;
    s->xx += x * x;
}

struct estimate
ratio_estimate(const struct ratio_sums *s)
{
    struct estimate e = {.value = NAN, .se = NAN, .n = s->n};
    if (!(s->x > 0))
        return e;
    e.value = s->y / s->x;
    if (s->n < 2)
        return e;
    const double n = (double)s->n, mean = s->x / n;
    const double residuals = fmax(s->yy - 2 * e.value * s->xy + e.value * e.value * s->xx, 0);
    e.se = sqrt(residuals / (n * (n - 1))) / mean;
    return e;
}

struct estimate
estimate_quotient(struct estimate a, struct estimate b)
{
    struct estimate q = {.value = NAN, .se = NAN, .n = a.n < b.n ? a.n : b.n};
    if (!(b.value > 0))
        return q;
    q.value = a.value / b.value;
    q.se = hypot(a.se, q.value * b.se) / b.value;
    return q;
}

struct estimate
estimate_times(struct estimate e, double factor)
{
    e.value *= factor;
    e.se *= fabs(factor);
    return e;
}

double
estimate_reach(double degrees)
{
    const double z = 1.959963984540054, v = floor(degrees);
    if (!(v >= 1))
        return INFINITY;
    if (v < 2)
        return 12.706204736;
    if (v < 3)
        return 4.302652730;
    /* Cornish and Fisher's expansion of Student's t around the normal quantile. */
    const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    const double t = z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
                     (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v);
    return fmax(t, 2);
}

/* Hill 1970, Algorithm 396, Communications of the ACM 13. */
double
estimate_quantile(double level, double degrees)
{
    const double n = degrees, half_pi = 1.5707963267948966;
    if (n < 2)
        return 1 / tan(level * half_pi);
    if (n < 3)
        return sqrt(2 / (level * (2 - level)) - 2);
    const double a = 1 / (n - 0.5), b = 48 / (a * a);
    double c = ((20700 * a / b - 98) * a - 16) * a + 96.36;
    const double d = ((94.5 / (b + c) - 3) / b + 1) * sqrt(a * half_pi) * n;
    double y = pow(d * level, 2 / n);
    if (y > 0.05 + a) {
        /* The normal quantile of level / 2: Abramowitz and Stegun 26.2.23. */
        const double r = sqrt(-2 * log(level / 2));
        const double x =
            -(r - (2.515517 + r * (0.802853 + r * 0.010328)) / (1 + r * (1.432788 + r * (0.189269 + r * 0.001308))));
        y = x * x;
        if (n < 5)
            c += 0.3 * (n - 4.5) * (x + 0.6);
        c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c;
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x;
        y = expm1(a * y * y);
    } else {
        y = ((1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y - 1) * (n + 1) /
                (n + 2) +
            1 / y;
    }
    return sqrt(n * y);
}

struct comparison
estimate_compare(struct estimate ratio)
{
    return estimate_compare_of(ratio, 1);
}

struct comparison
estimate_compare_of(struct estimate ratio, uint32_t all)
{
    struct comparison c = {.value = ratio.value, .low = NAN, .high = NAN, .n = ratio.n, .verdict = DIFFERENCE_UNKNOWN};
    if (!(ratio.value > 0) || ratio.n < 2 || isnan(ratio.se))
        return c;
    const double rounding = 1e-9; /* differences within rounding errors of the sums count as 0 */
    const double degrees = (double)ratio.n - 1,
                 t = all > 1 ? estimate_quantile(0.05 / all, degrees) : estimate_reach(degrees);
    const double reach = exp(t * ratio.se / ratio.value + rounding);
    c.low = ratio.value / reach;
    c.high = ratio.value * reach;
    c.verdict = c.low > 1 ? DIFFERENCE_MORE : c.high < 1 ? DIFFERENCE_LESS : DIFFERENCE_NOISE;
    return c;
}

struct estimate
passes_ratio(const struct pass *x, const struct pass *other, uint32_t n)
{
    struct ratio_sums sums = {0};
    for (uint32_t p = 0; p < n; p++)
        if (x[p].tokens > 0 && other[p].tokens > 0)
            ratio_add(&sums, other[p].s * x[p].tokens / other[p].tokens, x[p].s);
    return ratio_estimate(&sums);
}

struct estimate
passes_speed(const struct pass *x, uint32_t n)
{
    struct ratio_sums sums = {0};
    for (uint32_t p = 0; p < n; p++)
        ratio_add(&sums, x[p].tokens, x[p].s);
    return ratio_estimate(&sums);
}

const char *
comparison_text(struct comparison c, char *out, size_t n)
{
    const bool more = c.verdict == DIFFERENCE_MORE;
    const double value = more ? c.value : 1 / c.value, low = more ? c.low : 1 / c.high,
                 high = more ? c.high : 1 / c.low;
    out[0] = '\0';
    if (c.verdict == DIFFERENCE_NOISE)
        snprintf(out, n, "no clear difference: %+.0f to %+.0f%%", (c.low - 1) * 100, (c.high - 1) * 100);
    else if (c.verdict != DIFFERENCE_UNKNOWN && value >= 10)
        snprintf(out, n, "×%.0f as fast (×%.0f to ×%.0f)", value, low, high);
    else if (c.verdict != DIFFERENCE_UNKNOWN)
        snprintf(out, n, "%.0f%% faster (%.0f to %.0f%%)", (value - 1) * 100, (low - 1) * 100, (high - 1) * 100);
    return out;
}

/* Degrees of freedom of the sum of two variances (Welch and Satterthwaite). */
static double
degrees_of(struct estimate a, struct estimate b)
{
    const double va = a.se * a.se, vb = b.se * b.se;
    const double below = va * va / (double)(a.n - 1) + vb * vb / (double)(b.n - 1);
    return below > 0 ? (va + vb) * (va + vb) / below : (double)(a.n < b.n ? a.n : b.n) - 1;
}

struct difference
estimate_difference(struct estimate a, struct estimate b)
{
    struct difference d = {.value = a.value - b.value, .se = NAN, .verdict = DIFFERENCE_UNKNOWN};
    if (isnan(d.value) || a.n < 2 || b.n < 2 || isnan(a.se) || isnan(b.se))
        return d;
    d.se = hypot(a.se, b.se);
    if (fabs(d.value) <= estimate_reach(degrees_of(a, b)) * d.se)
        d.verdict = DIFFERENCE_NOISE;
    else
        d.verdict = d.value > 0 ? DIFFERENCE_MORE : DIFFERENCE_LESS;
    return d;
}

/* Adds the tokens that both sides have as a sample. Further tokens of one side belong to the next segment. */
static void
end_sample(struct paired *p)
{
    const double tokens = p->side[0].tokens < p->side[1].tokens ? p->side[0].tokens : p->side[1].tokens;
    double seconds[2];
    for (int i = 0; i < 2; i++) {
        const double beyond = p->side[i].tokens - tokens;
        const double rest = beyond > 0 ? p->side[i].last_seconds * beyond / p->side[i].last_tokens : 0;
        seconds[i] = p->side[i].seconds - rest;
        p->side[i].tokens = beyond;
        p->side[i].seconds = rest;
    }
    p->from = p->to;
    p->to += tokens;
    p->y = seconds[0];
    p->x = seconds[1];
}

bool
paired_add(struct paired *p, uint32_t side, const struct round_event *r)
{
    p->side[side].last_tokens = r->emitted;
    p->side[side].last_seconds = ((double)r->draft_us + (double)r->verify_us) * 1e-6;
    p->side[side].tokens += p->side[side].last_tokens;
    p->side[side].seconds += p->side[side].last_seconds;
    const double a = p->side[0].tokens, b = p->side[1].tokens, both = a < b ? a : b;
    if (both < (a != b ? PAIRED_MOST : p->partial ? 1 : PAIRED_TOKENS))
        return false;
    const bool counts = !p->partial;
    end_sample(p);
    p->partial = false;
    if (counts)
        ratio_add(&p->seconds, p->y, p->x);
    return counts;
}

void
paired_restart(struct paired *p)
{
    p->seconds = (struct ratio_sums){0};
    p->partial = p->side[0].tokens > 0 || p->side[1].tokens > 0;
}

struct comparison
paired_comparison(const struct paired *p)
{
    return estimate_compare(ratio_estimate(&p->seconds));
}

void
sliced_round(struct sliced *s, double tokens, double seconds)
{
    s->tokens += tokens;
    s->seconds += seconds;
}

void
sliced_slice(struct sliced *s, double tokens_per_s)
{
    if (tokens_per_s > 0 && s->seconds > 0)
        ratio_add(&s->speedup, s->tokens / tokens_per_s, s->seconds);
    s->tokens = s->seconds = 0;
}

struct estimate
sliced_speedup(const struct sliced *s)
{
    return s->speedup.n >= SLICES_LEAST ? ratio_estimate(&s->speedup) : (struct estimate){.value = NAN, .se = NAN};
}
