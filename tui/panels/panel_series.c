/* What the rounds say of any policy, then what the policy declares, in the form it declares; beside each other where there is
 * room. Its cursor is the one that all panels point with. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tui/panels/marks.h"
#include "tui/panels/series.h"
#include "tui/terminal/input.h"

#define BESIDE 22 /* columns of a chart at least, where several stand beside each other */

struct series_panel {
    int top;    /* the first chart shown */
    int shown;  /* as drawn last */
    int charts; /* of them there are */
    int read;   /* the value where the cursor is; -1: it follows, or is in the prompt */
    int plot_x; /* where the dots begin, */
    int cols;   /* columns of a chart, a gap behind it, and */
    struct series_axis axis;
    struct marks marks; /* turns on that axis */
    struct chart chart; /* the one being drawn */
};

static void *
open_series(void)
{
    return calloc(1, sizeof(struct series_panel));
}

/* Which series have a chart here: masks, and how drafts are judged, have panels of their own. The policy's number, or
 * -1 - derived. */
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

/* Rows that a form needs at least, title and all, and the most it can use. */
static int
least_rows(const struct scope *s, int which)
{
    const struct scope_series *series = which >= 0 ? scope_series(s, (uint32_t)which) : NULL;
    if (series == NULL)
        return 3;
    switch (series->declared->form) {
    case SERIES_PHASE:
    case SERIES_STRIP: return 2;
    default: return 3;
    }
}

static int
most_rows(const struct scope *s, int which)
{
    const struct scope_series *series = which >= 0 ? scope_series(s, (uint32_t)which) : NULL;
    if (series == NULL)
        return 1 << 16;
    switch (series->declared->form) {
    case SERIES_PHASE: return 2;
    case SERIES_STRIP:
    case SERIES_GRID: return 1 + series->declared->rows;
    default: return 1 << 16;
    }
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

/* The newest rounds, or those around the cursor: the axis stands still until the cursor would leave it. */
static void
place_axis(struct series_panel *p, const struct view *v, int cols)
{
    struct series_axis *a = &p->axis;
    const uint32_t last = scope_now(v->scope)->round, at = selection_round(v);
    p->plot_x = 6;
    int dots = (cols - p->plot_x) * 2;
    dots = dots < 0 ? 0 : dots > SERIES_WINDOW ? SERIES_WINDOW : dots;
    /* Few rounds are drawn wider. */
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

/* The oldest round that is held, where older ones left memory; else 0. */
static uint32_t
oldest_held(const struct scope *s)
{
    const struct scope_round *oldest = scope_rounds(s) > 0 ? scope_round(s, scope_rounds(s) - 1) : NULL;
    return oldest != NULL && scope_round_before(s, oldest->number) > 0 ? oldest->number : 0;
}

/* "41 ──── round ──── 120", or the round that is read. */
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

/* As many as fit below each other, from number `from` on. */
static int
fit(const struct scope *s, const int *which, int from, int charts, int rows)
{
    int n = 0;
    for (int need = 0; from + n < charts; n++) {
        need += least_rows(s, which[from + n]);
        if (n > 0 && need > rows)
            break;
    }
    return n;
}

/* Do all from number `from` on fit into that many columns when each has as many as the others? */
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

/* Charts from number `from` on below each other, most_n at most; how many they are. */
static int
draw_column(struct series_panel *p, const struct view *v, const struct canvas *c, const int *which, int from,
            int most_n)
{
    const bool axis = c->rows >= 4;
    const int rows = c->rows - axis, fitting = fit(v->scope, which, from, p->charts, rows);
    const int n = fitting < most_n ? fitting : most_n;
    int y = 0, spare = rows;
    for (int i = 0; i < n; i++)
        spare -= least_rows(v->scope, which[from + i]);
    for (int i = 0; i < n; i++) {
        const int number = which[from + i], least = least_rows(v->scope, number);
        int mine = least + (spare > 0 ? spare / (n - i) : 0);
        const int most = most_rows(v->scope, number);
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
    /* No more beside each other than are needed to show all. */
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
    marks_find(&p->marks, v->scope, place_mark, p);
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
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN)
        return key_series(p, v, action == MOUSE_WHEEL_UP ? INPUT_UP : INPUT_DOWN);
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
    {"▲", "a value beyond the scale, which ends where 95% of the values are if others are three times as far"},
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
    .open = open_series,
    .close = free,
    .draw = draw_series,
    .note = note_series,
    .key = key_series,
    .mouse = mouse_series,
};
