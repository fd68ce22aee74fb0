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
    int read;   /* rounds back from the newest where the cursor is; -1: it follows, or is in no round on the axis */
    int plot_x; /* where the dots begin, */
    int cols;   /* columns of a chart, a gap behind it, and */
    struct series_axis axis;
    struct marks marks; /* turns on that axis */
    struct chart chart; /* the one being drawn */
};

static void *
open_series(void)
{
    struct series_panel *p = calloc(1, sizeof *p);
    if (p != NULL)
        p->read = -1;
    return p;
}

/* Which series have a chart here: masks, and how drafts are judged, have panels of their own. The policy's number, or
 * -1 - derived. */
static int
list(const struct scope *s, int out[POLICY_SERIES + DERIVED_CHARTS])
{
    int n = 0;
    const struct scope_series *series;
    for (int i = 0; i < DERIVED_CHARTS; i++)
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
    const int read = p->read >= 0 && p->axis.rounds > 0 ? (int)p->axis.rounds - 1 - p->read : -1;
    if (series != NULL && series->declared->form == SERIES_BARS) {
        series_draw_bars(c, series, role);
    } else if (series != NULL && (series->declared->form == SERIES_STRIP || series->declared->form == SERIES_GRID)) {
        series_draw_strip(c, series);
    } else if (series != NULL && series->declared->form == SERIES_PHASE) {
        series_draw_phase(c, series, role);
    } else {
        if (series != NULL)
            series_reported(&p->chart, series, &p->axis);
        else
            series_derived(&p->chart, v->scope, (enum derived)(-1 - which), &p->axis);
        p->chart.role = role;
        series_draw_chart(c, &p->chart, &p->axis, read);
        for (int i = 0; i < p->marks.n; i++)
            for (int y = 1; y < c->rows; y++)
                marks_draw_tick(c, y, p->marks.mark[i].x);
    }
}

/* Which round the cursor is in. */
static void
take_cursor(struct series_panel *p, const struct view *v)
{
    const struct scope_column *c = v->selection->follow ? NULL : scope_column(v->scope, v->selection->pos);
    const uint32_t last = p->axis.first + p->axis.rounds - 1;
    const bool there = c != NULL && c->round >= p->axis.first && c->round <= last && p->axis.rounds > 0 &&
                       c->fate != FATE_PROMPT && c->fate != FATE_PREFILL;
    p->read = there ? (int)(last - c->round) : -1;
}

static void
place_axis(struct series_panel *p, const struct scope *s, int cols)
{
    const uint32_t last = scope_now(s)->round;
    p->plot_x = 6;
    int dots = (cols - p->plot_x) * 2;
    dots = dots < 0 ? 0 : dots > SERIES_WINDOW ? SERIES_WINDOW : dots;
    /* Few rounds are drawn wider. */
    p->axis.scale = last * 4 <= (uint32_t)dots ? 4 : last * 2 <= (uint32_t)dots ? 2 : 1;
    p->axis.capacity = dots / p->axis.scale;
    p->axis.rounds = last < (uint32_t)p->axis.capacity ? last : (uint32_t)p->axis.capacity;
    p->axis.first = last - p->axis.rounds + 1;
}

static int
place_mark(const void *user, const struct stretch *s)
{
    const struct series_panel *p = user;
    return s->first_round >= p->axis.first && s->first_round - p->axis.first < p->axis.rounds
               ? p->plot_x + (int)(s->first_round - p->axis.first) * p->axis.scale / 2
               : -1;
}

/* "41 ──── round ──── 120", or the round that is read. */
static void
draw_axis(const struct series_panel *p, const struct scope *s, const struct canvas *c, int y)
{
    if (p->axis.rounds == 0)
        return;
    for (int x = p->plot_x; x < c->cols; x++)
        canvas_text(c, y, x, ROLE_DIM, "─");
    canvas_text(c, y, p->plot_x - 1, ROLE_DIM, "└");
    canvas_print(c, y, p->plot_x, ROLE_DIM, "%u ", (unsigned)p->axis.first);
    char text[40];
    const uint32_t last = p->axis.first + p->axis.rounds - 1;
    if (p->read >= 0)
        snprintf(text, sizeof text, " at round %u ", (unsigned)(last - (uint32_t)p->read));
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
    place_axis(p, v->scope, p->cols);
    take_cursor(p, v);
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

/* To the round so many before the one that the cursor is in; behind the newest it follows. */
static void
move(struct series_panel *p, const struct view *v, int back)
{
    const uint32_t last = p->axis.first + p->axis.rounds - 1;
    const int to = p->read + back;
    if (p->axis.rounds == 0 || (p->read < 0 && back < 0))
        return;
    if (to < 0) {
        v->selection->follow = true;
        p->read = -1;
        return;
    }
    uint32_t round = to < (int)p->axis.rounds ? last - (uint32_t)to : p->axis.first;
    const uint32_t pos = scope_round_position(v->scope, round);
    const struct scope_column *there = scope_column(v->scope, pos),
                              *before = pos > 0 ? scope_column(v->scope, pos - 1) : NULL;
    /* A sequence of a batch need not have been in every round: on the way back the one before it is taken. */
    const bool stuck = back > 0 && there != NULL && p->read >= 0 && there->round >= last - (uint32_t)p->read;
    selection_to_round(v, stuck && before != NULL && before->round > 0 ? before->round : round);
    take_cursor(p, v);
}

static bool
key_series(void *state, const struct view *v, int key)
{
    struct series_panel *p = state;
    const int most = (int)p->axis.rounds - 1;
    switch (key) {
    case 'j':
    case INPUT_DOWN: p->top += p->top + p->shown < p->charts; return true;
    case 'k':
    case INPUT_UP: p->top -= p->top > 0; return true;
    case 'h':
    case INPUT_LEFT: move(p, v, 1); return true;
    case 'l':
    case INPUT_RIGHT: move(p, v, -1); return true;
    case INPUT_SHIFT_LEFT: move(p, v, 10); return true;
    case INPUT_SHIFT_RIGHT: move(p, v, -10); return true;
    case INPUT_HOME: move(p, v, most - p->read); return true;
    case INPUT_END:
        v->selection->follow = true;
        p->read = -1;
        return true;
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
    take_cursor(p, v);
    return true;
}

static const struct key_help keys[] = {
    {"← →", "point at a round and read its values; with Shift ten rounds at a time: all panels go there"},
    {"End", "read the newest, and follow it"},
    {"↑ ↓", "more charts"},
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
