/* The forms that a policy's values are drawn in. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/panels/series.h"
#include "tui/scope/versus.h"
#include "tui/terminal/text.h"

/* ---- values ---- */

static void
clear(struct chart *chart)
{
    for (int i = 0; i < SERIES_WINDOW; i++)
        chart->value[i] = chart->value2[i] = NAN;
}

void
series_derived(struct chart *chart, const struct scope *s, enum derived what, const struct series_axis *axis)
{
    static const char *const titles[DERIVED_CHARTS] = {"tok/s", "tokens/round", "acceptance", "drafted"};
    clear(chart);
    snprintf(chart->title, sizeof chart->title, "%s%s", titles[what],
             what == DERIVED_TOKENS_PER_S && scope_is_batch(s) && scope_versus(s) == NULL ? " of all" : "");
    chart->band = false;
    chart->whole = what == DERIVED_TOKENS_PER_ROUND || what == DERIVED_DRAFTED;
    for (uint32_t i = 0; what == DERIVED_TOKENS_PER_S && i < axis->rounds; i++)
        chart->value[i] = (float)scope_round_tokens_per_s(s, axis->first + i);
    for (uint32_t back = 0; back < scope_rounds(s); back++) {
        const struct scope_round *r = scope_round(s, back);
        if (!r->whole)
            continue;
        if (r->number < axis->first)
            break;
        if (r->number - axis->first >= axis->rounds)
            continue;
        float *value = &chart->value[r->number - axis->first];
        if (what == DERIVED_ACCEPTANCE && r->end.verified > 0)
            *value = (float)r->end.accepted / (float)r->end.verified;
        else if (what == DERIVED_TOKENS_PER_ROUND)
            *value = (float)r->end.emitted;
        else if (what == DERIVED_DRAFTED)
            *value = (float)r->end.drafted;
    }
}

void
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
        /* What was reported last holds up to the round of the next report. */
        const uint32_t round = v == NULL ? UINT32_MAX : v->round;
        while (dot < axis->rounds && axis->first + dot < round) {
            if (held != NULL) {
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
#define SCALE_LEAST    16 /* values from which a scale leaves any out */

static int
by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Where a scale ends that few large values must not flatten: at the largest value, or at the quantile if the largest value is
 * SCALE_SEGMENT times as far from the least one. */
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
    /* Shares are drawn on the whole of [0, 1]; others begin at 0 when that is not far. */
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

/* Of the range's ends; where there is one value, or the ends read alike, of that one alone, in its row. */
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
    const bool share = low == 0 && high == 1 && !chart->whole; /* its scale is what it is, whatever the value */
    const bool single = one && !share;
    const double up = single ? (only - low) / (high - low) : 1;
    const int at = (4 * rows - 1 - (int)lrint(up * (4 * rows - 1))) / 4; /* as canvas_plot() has it */
    if (single)
        print_value(top, sizeof top, only, chart->whole);
    for (int y = 0; y < rows; y++) {
        const bool labelled = y == at || (!single && y == rows - 1 && rows > 1 && strcmp(top, bottom) != 0);
        canvas_text(c, 1 + y, LABEL, ROLE_DIM, labelled ? "┤" : "│");
        if (labelled)
            canvas_print(c, 1 + y, 0, ROLE_DIM, "%*s", LABEL, y == at ? top : bottom);
    }
}

void
series_draw_chart(const struct canvas *c, const struct chart *chart, const struct series_axis *axis, int read)
{
    double low, high;
    char text[24], text2[24];
    int last = (int)axis->rounds - 1;
    while (last >= 0 && isnan(chart->value[last]))
        last--;
    const int at = read >= 0 && read < (int)axis->rounds ? read : last;
    print_value(text, sizeof text, at >= 0 ? (double)chart->value[at] : (double)NAN, chart->whole);
    print_value(text2, sizeof text2, at >= 0 ? (double)chart->value2[at] : (double)NAN, chart->whole);
    const int wide = text_width(text) + (chart->band ? 3 + text_width(text2) : 0); /* the value goes before the title */
    const int used = canvas_word(c, 0, 0, c->cols - wide - 1, chart->role, MARK_NONE, chart->title);
    canvas_print(c, 0, used + 1, ROLE_TITLE, chart->band ? "%s – %s" : "%s", text, text2);
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
            canvas_text(&plot, 0, (int)i * axis->scale / 2, ROLE_WARN, canvas_glyph(c, "▲", "^"));
    if (read >= 0 && read < n)
        for (int y = 0; y < plot.rows; y++) {
            const struct grid_cell *there = grid_at(plot.grid, plot.y + y, plot.x + cell);
            if (there != NULL && there->text[0] == ' ')
                canvas_text(&plot, y, cell, ROLE_CURSOR, "│");
        }
}

/* ---- the other forms ---- */

void
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

void
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

void
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
