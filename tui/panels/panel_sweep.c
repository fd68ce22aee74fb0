/* A sweep during and after its runs: the measures of its points, the best point, and a cursor whose values Enter
 * sets. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/tune/knob_sweep.h"
#include "tui/panels/landscape.h"

struct sweep_look { /* the picture */
    const struct knob_sweep *sweep;
    enum sweep_measure measure;
    uint32_t point; /* the cursor */
    bool has_best;
    uint32_t best, near;             /* the best point, and how many points show no clear difference from it */
    float forecast;                  /* speedup in time of the cursor's point on the last tokens; NAN: unknown */
    double low, high;                /* of all measured points, with their errors; NAN: none */
    int top, left, rows, cols;       /* first shown row and column, and their numbers */
    int header, label, cell;         /* rows above, columns before, columns of a cell */
    uint32_t ranked[KNOB_GRID_MOST]; /* (points) the best first, unmeasured points last */
};

#define NUMBER 6 /* columns of a cell with number and star */

static void
sweep_number(double value, enum sweep_measure measure, char *out, size_t n)
{
    snprintf(out, n, "%.*f", measure != SWEEP_SPEED ? 2 : value < 99.5 ? 1 : 0, value);
}

/* "★": the point is clearly the best; "☆": it is the best, without a clear difference from others; " ": it is not. */
static const char *
sweep_star(const struct sweep_look *l, uint32_t point)
{
    if (!l->has_best || point != l->best)
        return " ";
    return l->near == 0 ? "★" : "☆";
}

/* Writes "412 ±6"; "": no value. */
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

/* Writes "1.46×"; "–": there was no draft or no complete round. */
static void
with_unit(double value, const char *unit, char *out, size_t n)
{
    snprintf(out, n, isnan(value) ? "–" : "%.2f%s", value, unit);
}

/* Draws a text after the last one, on the next row if this one is full. A text that does not fit is omitted. */
static void
put_after(const struct canvas *c, int *y, int *x, enum role role, const char *text)
{
    const int width = text_width(text);
    if (*x > 0 && *x + width > c->cols && *y + 1 < c->rows) {
        ++*y;
        *x = 0;
    }
    if (*x + width <= c->cols)
        *x += canvas_text(c, *y, *x, role, text) + 2;
}

/* Draws all measures of the cursor's point. */
static void
sweep_draw_details(const struct sweep_look *l, const struct canvas *c, int y)
{
    char text[160];
    int x = 0;
    sweep_text(l->sweep, l->point, text, sizeof text);
    put_after(c, &y, &x, ROLE_FOCUS, text);
    if (sweep_result(l->sweep, l->point) == NULL) {
        put_after(c, &y, &x, ROLE_DIM, "not run yet");
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
            put_after(c, &y, &x, ROLE_TEXT, text);
    }
    snprintf(text, sizeof text, "forecast %.2f×", (double)l->forecast);
    if (!isnan(l->forecast))
        put_after(c, &y, &x, ROLE_TEXT, text);
    if (!l->has_best || l->point != l->best)
        return;
    char standing[64];
    sweep_standing(l->sweep, l->measure, l->best, l->near, standing, sizeof standing);
    snprintf(text, sizeof text, "%s%s", l->near == 0 ? "clearly the best" : "the best; ", l->near == 0 ? "" : standing);
    put_after(c, &y, &x, l->near == 0 ? ROLE_OK : ROLE_DIM, text);
}

static void
value_text(const struct knob_sweep *s, uint32_t axis, uint32_t i, char *out, size_t n)
{
    const struct knob_axis *axes = s->axis;
    knob_format(s->knob[axis], knob_axis_value(&axes[axis], s->knob[axis], i), out, n);
}

static int
widest(const struct knob_sweep *s, uint32_t axis, uint32_t n)
{
    int width = 1;
    for (uint32_t i = 0; i < n; i++) {
        char text[32];
        value_text(s, axis, i, text, sizeof text);
        width = text_width(text) > width ? text_width(text) : width;
    }
    return width;
}

static void
draw_cell(const struct sweep_look *l, const struct canvas *c, int y, int x, uint32_t point)
{
    const struct estimate e = sweep_estimate(l->sweep, point, l->measure);
    const bool here = point == l->point;
    char number[24] = "", text[40];
    if (isnan(e.value)) {
        const bool runs = sweep_running(l->sweep) && point == sweep_at(l->sweep);
        canvas_styled(c, y, x + l->cell / 2, runs ? ROLE_KNOB_PENDING : ROLE_DIM, NAN, here ? MARK_CURSOR : MARK_NONE,
                      runs ? "◌" : "·");
        return;
    }
    const double span = l->high - l->low, ar = sweep_baseline(l->sweep).value;
    const double one = l->measure == SWEEP_TIMES || l->measure == SWEEP_MODELLED ? 1
                       : l->measure == SWEEP_SPEED                               ? ar
                                                                                 : NAN;
    const float heat = !isnan(one) ? landscape_heat(e.value / one, l->low / one, l->high / one)
                       : span > 0  ? (float)(0.05 + 0.95 * (e.value - l->low) / span)
                                   : 0.5F;
    sweep_number(e.value, l->measure, number, sizeof number);
    const bool fits = text_width(number) + 1 <= l->cell;
    snprintf(text, sizeof text, "%s%s", fits ? number : "", sweep_star(l, point));
    canvas_heat(c, y, x, l->cell, heat,
                (here ? MARK_CURSOR : MARK_NONE) | (l->has_best && point == l->best ? MARK_BOLD : MARK_NONE), text);
}

/* Draws the part of the map around the cursor that fits, and stores its place in *l, as the following functions do. */
static void
sweep_draw_map(struct sweep_look *l, const struct canvas *c)
{
    const struct knob_axis *axes = l->sweep->axis;
    uint32_t at[SWEEP_AXES];
    char text[64], down[32];
    sweep_place(l->sweep, l->point, at);
    const int n_down = (int)axes[0].n, n_across = (int)axes[1].n;
    snprintf(down, sizeof down, "%s", l->sweep->knob[0]->name);
    l->label = 1 + widest(l->sweep, 0, axes[0].n);
    l->label = text_width(down) + 1 > l->label && c->cols > 40 ? text_width(down) + 1 : l->label;
    const int across = widest(l->sweep, 1, axes[1].n) + 1;
    int room = c->cols - l->label - text_width(l->sweep->knob[1]->name) - 1;
    l->cell = room / n_across >= NUMBER ? room / n_across < 10 ? room / n_across : 10 : across > 3 ? across : 3;
    l->header = c->rows > 2 ? 1 : 0;
    if (room < l->cell)
        room = c->cols - l->label;
    l->cols = room / l->cell < n_across ? room / l->cell : n_across;
    l->rows = c->rows - l->header - (c->rows > 3 ? 1 : 0);
    l->rows = l->rows < n_down ? l->rows : n_down;
    l->top = panel_scroll(l->top, (int)at[0], n_down, l->rows);
    l->left = panel_scroll(l->left, (int)at[1], n_across, l->cols);
    if (l->header > 0) { /* each knob's name is beside its values */
        canvas_text(c, 0, 0, ROLE_KNOB, down);
        canvas_text(c, 0, l->label + l->cols * l->cell + 1, ROLE_KNOB, l->sweep->knob[1]->name);
    }
    for (int i = 0; i < l->cols && l->header > 0; i++) {
        value_text(l->sweep, 1, (uint32_t)(l->left + i), text, sizeof text);
        canvas_text(c, 0, l->label + i * l->cell, l->left + i == (int)at[1] ? ROLE_FOCUS : ROLE_DIM, text);
    }
    for (int y = 0; y < l->rows; y++) {
        uint32_t cell[SWEEP_AXES] = {(uint32_t)(l->top + y)};
        value_text(l->sweep, 0, cell[0], text, sizeof text);
        canvas_text(c, l->header + y, 0, cell[0] == at[0] ? ROLE_FOCUS : ROLE_DIM, text);
        for (int i = 0; i < l->cols; i++) {
            cell[1] = (uint32_t)(l->left + i);
            draw_cell(l, c, l->header + y, l->label + i * l->cell, sweep_point_at(l->sweep, cell));
        }
    }
    if (c->rows > 3)
        sweep_draw_details(l, c, l->header + l->rows);
}

#define NUMBERS    14 /* "412 ±6" */
#define TIMES_FROM 72 /* columns of a list with × ar */

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
        canvas_text(c, y, x + i, ROLE_DIM, "─");
    canvas_text(c, y, x + place(l, e.value, width), l->has_best ? ROLE_SERIES_1 : ROLE_TEXT, "●");
}

static void
sweep_draw_line(struct sweep_look *l, const struct canvas *c)
{
    const int n = (int)l->sweep->n_points;
    const struct knob *k = l->sweep->knob[0];
    char text[64];
    l->header = c->rows > 3 ? 1 : 0;
    l->label = 10;
    l->rows = c->rows - l->header - (c->rows > 5 ? 1 : 0);
    l->rows = l->rows < n ? l->rows : n;
    l->top = panel_scroll(l->top, (int)l->point, n, l->rows);
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
            canvas_text(c, l->header + y, 0, ROLE_FOCUS, "▸");
        canvas_text(c, l->header + y, 1, ROLE_OK, sweep_star(l, point));
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

/* The column × ar needs room, or takes the speed's column if it is the measure. */
static bool
has_column(const struct sweep_look *l, const struct canvas *c, int measure)
{
    const bool wide = c->cols >= TIMES_FROM, known = !isnan(sweep_baseline(l->sweep).value);
    if (measure == SWEEP_TIMES)
        return known && (wide || l->measure == SWEEP_TIMES);
    return measure != SWEEP_SPEED || wide || l->measure != SWEEP_TIMES;
}

static void
sweep_draw_list(struct sweep_look *l, const struct canvas *c)
{
    const int n = (int)l->sweep->n_points;
    int at = 0;
    while (at < n && l->ranked[at] != l->point)
        at++;
    l->header = c->rows > 3 ? 1 : 0;
    l->rows = c->rows - l->header < n ? c->rows - l->header : n;
    l->top = panel_scroll(l->top, at, n, l->rows);
    static const int width[SWEEP_MEASURES] = {14, 13, 7, 7, 9};
    static const char *const head[SWEEP_MEASURES] = {"tok/s", "× ar", "t/rnd", "acc", "(model)"};
    int x[SWEEP_MEASURES], right = c->cols;
    for (int k = SWEEP_MEASURES - 1; k >= 0; k--) /* the columns' ends */
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
            canvas_text(c, l->header + y, 0, ROLE_FOCUS, "▸");
        canvas_text(c, l->header + y, 1, ROLE_OK, sweep_star(l, point));
        canvas_word(c, l->header + y, 2, what, here ? ROLE_FOCUS : ROLE_TEXT, MARK_NONE, knobs);
        with_error(sweep_estimate(l->sweep, point, SWEEP_SPEED), SWEEP_SPEED, text[SWEEP_SPEED], sizeof text[0]);
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

struct sweep_panel {
    struct sweep_look look;
    double value[KNOB_GRID_MOST]; /* by point, of the measure */
    bool moved;                   /* false: the cursor is on the best point, or the first */
    bool list;                    /* shows a list for any number of knobs */
};

static bool
active_sweep(const struct view *v)
{
    return v->sweep != NULL && v->sweep->n_points > 0 && (sweep_running(v->sweep) || sweep_measured(v->sweep) > 0);
}

/* The number of knobs in the picture: 1: lines, 2: a map, more: a list. */
static uint32_t
dimensions(const struct sweep_panel *p, const struct view *v)
{
    return p->list ? SWEEP_AXES : v->sweep->n_axes;
}

/* Sorts the points: the best first, unmeasured ones last. */
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

/* Returns the forecast of the cursor's point from the landscape: that of one knob while all others keep their values,
 * or of the grid of two. NAN: there is none in time. */
static float
forecast_of(const struct sweep_look *l, const struct view *v)
{
    const struct landscape *land = v->landscape;
    const struct policy_info *policy = l->sweep->policy;
    uint32_t at[2] = {0};
    const uint32_t n = l->sweep->n_axes;
    if (land == NULL || land->tokens == 0 || !land->now.in_time || strcmp(land->policy, policy->name) != 0)
        return NAN;
    for (uint32_t a = 0; a < n && a < 2; a++) {
        const struct knob *knob = l->sweep->knob[a];
        const uint32_t k = (uint32_t)(knob - policy->knobs), points = n == 1 ? land->strip[k].n : land->grid.n[a];
        if (n > 2 || points == 0 || (n == 2 && (!land->grid.open || land->grid.knob[a] != k)))
            return NAN;
        at[a] = landscape_nearest(knob, points, sweep_value(l->sweep, l->point, a));
        if (n == 1)
            return land->strip[k].speedup[at[0]];
    }
    return n == 2 ? land->grid.cell[at[1]][at[0]].speedup : NAN;
}

static void
update(struct sweep_panel *p, const struct view *v)
{
    struct sweep_look *l = &p->look;
    const uint32_t n = v->sweep->n_points;
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
    l->forecast = forecast_of(l, v);
    if (dimensions(p, v) > 2)
        rank(p, n);
}

static void
draw_sweep(void *state, const struct view *v, const struct canvas *c)
{
    struct sweep_panel *p = state;
    if (!active_sweep(v))
        return;
    update(p, v);
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
    const uint32_t done = sweep_done(v->sweep), points = v->sweep->n_points;
    if (sweep_running(v->sweep) && !isnan(sweep_left_s(v->sweep)))
        snprintf(left, sizeof left, ", %.0f s left", ceil(sweep_left_s(v->sweep)));
    else if (!sweep_running(v->sweep) && done < points)
        snprintf(left, sizeof left, ", stopped");
    char pass[32] = "";
    if (v->sweep->pass > 1)
        snprintf(pass, sizeof pass, " of pass %u", (unsigned)v->sweep->pass);
    snprintf(out, (size_t)n, "%s · %u of %u points%s%s", sweep_measure_names[p->look.measure], (unsigned)done,
             (unsigned)points, pass, left);
}

/* ---- keys ---- */

/* Moves along an axis of the picture: 0 down, 1 across. */
static void
move(struct sweep_panel *p, const struct view *v, int axis, long by)
{
    const struct knob_axis *axes = v->sweep->axis;
    uint32_t at[SWEEP_AXES];
    update(p, v);
    if (dimensions(p, v) > 2) {
        long i = 0;
        const long n = (long)v->sweep->n_points;
        while (i < n && p->look.ranked[i] != p->look.point)
            i++;
        i += axis == 0 ? by : 0;
        p->look.point = p->look.ranked[i < 0 ? 0 : i >= n ? n - 1 : i];
    } else if (axis < (int)v->sweep->n_axes) {
        sweep_place(v->sweep, p->look.point, at);
        const long to = (long)at[axis] + by, n = (long)axes[axis].n;
        at[axis] = (uint32_t)(to < 0 ? 0 : to >= n ? n - 1 : to);
        p->look.point = sweep_point_at(v->sweep, at);
    }
    p->moved = true;
}

static bool
set_values(const struct sweep_panel *p, const struct view *v)
{
    panel_command(v, "sweep take %u", (unsigned)p->look.point + 1);
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
    update(p, v);
    const struct step by = input_step(key, page);
    if (by.down != 0 || by.right != 0) {
        move(p, v, by.right != 0, by.down + by.right);
        return true;
    }
    switch (key) {
    case INPUT_HOME: p->moved = false; return true;
    case INPUT_ENTER: return set_values(p, v);
    case 'c': measure_next(p, v); return true;
    case 'o': p->list = !p->list; return true;
    case 's': panel_command(v, "command sweep csv sweep.csv"); return true;
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
    if (mouse_wheel(action) != 0) {
        move(p, v, 0, mouse_wheel(action));
        return true;
    }
    const int row = y - l->header;
    if ((action != MOUSE_PRESS && action != MOUSE_DOUBLE) || row < 0 || row >= l->rows)
        return false;
    update(p, v);
    uint32_t at[SWEEP_AXES] = {(uint32_t)(l->top + row)};
    const uint32_t n = v->sweep->n_points, how = dimensions(p, v);
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
    return action == MOUSE_DOUBLE ? set_values(p, v) : true;
}

static const struct key_help keys[] = {
    {"arrows PgUp PgDn", "choose a point; Home: the best one, whichever that is"},
    {"Enter", "take its values; double click; :sweep take N"},
    {"c", "the measure: tokens/s, × ar by the baseline among the runs, tokens a round, acceptance, modelled speed"},
    {"colours", "the measure; of a speed, cold below autoregressive decoding's and warm above it"},
    {"o", "all points in order, the best first, or the picture again"},
    {"s", "write them as CSV, which the command plot draws; :sweep csv FILE"},
    {"★ ☆", "clearly faster than each other point, compared pass by pass; ☆: the best, but not clearly. One pass gives "
            "no verdict, three can"},
    {"12 ±3", "one standard error: over passes, in one pass over rounds"},
    {"Esc", "stop it and keep the results; :sweep resumes it, or repeats a complete one"},
    {NULL, NULL},
};

const struct panel_ops panel_sweep = {
    .name = "sweep",
    .title = "sweep",
    .brief = "Enter take  c measure  o order  s save",
    .place = PANEL_MIDDLE,
    .weight = 6,
    .min_cols = 60,
    .active = active_sweep,
    .keys = keys,
    .state_size = sizeof(struct sweep_panel),
    .draw = draw_sweep,
    .note = note_sweep,
    .key = key_sweep,
    .mouse = mouse_sweep,
};
