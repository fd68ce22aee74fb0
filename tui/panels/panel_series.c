/* Charts of every policy's rounds, then of the series that the policy declares, beside each other if there is room. The
 * cursor is the selection that all panels share. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/panels/panel.h"

#define SERIES_WINDOW 1024 /* rounds on a chart at most */

/* The rounds on the x axis: value i belongs to round first + i and takes `scale` dots. */
struct series_axis {
    uint32_t first, rounds; /* rounds: number of values */
    int capacity, scale;    /* values that fit, dots of each */
};

struct chart { /* a line chart: a value for each round; NAN: none */
    char title[48];
    enum role role;
    float value[SERIES_WINDOW], value2[SERIES_WINDOW]; /* value2: of a band */
    bool band, whole;                                  /* whole: values are whole numbers */
    double y, x;                                       /* sums over the rounds; their quotient is the mean */
};

/* The charts of every policy, from its rounds: the speed of all sequences, and measures of the sequence in focus. */
enum derived { DERIVED_TOKENS_PER_S, DERIVED_TOKENS_PER_ROUND, DERIVED_ACCEPTANCE, DERIVED_DRAFTED, DERIVED_CHARTS };

/* ---- values ---- */

static void
clear(struct chart *chart)
{
    for (int i = 0; i < SERIES_WINDOW; i++)
        chart->value[i] = chart->value2[i] = NAN;
    chart->y = chart->x = 0;
}

/* Adds a round's value, or the two numbers whose quotient it is. */
static void
chart_add(struct chart *chart, uint32_t at, double y, double x)
{
    chart->value[at] = (float)(y / x);
    chart->y += y;
    chart->x += x;
}

static void
series_derived(struct chart *chart, const struct scope *s, enum derived what, const struct series_axis *axis)
{
    static const char *const titles[DERIVED_CHARTS] = {"tok/s", "tokens/round", "acceptance", "drafted"};
    clear(chart);
    snprintf(chart->title, sizeof chart->title, "%s%s", titles[what],
             what == DERIVED_TOKENS_PER_S && scope_is_batch(s) && scope_now(s)->versus == NULL ? " of all" : "");
    chart->band = false;
    chart->whole = what == DERIVED_TOKENS_PER_ROUND || what == DERIVED_DRAFTED;
    for (uint32_t i = 0; what == DERIVED_TOKENS_PER_S && i < axis->rounds; i++) {
        const struct scope_pace *pace = scope_round_pace(s, axis->first + i);
        if (pace != NULL)
            chart_add(chart, i, pace->emitted, pace->us * 1e-6);
    }
    for (uint32_t back = 0; back < scope_rounds(s); back++) {
        const struct scope_round *r = scope_round(s, back);
        if (!r->whole)
            continue;
        if (r->number < axis->first)
            break;
        if (r->number - axis->first >= axis->rounds)
            continue;
        const uint32_t at = r->number - axis->first;
        if (what == DERIVED_ACCEPTANCE && r->end.verified > 0)
            chart_add(chart, at, r->end.accepted, r->end.verified);
        else if (what == DERIVED_TOKENS_PER_ROUND)
            chart_add(chart, at, r->end.emitted, 1);
        else if (what == DERIVED_DRAFTED)
            chart_add(chart, at, r->end.drafted, 1);
    }
}

/* Fills a chart with the reported values; a value is valid until the next one. */
static void
series_reported(struct chart *chart, const struct scope_series *series, const struct series_axis *axis)
{
    clear(chart);
    snprintf(chart->title, sizeof chart->title, "%s", series->declared->title);
    chart->band = series->declared->form == SERIES_BAND;
    chart->whole = true;
    const uint64_t oldest = series->count > SCOPE_SERIES ? series->count - SCOPE_SERIES : 0;
    const struct scope_value *held = NULL;
    uint32_t dot = 0;
    for (uint64_t i = oldest; i <= series->count; i++) {
        const struct scope_value *v = i < series->count ? &series->ring[i % SCOPE_SERIES] : NULL;
        /* the last value is valid up to the round of the next one */
        const uint32_t round = v == NULL ? UINT32_MAX : v->round;
        while (dot < axis->rounds && axis->first + dot < round) {
            if (held != NULL) {
                if (isfinite(held->value))
                    chart_add(chart, dot, (double)held->value, 1);
                chart->value[dot] = held->value;
                chart->value2[dot] = held->value2;
            }
            dot++;
        }
        held = v;
        if (v != NULL && !isnan(v->value) && v->value != rintf(v->value))
            chart->whole = false;
    }
}

/* ---- line charts ---- */

#define SCALE_QUANTILE 0.95
#define SCALE_SEGMENT  3
#define SCALE_LEAST    16 /* least number of values with which a scale excludes any */

static int
by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Returns the end of the scale: the largest value, or the quantile if the largest value is SCALE_SEGMENT times as far
 * from the least one, so that a few large values do not flatten the chart. */
static double
robust_high(const struct chart *chart, uint32_t n)
{
    float value[2 * SERIES_WINDOW];
    size_t found = 0;
    for (uint32_t i = 0; i < n; i++)
        for (int k = 0; k < (chart->band ? 2 : 1); k++) {
            value[found] = k == 0 ? chart->value[i] : chart->value2[i];
            found += isfinite(value[found]) ? 1 : 0;
        }
    if (found == 0)
        return -INFINITY;
    qsort(value, found, sizeof *value, by_value);
    const double low = (double)value[0], most = (double)value[found - 1];
    const double high = (double)value[(size_t)(SCALE_QUANTILE * (double)(found - 1))];
    return found >= SCALE_LEAST && high > low && most - low > SCALE_SEGMENT * (high - low) ? high : most;
}

static bool
range_of(const struct chart *chart, uint32_t n, double *low, double *high)
{
    *low = INFINITY;
    *high = robust_high(chart, n);
    for (uint32_t i = 0; i < n; i++) {
        const float values[2] = {chart->value[i], chart->band ? chart->value2[i] : NAN};
        for (int k = 0; k < 2; k++)
            if (isfinite(values[k]))
                *low = fmin(*low, (double)values[k]);
    }
    if (!(*low <= *high))
        return false;
    /* shares have the scale [0, 1]; other scales begin at 0 if the values are near it */
    if (*low >= 0 && *high <= 1 && !chart->whole)
        *low = 0, *high = 1;
    else if (*low > 0 && *low < *high * 0.6)
        *low = 0;
    if (*high - *low < 1e-9) {
        *high += *high == 0 ? 1 : fabs(*high) * 0.1;
        *low -= *low == 0 ? 0 : fabs(*low) * 0.1;
    }
    return true;
}

static void
print_value(char *out, size_t size, double value, bool whole)
{
    if (isnan(value))
        snprintf(out, size, "–");
    else if (whole || value == 0 || fabs(value) >= 1000)
        snprintf(out, size, "%.0f", value);
    else
        snprintf(out, size, fabs(value) >= 100 ? "%.0f" : fabs(value) >= 10 ? "%.1f" : "%.2f", value);
}

#define LABEL 5 /* columns of the y labels */

/* Draws the labels of the scale's ends; if there is only one value, or the labels are equal, one label in its row. */
static void
draw_labels(const struct canvas *c, const struct chart *chart, int rows, uint32_t n, double low, double high)
{
    char top[24], bottom[24];
    double only = NAN;
    bool one = true;
    for (uint32_t i = 0; i < n && one; i++) {
        const double value = (double)chart->value[i];
        if (!isfinite(value))
            continue;
        one = isnan(only) || value == only;
        only = value;
    }
    one = one && !chart->band && !isnan(only);
    print_value(top, sizeof top, high, chart->whole);
    print_value(bottom, sizeof bottom, low, chart->whole);
    const bool share = low == 0 && high == 1 && !chart->whole; /* the scale of shares does not depend on the values */
    const bool single = one && !share;
    const double up = single ? (only - low) / (high - low) : 1;
    const int at = (4 * rows - 1 - (int)lrint(up * (4 * rows - 1))) / 4; /* the row that canvas_plot() uses */
    if (single)
        print_value(top, sizeof top, only, chart->whole);
    for (int y = 0; y < rows; y++) {
        const bool labelled = y == at || (!single && y == rows - 1 && rows > 1 && strcmp(top, bottom) != 0);
        canvas_text(c, 1 + y, LABEL, ROLE_DIM, labelled ? "┤" : "│");
        if (labelled)
            canvas_print(c, 1 + y, 0, ROLE_DIM, "%*s", LABEL, y == at ? top : bottom);
    }
}

/* Writes the value at the cursor, or the mean of the shown rounds, of a band its newest values. */
static void
title_value(const struct chart *chart, const struct series_axis *axis, int read, char *out, size_t n)
{
    char text[24], text2[24];
    int at = (int)axis->rounds - 1;
    while (at >= 0 && isnan(chart->value[at]))
        at--;
    at = read >= 0 && read < (int)axis->rounds ? read : at;
    const bool mean = read < 0 && !chart->band && chart->x > 0;
    print_value(text, sizeof text,
                mean      ? chart->y / chart->x
                : at >= 0 ? (double)chart->value[at]
                          : (double)NAN,
                chart->whole && !mean);
    print_value(text2, sizeof text2, at >= 0 ? (double)chart->value2[at] : (double)NAN, chart->whole);
    snprintf(out, n, "%s%s%s%s", mean && strncmp(chart->title, "mean ", 5) != 0 ? "mean " : "", text,
             chart->band ? " – " : "", chart->band ? text2 : "");
}

/* Draws a line chart on the whole canvas. read: index of the value in the title; -1: the title has the mean. */
static void
series_draw_chart(const struct canvas *c, const struct chart *chart, const struct series_axis *axis, int read)
{
    double low, high;
    char text[64];
    title_value(chart, axis, read, text, sizeof text); /* the title is shortened before the value */
    const int used = canvas_word(c, 0, 0, c->cols - text_width(text) - 1, chart->role, MARK_NONE, chart->title);
    canvas_text(c, 0, used + 1, ROLE_TITLE, text);
    const struct canvas plot = canvas_inside(c, 1, LABEL + 1, c->rows - 1, c->cols - LABEL - 1);
    if (plot.rows < 1 || plot.cols < 1 || !range_of(chart, axis->rounds, &low, &high))
        return;
    draw_labels(c, chart, plot.rows, axis->rounds, low, high);
    const int n = axis->capacity, cell = read * axis->scale / 2;
    const struct canvas part = canvas_inside(&plot, 0, 0, plot.rows, n * axis->scale / 2);
    canvas_plot(&part, chart->value, n, low, high, chart->role);
    if (chart->band)
        canvas_plot(&part, chart->value2, n, low, high, chart->role);
    for (uint32_t i = 0; i < axis->rounds; i++) /* larger than the scale */
        if ((double)chart->value[i] > high || (chart->band && (double)chart->value2[i] > high))
            canvas_text(&plot, 0, (int)i * axis->scale / 2, ROLE_WARN, "▲");
    if (read >= 0 && read < n)
        for (int y = 0; y < plot.rows; y++)
            canvas_under(&plot, y, cell, ROLE_CURSOR, "│");
}

/* ---- the other forms ---- */

/* values: of scope_round_values(); NULL: none. */
static void
series_draw_bars(const struct canvas *c, const struct scope_series *series, const float *values, enum role role)
{
    static const char *const eighths[8] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇"};
    const int n = values != NULL ? (int)series->used : 0, rows = c->rows - 1, cols = c->cols - LABEL - 1;
    double high = 0, best = -INFINITY;
    int best_at = -1;
    for (int i = 0; i < n; i++) {
        if (!isfinite(values[i]))
            continue;
        high = fmax(high, (double)values[i]);
        if ((double)values[i] > best) {
            best = (double)values[i];
            best_at = i;
        }
    }
    char text[24], most[48] = "";
    print_value(text, sizeof text, best_at >= 0 ? best : (double)NAN, false);
    if (best_at >= 0)
        snprintf(most, sizeof most, "most %s at %d", text, best_at);
    const int used = canvas_word(c, 0, 0, c->cols - text_width(most) - 1, role, MARK_NONE, series->declared->title);
    canvas_text(c, 0, used + 1, ROLE_TITLE, most);
    if (rows < 1 || cols < 1 || n == 0 || !(high > 0))
        return;
    print_value(text, sizeof text, high, false);
    canvas_print(c, 1, 0, ROLE_DIM, "%*s", LABEL, text);
    const int wide = cols / n > 3 ? 3 : cols / n < 1 ? 1 : cols / n;
    for (int i = 0; i < n && i * wide < cols; i++) {
        const double filled = isfinite(values[i]) ? fmax((double)values[i], 0) / high * rows : 0;
        for (int y = 0; y < rows; y++) {
            const double here = filled - (rows - 1 - y);
            const char *glyph = here >= 1 ? "█" : here > 0 ? eighths[(int)(here * 8)] : " ";
            for (int k = 0; k < (wide > 1 ? wide - 1 : 1); k++)
                canvas_text(c, 1 + y, LABEL + 1 + i * wide + k, i == best_at ? ROLE_OK : role, glyph);
        }
    }
}

/* Draws a STRIP or a GRID. */
static void
series_draw_strip(const struct canvas *c, const struct scope_series *series, const float *values)
{
    const int rows = series->declared->rows, cols = series->declared->cols;
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; values != NULL && i < rows * cols; i++)
        if (isfinite(values[i])) {
            low = fmin(low, (double)values[i]);
            high = fmax(high, (double)values[i]);
        }
    if (low >= 0 && high <= 1)
        low = 0, high = 1;
    char from[24], to[24];
    print_value(from, sizeof from, low <= high ? low : (double)NAN, false);
    print_value(to, sizeof to, low <= high ? high : (double)NAN, false);
    char scale[80];
    snprintf(scale, sizeof scale, "%s ▁▂▃▄▅▆▇█ %s", from, to);
    const int used =
        canvas_word(c, 0, 0, c->cols - text_width(scale) - 2, ROLE_TITLE, MARK_NONE, series->declared->title);
    canvas_text(c, 0, used + 2, ROLE_TITLE, scale);
    const int lines = c->rows - 1;
    if (lines < 1 || !(low <= high))
        return;
    const int shown_rows = rows < lines ? rows : lines;
    for (int y = 0; y < shown_rows; y++) {
        const int row = shown_rows > 1 ? (int)((int64_t)y * (rows - 1) / (shown_rows - 1)) : 0;
        for (int x = 0; x < c->cols; x++) {
            if (cols < c->cols && x >= c->cols / cols * cols)
                break;
            const int col = cols < c->cols ? x / (c->cols / cols) : (int)((int64_t)x * cols / c->cols);
            const float value = values != NULL ? values[row * cols + col] : NAN;
            if (!isfinite(value)) {
                canvas_text(c, 1 + y, x, ROLE_DIM, "·");
                continue;
            }
            const double heat = high > low ? ((double)value - low) / (high - low) : 1;
            canvas_styled(c, 1 + y, x, ROLE_TEXT, (float)heat, MARK_NONE, c->grid->mono ? canvas_level(heat) : " ");
        }
    }
}

static void
series_draw_phase(const struct canvas *c, const struct scope_series *series, const float *values, enum role role)
{
    const float phase = values != NULL ? values[0] : NAN, progress = values != NULL ? values[1] : NAN;
    char text[24] = "–";
    if (!isnan(phase))
        snprintf(text, sizeof text, "%.9g", (double)phase);
    int x = 1 + canvas_word(c, 0, 0, c->cols - text_width(text) - 1, role, MARK_NONE, series->declared->title);
    x += canvas_text(c, 0, x, isnan(phase) ? ROLE_DIM : ROLE_TITLE, text);
    if (isnan(progress))
        return;
    if (c->rows > 1)
        canvas_bar(c, 1, 0, c->cols > 5 ? c->cols - 5 : 0, (double)progress, role);
    canvas_print(c, c->rows > 1 ? 1 : 0, c->rows > 1 && c->cols > 4 ? c->cols - 4 : x + 1, ROLE_TEXT, "%3.0f%%",
                 fmin(fmax((double)progress, 0), 1) * 100);
}

#define BESIDE 22 /* least columns of one of several charts beside each other */

struct series_panel {
    int top;    /* the first chart shown */
    int shown;  /* as drawn last */
    int charts; /* number of charts */
    int read;   /* index of the cursor's value; -1: none */
    int plot_x; /* first column of the dots */
    int cols;   /* columns of a chart, without the gap after it */
    struct series_axis axis;
    struct marks marks; /* changes of settings on the axis */
    struct chart chart; /* the chart being drawn */
};

/* Lists the charts: indices of the policy's series, or -1 - derived. Masks and series that judge drafts have panels of
 * their own. */
static int
list(const struct scope *s, int out[POLICY_SERIES + DERIVED_CHARTS])
{
    const int derived = scope_draft_origin(s) == DRAFTS_NONE ? 1 : DERIVED_CHARTS; /* only the speed */
    int n = 0;
    const struct scope_series *series;
    for (int i = 0; i < derived; i++)
        out[n++] = -1 - i;
    for (uint32_t i = 0; (series = scope_series(s, i)) != NULL; i++)
        if (series->declared->form != SERIES_MASK && !series_judges(scope_policy(s), i))
            out[n++] = (int)i;
    return n;
}

/* Returns the least rows of a chart, with its title, and sets *most (may be NULL) to the most that it can use. */
static int
rows_of(const struct scope *s, int which, int *most)
{
    const struct scope_series *series = which >= 0 ? scope_series(s, (uint32_t)which) : NULL;
    const enum series_form form = series != NULL ? series->declared->form : SERIES_LINE;
    if (most != NULL)
        *most = form == SERIES_PHASE                          ? 2
                : form == SERIES_STRIP || form == SERIES_GRID ? 1 + series->declared->rows
                                                              : 1 << 16;
    return form == SERIES_PHASE || form == SERIES_STRIP ? 2 : 3;
}

static void
draw_one(struct series_panel *p, const struct view *v, const struct canvas *c, int which, int number)
{
    const enum role role = (enum role)(ROLE_SERIES_1 + number % 4);
    const struct scope_series *series = which >= 0 ? scope_series(v->scope, (uint32_t)which) : NULL;
    const uint32_t round = p->read >= 0 ? p->axis.first + (uint32_t)p->read : UINT32_MAX;
    const float *values = which >= 0 ? scope_round_values(v->scope, (uint32_t)which, round) : NULL;
    if (series != NULL && series->declared->form == SERIES_BARS) {
        series_draw_bars(c, series, values, role);
    } else if (series != NULL && (series->declared->form == SERIES_STRIP || series->declared->form == SERIES_GRID)) {
        series_draw_strip(c, series, values);
    } else if (series != NULL && series->declared->form == SERIES_PHASE) {
        series_draw_phase(c, series, values, role);
    } else {
        if (series != NULL)
            series_reported(&p->chart, series, &p->axis);
        else
            series_derived(&p->chart, v->scope, (enum derived)(-1 - which), &p->axis);
        p->chart.role = role;
        series_draw_chart(c, &p->chart, &p->axis, p->read);
        for (int i = 0; i < p->marks.n; i++)
            for (int y = 1; y < c->rows; y++)
                marks_draw_tick(c, y, p->marks.mark[i].x);
    }
}

/* Chooses the newest rounds, or those around the cursor. The axis moves only if the cursor would leave it. */
static void
place_axis(struct series_panel *p, const struct view *v, int cols)
{
    struct series_axis *a = &p->axis;
    const uint32_t last = scope_now(v->scope)->round, at = selection_round(v);
    p->plot_x = 6;
    int dots = (cols - p->plot_x) * 2;
    dots = dots < 0 ? 0 : dots > SERIES_WINDOW ? SERIES_WINDOW : dots;
    /* few rounds are drawn wider */
    a->scale = last * 4 <= (uint32_t)dots ? 4 : last * 2 <= (uint32_t)dots ? 2 : 1;
    a->capacity = dots / a->scale;
    const uint32_t room = (uint32_t)a->capacity, newest = last > room ? last - room + 1 : 1;
    if (v->selection->follow || a->first < 1 || a->first > newest)
        a->first = newest;
    if (!v->selection->follow && at < a->first)
        a->first = at > room / 4 + 1 ? at - room / 4 : 1;
    else if (!v->selection->follow && at >= a->first + room)
        a->first = at - room / 4 * 3 < newest ? at - room / 4 * 3 : newest;
    a->rounds = last + 1 - a->first < room ? last + 1 - a->first : room;
    p->read = at >= a->first && at - a->first < a->rounds ? (int)(at - a->first) : -1;
}

static int
place_mark(const void *user, const struct segment *s)
{
    const struct series_panel *p = user;
    return s->first_round >= p->axis.first && s->first_round - p->axis.first < p->axis.rounds
               ? p->plot_x + (int)(s->first_round - p->axis.first) * p->axis.scale / 2
               : -1;
}

/* Returns the oldest round in memory if older ones were dropped; else 0. */
static uint32_t
oldest_held(const struct scope *s)
{
    const struct scope_round *oldest = scope_rounds(s) > 0 ? scope_round(s, scope_rounds(s) - 1) : NULL;
    return oldest != NULL && scope_round_before(s, oldest->number) > 0 ? oldest->number : 0;
}

/* Draws "41 ──── round ──── 120", or the cursor's round. */
static void
draw_axis(const struct series_panel *p, const struct scope *s, const struct canvas *c, int y)
{
    const uint32_t oldest = oldest_held(s);
    if (p->axis.rounds == 0)
        return;
    for (int x = p->plot_x; x < c->cols; x++)
        canvas_text(c, y, x, ROLE_DIM,
                    p->axis.first + (uint32_t)((x - p->plot_x) * 2 / p->axis.scale) < oldest ? "┈" : "─");
    canvas_text(c, y, p->plot_x - 1, ROLE_DIM, "└");
    canvas_print(c, y, p->plot_x, ROLE_DIM, "%u ", (unsigned)p->axis.first);
    char text[40];
    const uint32_t last = p->axis.first + p->axis.rounds - 1, at = p->axis.first + (uint32_t)p->read;
    if (p->read >= 0)
        snprintf(text, sizeof text, at < oldest ? " round %u, gone" : " at round %u ", (unsigned)at);
    else
        snprintf(text, sizeof text, " round %u", (unsigned)last);
    const int x = c->cols - text_width(text);
    if (x > p->plot_x + 6)
        canvas_text(c, y, x, p->read >= 0 ? ROLE_TITLE : ROLE_DIM, text);
    marks_draw(&p->marks, s, c, y, x, ROLE_LINE);
}

/* Returns how many charts fit below each other, from number `from` on. */
static int
fit(const struct scope *s, const int *which, int from, int charts, int rows)
{
    int n = 0;
    for (int need = 0; from + n < charts; n++) {
        need += rows_of(s, which[from + n], NULL);
        if (n > 0 && need > rows)
            break;
    }
    return n;
}

/* True if the charts from number `from` on fit into so many columns with equal numbers in each. */
static bool
fits_evenly(const struct scope *s, const int *which, int from, int charts, int rows, int columns)
{
    for (; columns > 0; columns--) {
        const int mine = (charts - from + columns - 1) / columns;
        if (fit(s, which, from, charts, rows) < mine)
            return false;
        from += mine;
    }
    return true;
}

/* Draws at most most_n charts below each other, from number `from` on; returns their number. */
static int
draw_column(struct series_panel *p, const struct view *v, const struct canvas *c, const int *which, int from,
            int most_n)
{
    const bool axis = c->rows >= 4;
    const int rows = c->rows - axis, fitting = fit(v->scope, which, from, p->charts, rows);
    const int n = fitting < most_n ? fitting : most_n;
    int y = 0, spare = rows;
    for (int i = 0; i < n; i++)
        spare -= rows_of(v->scope, which[from + i], NULL);
    for (int i = 0; i < n; i++) {
        int most;
        const int number = which[from + i], least = rows_of(v->scope, number, &most);
        int mine = least + (spare > 0 ? spare / (n - i) : 0);
        mine = mine > most ? (most > least ? most : least) : mine;
        spare -= mine - least;
        const struct canvas part = canvas_inside(c, y, 0, mine, c->cols);
        draw_one(p, v, &part, number, from + i);
        y += mine;
    }
    if (axis)
        draw_axis(p, v->scope, c, c->rows - 1);
    return n;
}

static void
draw_series(void *state, const struct view *v, const struct canvas *c)
{
    struct series_panel *p = state;
    int which[POLICY_SERIES + DERIVED_CHARTS], beside = 1;
    if (c->rows < 1)
        return;
    p->charts = list(v->scope, which);
    if (p->top >= p->charts)
        p->top = p->charts - 1;
    /* uses no more columns than needed to show all charts */
    const int most = c->cols / BESIDE > 1 ? c->cols / BESIDE : 1, rows = c->rows - (c->rows >= 4);
    for (int shown = 0; beside <= most; beside++) {
        shown = 0;
        for (int i = 0; i < beside; i++)
            shown += fit(v->scope, which, shown, p->charts, rows);
        if (shown == p->charts)
            break;
    }
    beside = beside > most ? most : beside;
    p->cols = (c->cols - (beside - 1)) / beside;
    place_axis(p, v, p->cols);
    marks_find(&p->marks, v->scope, NULL, place_mark, p);
    p->shown = 0;
    const bool even = fits_evenly(v->scope, which, p->top, p->charts, rows, beside);
    for (int i = 0; i < beside && p->top + p->shown < p->charts; i++) {
        const struct canvas part = canvas_inside(c, 0, i * (p->cols + 1), c->rows, p->cols);
        const int columns = beside - i, left = p->charts - p->top - p->shown; /* shared evenly */
        p->shown += draw_column(p, v, &part, which, p->top + p->shown, even ? (left + columns - 1) / columns : left);
    }
}

static void
note_series(void *state, const struct view *v, char *out, int n)
{
    const struct series_panel *p = state;
    (void)v;
    if (p->shown > 0 && p->shown < p->charts)
        snprintf(out, (size_t)n, "%d–%d of %d ↑↓", p->top + 1, p->top + p->shown, p->charts);
}

static bool
key_series(void *state, const struct view *v, int key)
{
    struct series_panel *p = state;
    switch (key) {
    case 'j':
    case INPUT_DOWN: p->top += p->top + p->shown < p->charts; return true;
    case 'k':
    case INPUT_UP: p->top -= p->top > 0; return true;
    case 'h':
    case INPUT_LEFT: selection_move(v, -1); return true;
    case 'l':
    case INPUT_RIGHT: selection_move(v, 1); return true;
    case INPUT_SHIFT_LEFT: selection_move(v, -10); return true;
    case INPUT_SHIFT_RIGHT: selection_move(v, 10); return true;
    case INPUT_HOME: selection_to_round(v, 1); return true;
    case INPUT_END: v->selection->follow = true; return true;
    default: return false;
    }
}

static bool
mouse_series(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    struct series_panel *p = state;
    (void)y;
    (void)c;
    if (mouse_wheel(action) != 0)
        return key_series(p, v, mouse_wheel(action) < 0 ? INPUT_UP : INPUT_DOWN);
    if (action != MOUSE_PRESS && action != MOUSE_DRAG)
        return false;
    const int scale = p->axis.scale > 0 ? p->axis.scale : 1, inside = p->cols > 0 && x >= 0 ? x % (p->cols + 1) : -1;
    const int value = inside >= p->plot_x ? ((inside - p->plot_x) * 2 + 1) / scale : -1;
    if (value >= 0 && value < (int)p->axis.rounds)
        selection_to_round(v, p->axis.first + (uint32_t)value);
    else
        v->selection->follow = true;
    return true;
}

static const struct key_help keys[] = {
    {"← →", "point at a round and read its values; with Shift ten rounds at a time: all panels go there"},
    {"Home End", "the oldest; the newest, and follow it"},
    {"↑ ↓", "more charts"},
    {"▲", "a value above the scale, which ends at 95% of the values if others are three times as large"},
    {NULL, NULL},
};

const struct panel_ops panel_series = {
    .name = "series",
    .title = "series",
    .brief = "← → read  ↑ ↓ charts",
    .place = PANEL_BOTTOM,
    .weight = 4,
    .min_cols = 26,
    .keys = keys,
    .state_size = sizeof(struct series_panel),
    .draw = draw_series,
    .note = note_series,
    .key = key_series,
    .mouse = mouse_series,
};
