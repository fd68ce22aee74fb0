/* A sweep while it runs and afterwards: its points by what they measured, the best of them, and a cursor whose values Enter
 * takes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tui/panels/panel.h"
#include "tui/panels/sweep_views.h"

struct sweep_panel {
    struct sweep_look look;
    double *value; /* (KNOB_GRID_MOST) of the points, by the measure; owned */
    bool moved;    /* else the cursor keeps to the best point, or to the first */
    bool list;     /* points in a list, however many knobs there are */
};

static void
close_sweep(void *state)
{
    struct sweep_panel *p = state;
    if (p != NULL) {
        free(p->look.ranked);
        free(p->value);
    }
    free(p);
}

static void *
open_sweep(void)
{
    struct sweep_panel *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->look.ranked = calloc(KNOB_GRID_MOST, sizeof *p->look.ranked);
    p->value = calloc(KNOB_GRID_MOST, sizeof *p->value);
    if (p->look.ranked != NULL && p->value != NULL)
        return p;
    close_sweep(p);
    return NULL;
}

static bool
active_sweep(const struct view *v)
{
    return v->sweep != NULL && sweep_points(v->sweep) > 0 && (sweep_running(v->sweep) || sweep_measured(v->sweep) > 0);
}

/* How many knobs the picture is of: 1 a line, 2 a map, else a list. */
static uint32_t
dimensions(const struct sweep_panel *p, const struct view *v)
{
    const struct knob_axis *axes;
    const uint32_t n = sweep_axes(v->sweep, &axes);
    return p->list ? SWEEP_AXES : n;
}

/* The best first, what is not measured last. */
static void
rank(struct sweep_panel *p, uint32_t n)
{
    uint32_t *ranked = p->look.ranked;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        for (; at > 0 && !isnan(p->value[i]) && !(p->value[ranked[at - 1]] >= p->value[i]); at--)
            ranked[at] = ranked[at - 1];
        ranked[at] = i;
    }
}

static void
look(struct sweep_panel *p, const struct view *v)
{
    struct sweep_look *l = &p->look;
    const uint32_t n = sweep_points(v->sweep);
    l->sweep = v->sweep;
    l->low = l->high = NAN;
    l->has_best = sweep_best(v->sweep, l->measure, &l->best, &l->near);
    for (uint32_t i = 0; i < n; i++) {
        const struct estimate e = sweep_estimate(v->sweep, i, l->measure);
        p->value[i] = e.value;
        const double se = isnan(e.se) || dimensions(p, v) != 1 ? 0 : e.se;
        l->low = fmin(l->low, e.value - se);
        l->high = fmax(l->high, e.value + se);
    }
    if (l->point >= n)
        p->moved = false;
    if (!p->moved)
        l->point = l->has_best ? l->best : 0;
    if (dimensions(p, v) > 2)
        rank(p, n);
}

static void
draw_sweep(void *state, const struct view *v, const struct canvas *c)
{
    struct sweep_panel *p = state;
    if (!active_sweep(v))
        return;
    look(p, v);
    switch (dimensions(p, v)) {
    case 1: sweep_draw_line(&p->look, c); break;
    case 2: sweep_draw_map(&p->look, c); break;
    default: sweep_draw_list(&p->look, c);
    }
}

static void
note_sweep(void *state, const struct view *v, char *out, int n)
{
    const struct sweep_panel *p = state;
    char left[32] = "";
    if (!active_sweep(v))
        return;
    const uint32_t done = sweep_done(v->sweep), points = sweep_points(v->sweep);
    if (sweep_running(v->sweep) && !isnan(sweep_left_s(v->sweep)))
        snprintf(left, sizeof left, ", %.0f s left", ceil(sweep_left_s(v->sweep)));
    else if (!sweep_running(v->sweep) && done < points)
        snprintf(left, sizeof left, ", stopped");
    char pass[32] = "";
    if (sweep_pass(v->sweep) > 1)
        snprintf(pass, sizeof pass, " of pass %u", (unsigned)sweep_pass(v->sweep));
    snprintf(out, (size_t)n, "%s · %u of %u points%s%s", sweep_measure_names[p->look.measure], (unsigned)done,
             (unsigned)points, pass, left);
}

/* ---- keys ---- */

/* Along an axis of the picture: 0 down, 1 across. */
static void
move(struct sweep_panel *p, const struct view *v, int axis, long by)
{
    const struct knob_axis *axes;
    uint32_t at[SWEEP_AXES];
    look(p, v);
    if (dimensions(p, v) > 2) {
        long i = 0;
        const long n = (long)sweep_points(v->sweep);
        while (i < n && p->look.ranked[i] != p->look.point)
            i++;
        i += axis == 0 ? by : 0;
        p->look.point = p->look.ranked[i < 0 ? 0 : i >= n ? n - 1 : i];
    } else if (axis < (int)sweep_axes(v->sweep, &axes)) {
        sweep_place(v->sweep, p->look.point, at);
        const long to = (long)at[axis] + by, n = (long)axes[axis].n;
        at[axis] = (uint32_t)(to < 0 ? 0 : to >= n ? n - 1 : to);
        p->look.point = sweep_point_at(v->sweep, at);
    }
    p->moved = true;
}

static bool
take(const struct sweep_panel *p, const struct view *v)
{
    char line[40];
    snprintf(line, sizeof line, "sweep take %u", (unsigned)p->look.point + 1);
    v->host->command(v->host->user, line);
    return true;
}

static void
measure_next(struct sweep_panel *p, const struct view *v)
{
    p->look.measure = (p->look.measure + 1) % SWEEP_MEASURES;
    if (p->look.measure == SWEEP_TIMES && isnan(sweep_baseline(v->sweep).value))
        p->look.measure++;
}

static bool
key_sweep(void *state, const struct view *v, int key)
{
    struct sweep_panel *p = state;
    const long page = p->look.rows > 1 ? p->look.rows - 1 : 1;
    if (!active_sweep(v))
        return false;
    look(p, v);
    switch (key) {
    case 'j':
    case INPUT_DOWN: move(p, v, 0, 1); return true;
    case 'k':
    case INPUT_UP: move(p, v, 0, -1); return true;
    case 'h':
    case INPUT_LEFT: move(p, v, 1, -1); return true;
    case 'l':
    case INPUT_RIGHT: move(p, v, 1, 1); return true;
    case INPUT_PAGE_DOWN: move(p, v, 0, page); return true;
    case INPUT_PAGE_UP: move(p, v, 0, -page); return true;
    case INPUT_HOME: p->moved = false; return true;
    case INPUT_ENTER: return take(p, v);
    case 'c': measure_next(p, v); return true;
    case 'o': p->list = !p->list; return true;
    case 's': v->host->command(v->host->user, "command sweep csv sweep.csv"); return true;
    default: return false;
    }
}

static bool
mouse_sweep(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    struct sweep_panel *p = state;
    struct sweep_look *l = &p->look;
    (void)c;
    if (!active_sweep(v) || l->sweep != v->sweep)
        return false;
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN) {
        move(p, v, 0, action == MOUSE_WHEEL_UP ? -1 : 1);
        return true;
    }
    const int row = y - l->header;
    if ((action != MOUSE_PRESS && action != MOUSE_DOUBLE) || row < 0 || row >= l->rows)
        return false;
    look(p, v);
    uint32_t at[SWEEP_AXES] = {(uint32_t)(l->top + row)};
    const uint32_t n = sweep_points(v->sweep), how = dimensions(p, v);
    if (how == 2) {
        const int column = x >= l->label && l->cell > 0 ? (x - l->label) / l->cell : -1;
        if (column < 0 || column >= l->cols)
            return false;
        at[1] = (uint32_t)(l->left + column);
    }
    const uint32_t point = how <= 2 ? sweep_point_at(v->sweep, at) : at[0] < n ? l->ranked[at[0]] : n;
    if (point >= n)
        return false;
    l->point = point;
    p->moved = true;
    return action == MOUSE_DOUBLE ? take(p, v) : true;
}

static const struct key_help keys[] = {
    {"arrows PgUp PgDn", "choose a point; Home: the best one, whichever that is"},
    {"Enter", "take its values; double click; :sweep take N"},
    {"c", "the measure: tokens/s, × ar by the baseline among the runs, tokens a round, acceptance, modelled speed"},
    {"o", "all points in order, the best first, or the picture again"},
    {"s", "write them as CSV, which specscope plot draws; :sweep csv FILE"},
    {"★ ☆", "clearly the best; ☆: the best, but with no clear difference from others (two standard errors, more with "
            "few rounds)"},
    {"12 ±3", "one standard error, over rounds"},
    {"Esc", "stop it and keep what is there; :sweep goes on, and once all is there over all of it again"},
    {NULL, NULL},
};

extern const struct panel_ops panel_sweep;
const struct panel_ops panel_sweep = {
    .name = "sweep",
    .title = "sweep",
    .brief = "Enter take  c measure  o order  s save",
    .place = PANEL_MIDDLE,
    .weight = 6,
    .min_cols = 60,
    .active = active_sweep,
    .keys = keys,
    .open = open_sweep,
    .close = close_sweep,
    .draw = draw_sweep,
    .note = note_sweep,
    .key = key_sweep,
    .mouse = mouse_sweep,
};
