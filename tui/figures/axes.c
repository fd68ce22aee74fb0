#include "tui/figures/axes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- scales ---- */

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

/* ---- panels ---- */

struct panel_area
axes_panel(double x, double y, double width, double height, struct axis across, struct axis up)
{
    return (struct panel_area){
        .x = x,
        .y = y,
        .width = width,
        .height = height,
        .horizontal = across,
        .vertical = up,
        .across = {.low = across.range.low, .high = across.range.high, .from = x, .to = x + width},
        .up = {.low = up.range.low, .high = up.range.high, .from = y + height, .to = y},
    };
}

static void
draw_up(struct drawing *d, const struct panel_area *p)
{
    double ticks[SCALE_TICKS], step, widest = 0;
    const int n =
        scale_ticks(p->up.low, p->up.high, (int)fmax(3, fmin(6, p->height / 12)), p->vertical.whole, ticks, &step);
    const struct lettering number = LETTERS(SIZE_TICK, INK_LIGHT, .anchor = ANCHOR_RIGHT);
    for (int i = 0; i < n; i++) {
        char text[32];
        const double y = scale_at(&p->up, ticks[i]);
        if (!p->plain)
            drawing_line(d, p->x, y, p->x + p->width, y, STROKE(INK_FAINT, .line = 0.25));
        drawing_line(d, p->x - 2, y, p->x, y, STROKE(INK_LIGHT));
        drawing_text(d, p->x - 3.5, y + SIZE_TICK * 0.36, number, scale_label(ticks[i], step, text, sizeof text));
        widest = fmax(widest, lettering_width(&number, text));
    }
    if (p->vertical.label != NULL)
        drawing_text(d, p->x - 3.5 - widest - 4, p->y + p->height / 2,
                     LETTERS(SIZE_LABEL, INK, .anchor = ANCHOR_MIDDLE, .upwards = true, .room = p->height + 16),
                     p->vertical.label);
}

static void
draw_across(struct drawing *d, const struct panel_area *p, bool numbers)
{
    double ticks[SCALE_TICKS], step;
    const double y = p->y + p->height;
    const int n =
        scale_ticks(p->across.low, p->across.high, (int)fmax(2, p->width / 30), p->horizontal.whole, ticks, &step);
    for (int i = 0; i < n; i++) {
        char text[32];
        const double x = scale_at(&p->across, ticks[i]);
        drawing_line(d, x, y, x, y + 2, STROKE(INK_LIGHT));
        if (numbers)
            drawing_text(d, x, y + 3 + SIZE_TICK, LETTERS(SIZE_TICK, INK_LIGHT, .anchor = ANCHOR_MIDDLE),
                         scale_label(ticks[i], step, text, sizeof text));
    }
    if (numbers && p->horizontal.label != NULL)
        drawing_text(d, p->x + p->width / 2, y + 6 + SIZE_TICK + SIZE_LABEL,
                     LETTERS(SIZE_LABEL, INK, .anchor = ANCHOR_MIDDLE, .room = p->width + 30), p->horizontal.label);
}

void
axes_draw(struct drawing *d, const struct panel_area *p, bool numbers)
{
    draw_up(d, p);
    draw_across(d, p, numbers);
    drawing_rect(d, p->x, p->y, p->width, p->height, STROKE(INK_LIGHT));
}

void
axes_title(struct drawing *d, const struct panel_area *p, const char *title)
{
    drawing_text(d, p->x, p->y - 3.5, LETTERS(SIZE_TITLE, INK, .bold = true, .room = p->width), title);
}

static double
within(double value, double a, double b)
{
    return fmax(fmin(a, b), fmin(fmax(a, b), value));
}

static struct point
place(const struct panel_area *p, double x, double y)
{
    return (struct point){within(scale_at(&p->across, x), p->across.from, p->across.to),
                          within(scale_at(&p->up, y), p->up.from, p->up.to)};
}

void
axes_line(struct drawing *d, const struct panel_area *p, const double *x, const double *y, size_t n, struct pen pen)
{
    struct point *points = malloc((n + 1) * sizeof *points);
    size_t used = 0;
    if (points == NULL)
        d->no_memory = true;
    for (size_t i = 0; i <= n && points != NULL; i++) {
        if (i < n && !isnan(y[i])) {
            points[used++] = place(p, x[i], y[i]);
            continue;
        }
        if (used == 1) /* a value alone between gaps */
            drawing_circle(d, points[0].x, points[0].y, pen.line > 0 ? pen.line : LINE_FINE, FILL(pen.stroke));
        drawing_path(d, points, used, false, pen);
        used = 0;
    }
    free(points);
}

/* The corners of the steps from value `from` on, as long as there are values; two a value. Returns the first without. */
static size_t
steps_from(const struct panel_area *p, const double *x, const double *y, size_t from, size_t n, double end,
           struct point *out)
{
    size_t i = from;
    for (; i < n && !isnan(y[i]); i++) {
        out[2 * (i - from)] = place(p, x[i], y[i]);
        out[2 * (i - from) + 1] = place(p, i + 1 < n ? x[i + 1] : end, y[i]);
    }
    return i;
}

void
axes_steps(struct drawing *d, const struct panel_area *p, const double *x, const double *y, size_t n, double end,
           struct pen pen)
{
    struct point *points = malloc((2 * n + 1) * sizeof *points);
    if (points == NULL)
        d->no_memory = true;
    for (size_t from = 0, to; from < n && points != NULL; from = to + 1) {
        to = steps_from(p, x, y, from, n, end, points);
        drawing_path(d, points, 2 * (to - from), false, pen);
    }
    free(points);
}

void
axes_band(struct drawing *d, const struct panel_area *p, const double *x, const double *a, const double *b, size_t n,
          double end, struct pen pen)
{
    struct point *points = malloc((6 * n + 1) * sizeof *points), *back = points + 4 * n;
    if (points == NULL)
        d->no_memory = true;
    for (size_t from = 0, to; from < n && points != NULL; from = to + 1) {
        to = steps_from(p, x, a, from, n, end, points);
        const size_t both = steps_from(p, x, b, from, n, end, back);
        to = both < to ? both : to;
        const size_t k = 2 * (to - from);
        for (size_t i = 0; i < k; i++)
            points[k + i] = back[k - 1 - i];
        drawing_path(d, points, 2 * k, true, pen);
    }
    free(points);
}

double
ramp_legend(struct drawing *d, double x, double y, double width, const char *title, const char *low, const char *high)
{
    const struct lettering small = LETTERS(SIZE_TICK, INK_LIGHT);
    enum { PIECES = 32 };
    const double first = x;
    if (title[0] != '\0') {
        drawing_text(d, x, y + SIZE_TICK * 0.85, LETTERS(SIZE_TICK, INK), title);
        x += lettering_width(&small, title) + 4;
    }
    drawing_text(d, x, y + SIZE_TICK * 0.85, small, low);
    x += lettering_width(&small, low) + 2;
    for (int i = 0; i < PIECES; i++) /* each reaches under the next: no hairlines between them */
        drawing_rect(d, x + i * width / PIECES, y, width / PIECES * (i + 1 < PIECES ? 1.5 : 1), SIZE_TICK,
                     FILL(ramp((i + 0.5) / PIECES)));
    drawing_rect(d, x, y, width, SIZE_TICK, STROKE(INK_LIGHT, .line = 0.3));
    x += width + 2;
    drawing_text(d, x, y + SIZE_TICK * 0.85, small, high);
    return x + lettering_width(&small, high) - first;
}
