/* One knob: a row a value, what was measured as a mark between whiskers of a standard error. Several: a row a point, the best
 * first. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/plural.h"
#include "tui/panels/sweep_views.h"
#include "tui/terminal/text.h"

#define NUMBERS    14 /* "412 ±6" */
#define TIMES_FROM 72 /* columns of a list with × ar */

void
sweep_number(double value, enum sweep_measure measure, char *out, size_t n)
{
    snprintf(out, n, "%.*f", measure != SWEEP_SPEED ? 2 : value < 99.5 ? 1 : 0, value);
}

int
sweep_window(int top, int at, int n, int room)
{
    if (room < 1 || n <= room)
        return 0;
    top = at < top ? at : at >= top + room ? at - room + 1 : top;
    return top < 0 ? 0 : top > n - room ? n - room : top;
}

const char *
sweep_star(const struct sweep_look *l, const struct canvas *c, uint32_t point)
{
    if (!l->has_best || point != l->best)
        return " ";
    return l->near == 0 ? canvas_glyph(c, "★", "*") : canvas_glyph(c, "☆", "'");
}

/* "412 ±6"; "" where there is no value. */
static void
with_error(struct estimate e, enum sweep_measure measure, char *out, size_t n)
{
    char value[24], se[24];
    out[0] = '\0';
    if (isnan(e.value))
        return;
    sweep_number(e.value, measure, value, sizeof value);
    snprintf(se, sizeof se, "%.*f", measure != SWEEP_SPEED ? 2 : e.value < 99.5 ? 1 : 0, e.se);
    snprintf(out, n, isnan(e.se) ? "%s" : "%s ±%s", value, se);
}

/* "1.46×"; "–": nothing was drafted, or no round was whole. */
static void
with_unit(double value, const char *unit, char *out, size_t n)
{
    snprintf(out, n, isnan(value) ? "–" : "%.2f%s", value, unit);
}

/* Behind what stands there, on the next row where that is full; what fits nowhere is left out. */
static void
put_behind(const struct canvas *c, int *y, int *x, enum role role, const char *text)
{
    const int width = text_width(text);
    if (*x > 0 && *x + width > c->cols && *y + 1 < c->rows) {
        ++*y;
        *x = 0;
    }
    if (*x + width <= c->cols)
        *x += canvas_text(c, *y, *x, role, text) + 2;
}

void
sweep_draw_details(const struct sweep_look *l, const struct canvas *c, int y)
{
    char text[160];
    int x = 0;
    sweep_text(l->sweep, l->point, text, sizeof text);
    put_behind(c, &y, &x, ROLE_FOCUS, text);
    if (sweep_result(l->sweep, l->point) == NULL) {
        put_behind(c, &y, &x, ROLE_DIM, "not run yet");
        return;
    }
    static const char *const behind[SWEEP_MEASURES] = {" tok/s", " × ar", " tok/round", " accepted", "× modelled"};
    for (enum sweep_measure k = 0; k < SWEEP_MEASURES; k++) {
        struct estimate e = sweep_estimate(l->sweep, l->point, k);
        if (k > SWEEP_TIMES)
            e.se = NAN;
        with_error(e, k, text, sizeof text);
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s", behind[k]);
        if (used > 0)
            put_behind(c, &y, &x, ROLE_TEXT, text);
    }
    snprintf(text, sizeof text, "the best; no clear difference from %u other%s", (unsigned)l->near, plural(l->near));
    if (l->has_best && l->point == l->best)
        put_behind(c, &y, &x, l->near == 0 ? ROLE_OK : ROLE_DIM, l->near == 0 ? "clearly the best" : text);
}

/* ---- one knob ---- */

static int
place(const struct sweep_look *l, double value, int width)
{
    const double span = l->high - l->low, at = span > 0 ? (value - l->low) / span : 0.5;
    const int x = (int)lrint(at * (width - 1));
    return x < 0 ? 0 : x >= width ? width - 1 : x;
}

static void
draw_whiskers(const struct sweep_look *l, const struct canvas *c, int y, int x, int width, struct estimate e)
{
    const double se = isnan(e.se) ? 0 : e.se;
    for (int i = place(l, e.value - se, width); i <= place(l, e.value + se, width); i++)
        canvas_text(c, y, x + i, ROLE_DIM, canvas_glyph(c, "─", "-"));
    canvas_text(c, y, x + place(l, e.value, width), l->has_best ? ROLE_SERIES_1 : ROLE_TEXT, canvas_glyph(c, "●", "o"));
}

void
sweep_draw_line(struct sweep_look *l, const struct canvas *c)
{
    const int n = (int)sweep_points(l->sweep);
    const struct knob *k = sweep_knob(l->sweep, 0);
    char text[64];
    l->header = c->rows > 3 ? 1 : 0;
    l->label = 10;
    l->rows = c->rows - l->header - (c->rows > 5 ? 1 : 0);
    l->rows = l->rows < n ? l->rows : n;
    l->top = sweep_window(l->top, (int)l->point, n, l->rows);
    const int width = c->cols - l->label - NUMBERS - 2;
    if (l->header > 0) {
        canvas_text(c, 0, 2, ROLE_KNOB, k->name);
        canvas_text(c, 0, c->cols - NUMBERS, ROLE_DIM, sweep_measure_names[l->measure]);
    }
    for (int y = 0; y < l->rows; y++) {
        const uint32_t point = (uint32_t)(l->top + y);
        const struct estimate e = sweep_estimate(l->sweep, point, l->measure);
        const bool here = point == l->point;
        knob_format(k, sweep_value(l->sweep, point, 0), text, sizeof text);
        if (here)
            canvas_text(c, l->header + y, 0, ROLE_FOCUS, canvas_glyph(c, "▸", ">"));
        canvas_text(c, l->header + y, 1, ROLE_OK, sweep_star(l, c, point));
        canvas_text(c, l->header + y, 2, here ? ROLE_FOCUS : ROLE_TEXT, text);
        if (!isnan(e.value) && width > 4)
            draw_whiskers(l, c, l->header + y, l->label, width, e);
        with_error(e, l->measure, text, sizeof text);
        const bool runs = sweep_running(l->sweep) && point == sweep_at(l->sweep);
        canvas_text(c, l->header + y, c->cols - NUMBERS, isnan(e.value) ? ROLE_KNOB_PENDING : ROLE_TEXT,
                    !isnan(e.value) ? text
                    : runs          ? "runs"
                                    : "");
    }
    if (c->rows > 5)
        sweep_draw_details(l, c, l->header + l->rows);
}

/* ---- a list ---- */

/* × ar has a column where there is room for it, or else, when it is the measure, the speed's. */
static bool
has_column(const struct sweep_look *l, const struct canvas *c, int measure)
{
    const bool wide = c->cols >= TIMES_FROM, known = !isnan(sweep_baseline(l->sweep).value);
    if (measure == SWEEP_TIMES)
        return known && (wide || l->measure == SWEEP_TIMES);
    return measure != SWEEP_SPEED || wide || l->measure != SWEEP_TIMES;
}

void
sweep_draw_list(struct sweep_look *l, const struct canvas *c)
{
    const int n = (int)sweep_points(l->sweep);
    int at = 0;
    while (at < n && l->ranked[at] != l->point)
        at++;
    l->header = c->rows > 3 ? 1 : 0;
    l->rows = c->rows - l->header < n ? c->rows - l->header : n;
    l->top = sweep_window(l->top, at, n, l->rows);
    static const int width[SWEEP_MEASURES] = {14, 13, 7, 7, 9};
    static const char *const head[SWEEP_MEASURES] = {"tok/s", "× ar", "t/rnd", "acc", "(model)"};
    int x[SWEEP_MEASURES], right = c->cols;
    for (int k = SWEEP_MEASURES - 1; k >= 0; k--) /* where they end */
        x[k] = right, right -= has_column(l, c, k) ? width[k] : 0;
    const int what = right > 16 ? right - 3 : c->cols - 3;
    const bool figures = right > 16;
    for (int k = 0; k < SWEEP_MEASURES && l->header > 0 && figures; k++)
        if (has_column(l, c, k))
            canvas_text(c, 0, x[k] - text_width(head[k]), k == (int)l->measure ? ROLE_TITLE : ROLE_DIM, head[k]);
    for (int y = 0; y < l->rows; y++) {
        const uint32_t point = l->ranked[l->top + y];
        const struct estimates e = sweep_estimates(l->sweep, point);
        const bool here = point == l->point;
        char text[SWEEP_MEASURES][64], knobs[160];
        sweep_text(l->sweep, point, knobs, sizeof knobs);
        if (here)
            canvas_text(c, l->header + y, 0, ROLE_FOCUS, canvas_glyph(c, "▸", ">"));
        canvas_text(c, l->header + y, 1, ROLE_OK, sweep_star(l, c, point));
        canvas_word(c, l->header + y, 2, what, here ? ROLE_FOCUS : ROLE_TEXT, MARK_NONE, knobs);
        with_error(e.tokens_per_s, SWEEP_SPEED, text[SWEEP_SPEED], sizeof text[0]);
        with_error(sweep_estimate(l->sweep, point, SWEEP_TIMES), SWEEP_TIMES, text[SWEEP_TIMES], sizeof text[0]);
        with_unit(e.tokens_per_round.value, "", text[SWEEP_LENGTH], sizeof text[0]);
        with_unit(e.acceptance_rate.value, "", text[SWEEP_ACCEPTANCE], sizeof text[0]);
        with_unit(e.modelled.value, "×", text[SWEEP_MODELLED], sizeof text[0]);
        for (int k = 0; k < SWEEP_MEASURES && figures && sweep_result(l->sweep, point) != NULL; k++)
            if (has_column(l, c, k))
                canvas_text(c, l->header + y, x[k] - text_width(text[k]), k == (int)l->measure ? ROLE_TEXT : ROLE_DIM,
                            text[k]);
    }
}
