#include "tui/figures/scale.h"

#include <math.h>
#include <stdio.h>

double
scale_at(const struct scale *s, double value)
{
    if (s->high - s->low == 0)
        return (s->from + s->to) / 2;
    return s->from + (value - s->low) / (s->high - s->low) * (s->to - s->from);
}

void
range_add(struct range *r, double value)
{
    if (!isfinite(value))
        return;
    if (r->low > r->high)
        r->low = r->high = value;
    r->low = fmin(r->low, value);
    r->high = fmax(r->high, value);
}

struct range
range_shown(struct range r, bool share)
{
    if (r.low > r.high)
        return (struct range){0, 1};
    if (share && r.low >= 0 && r.high <= 1)
        return (struct range){0, 1.04};
    if (r.low > 0 && r.low < r.high * 0.6)
        r.low = 0;
    if (r.low == r.high) {
        const double room = r.low == 0 ? 1 : fabs(r.low) * 0.1;
        r.low -= r.low == 0 ? 0 : room;
        r.high += room;
    }
    const double air = (r.high - r.low) * 0.05; /* so that no line lies on the frame */
    r.high += air;
    if (r.low != 0)
        r.low -= air;
    return r;
}

int
scale_ticks(double low, double high, int most, bool whole, double ticks[SCALE_TICKS], double *step)
{
    static const double round_numbers[] = {1, 2, 5, 10, 20};
    most = most > SCALE_TICKS ? SCALE_TICKS : most;
    *step = whole ? 1 : 0;
    if (!(high > low) || !isfinite(high - low) || most < 1)
        return 0;
    double power = pow(10, floor(log10((high - low) / most)));
    power = whole && power < 1 ? 1 : power;
    for (int i = 0; i < 5; i++) {
        *step = power * round_numbers[i];
        const double first = ceil(low / *step - 1e-9), last = floor(high / *step + 1e-9);
        const double n = last - first + 1;
        if (n > most)
            continue;
        for (int k = 0; k < (int)n; k++)
            ticks[k] = first + k == 0 ? 0 : (first + k) * *step;
        return (int)n;
    }
    return 0; /* never: ten times the power leave at most one too many */
}

char *
scale_label(double value, double step, char *out, size_t size)
{
    int decimals = 0;
    while (decimals < 9 && step < 0.999999) {
        step *= 10;
        decimals++;
    }
    snprintf(out, size, "%.*f", decimals, value == 0 ? 0.0 : value);
    return out;
}

char *
value_label(double value, char *out, size_t size)
{
    const double a = fabs(value);
    if (isnan(value))
        snprintf(out, size, "–");
    else
        snprintf(out, size, "%.*f",
                 value == rint(value) ? 0
                 : a < 1              ? 3
                 : a < 10             ? 2
                 : a < 100            ? 1
                                      : 0,
                 value == 0 ? 0.0 : value);
    return out;
}
