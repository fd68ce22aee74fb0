/* What the policy declares, in the form it declares; without declarations, what the rounds say. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tui/panels/marks.h"
#include "tui/panels/series.h"
#include "tui/terminal/input.h"

struct series_panel {
    int top;    /* the first chart shown */
    int shown;  /* as drawn last */
    int charts; /* of them there are */
    int read;   /* rounds back from the newest where the read-out stands; -1: nowhere */
    int plot_x; /* where the dots begin, and */
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
    for (uint32_t i = 0; (series = scope_series(s, i)) != NULL; i++)
        if (series->declared->form != SERIES_MASK && !series_judges(scope_policy(s), i))
            out[n++] = (int)i;
    if (n == 0)
        for (int i = 0; i < DERIVED_CHARTS; i++)
            out[n++] = -1 - i;
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
    if (p->read >= (int)p->axis.rounds)
        p->read = (int)p->axis.rounds - 1;
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
    marks_draw(&p->marks, s, c, y, x);
}

static void
draw_series(void *state, const struct view *v, const struct canvas *c)
{
    struct series_panel *p = state;
    int which[POLICY_SERIES + DERIVED_CHARTS];
    if (c->rows < 1)
        return;
    p->charts = list(v->scope, which);
    const bool axis = c->rows >= 4;
    const int rows = c->rows - axis;
    place_axis(p, v->scope, c->cols);
    marks_find(&p->marks, v->scope, place_mark, p);
    if (p->top >= p->charts)
        p->top = p->charts - 1;
    /* As many as fit, from the one that was scrolled to. */
    int n = 0, need = 0;
    while (p->top + n < p->charts && (n == 0 || need + least_rows(v->scope, which[p->top + n]) <= rows))
        need += least_rows(v->scope, which[p->top + n++]);
    p->shown = n;
    int y = 0, spare = rows - need;
    for (int i = 0; i < n; i++) {
        const int number = which[p->top + i], least = least_rows(v->scope, number);
        int mine = least + (spare > 0 ? spare / (n - i) : 0);
        const int most = most_rows(v->scope, number);
        mine = mine > most ? (most > least ? most : least) : mine;
        spare -= mine - least;
        const struct canvas part = canvas_inside(c, y, 0, mine, c->cols);
        draw_one(p, v, &part, number, p->top + i);
        y += mine;
    }
    if (axis)
        draw_axis(p, v->scope, c, c->rows - 1);
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
    (void)v;
    const int most = (int)p->axis.rounds - 1;
    switch (key) {
    case 'j':
    case INPUT_DOWN: p->top += p->top + p->shown < p->charts; return true;
    case 'k':
    case INPUT_UP: p->top -= p->top > 0; return true;
    case 'h':
    case INPUT_LEFT: p->read += p->read < most; return true;
    case 'l':
    case INPUT_RIGHT: p->read -= p->read >= 0; return true;
    case INPUT_SHIFT_LEFT: p->read = p->read + 10 < most ? p->read + 10 : most; return true;
    case INPUT_SHIFT_RIGHT: p->read = p->read >= 10 ? p->read - 10 : -1; return true;
    case INPUT_HOME: p->read = most; return true;
    case INPUT_END: p->read = -1; return true;
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
    const int scale = p->axis.scale > 0 ? p->axis.scale : 1;
    const int value = x >= p->plot_x ? ((x - p->plot_x) * 2 + 1) / scale : -1;
    p->read = value >= 0 && value < (int)p->axis.rounds ? (int)p->axis.rounds - 1 - value : -1;
    return true;
}

static const struct key_help keys[] = {
    {"← →", "read a round's values; with Shift ten rounds at a time"},
    {"End", "read the newest"},
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
