#include "tui/panels/landscape.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LEAST_RANGE 0.05 /* of a speedup: a smaller range is drawn as nearly flat */

uint32_t
landscape_points(const struct knob *k, uint32_t most)
{
    const double steps = k->kind == KNOB_CHOICE ? k->max : k->step > 0 ? (k->max - k->min) / k->step : most;
    const double n = floor(steps + 1e-9) + 1;
    return n < most ? (uint32_t)n : most;
}

uint32_t
landscape_nearest(const struct knob *k, uint32_t n, double value)
{
    const double at = k->max > k->min ? (value - k->min) / (k->max - k->min) * (n - 1) : 0;
    return (uint32_t)lrint(fmin(fmax(at, 0), n - 1));
}

double
landscape_value(const struct knob *k, uint32_t n, uint32_t point, double in_force)
{
    double value = n > 1 ? k->min + (k->max - k->min) * point / (n - 1) : k->min;
    if (point == landscape_nearest(k, n, in_force))
        return in_force;
    return knob_check(k, fmin(value, k->max), &value, NULL) ? value : k->min;
}

/* ---- strips ---- */

struct range {
    float low, high;
};

static void
widen(struct range *r, float value)
{
    if (isnan(value))
        return;
    r->low = isnan(r->low) || value < r->low ? value : r->low;
    r->high = isnan(r->high) || value > r->high ? value : r->high;
}

/* A value's place between low and high, 0 to 1. If the range is very small, the place is near the middle. */
static double
place(const struct range *r, float value)
{
    const double span = (double)(r->high - r->low), least = LEAST_RANGE * (double)r->high;
    return span > least ? (double)(value - r->low) / span : 0.5 + (double)(value - (r->low + r->high) / 2) / least;
}

#define LOSS    0.4   /* the warmest loss on the heat scale; 1 - LOSS is the coldest gain */
#define NEUTRAL 0.005 /* of a speedup: smaller differences from 1 are none */

float
landscape_heat(double speedup, double low, double high)
{
    const bool gain = speedup > 1;
    const double from = gain ? fmax(low, 1) : low, to = gain ? high : fmin(high, 1),
                 at = (speedup - from) / fmax(to - from, LEAST_RANGE);
    if (isnan(speedup) || fabs(speedup - 1) < NEUTRAL)
        return isnan(speedup) ? NAN : 0.5F;
    return (float)(gain ? 1 - LOSS + LOSS * fmin(at, 1) : LOSS * fmin(at, 1));
}

#define FAINTEST 0.3 /* of the heat scale: fainter ink is not visible */

static void
draw_point(const struct canvas *c, int y, int x, const struct range *r, float value)
{
    const double at = isnan(value) ? 0 : fmin(fmax(place(r, value), 0), 1);
    if (isnan(value))
        canvas_text(c, y, x, ROLE_DIM, "·");
    else
        canvas_styled(
            c, y, x, ROLE_TEXT,
            (float)(FAINTEST + (1 - FAINTEST) * (double)landscape_heat((double)value, (double)r->low, (double)r->high)),
            MARK_INK, canvas_level(at));
}

/* Draws a cell of the grid as heat, or as a height if there are no colours, with its mark and, if there is room, its
 * number. */
static void
draw_cell(const struct canvas *c, int y, int x, int width, const struct range *r, float value, unsigned marks,
          const char *mark)
{
    const float at = landscape_heat((double)value, (double)r->low, (double)r->high);
    char text[32];
    snprintf(text, sizeof text, "%s", mark);
    if (width >= 4 && !isnan(value))
        snprintf(text, sizeof text, "%s%.*f", mark[0] != '\0' ? mark : " ", width > 4 ? 2 : 1, (double)value);
    else if (c->grid->mono && width < 3 && mark[0] == '\0')
        snprintf(text, sizeof text, "%s", canvas_level(isnan(value) ? 0 : (double)at));
    canvas_heat(c, y, x, width, at, marks, text);
}

void
landscape_draw_strip(const struct landscape_strip *s, const struct canvas *c, int y, int x, int width, double fraction,
                     enum role role)
{
    const int track = width - 2;
    struct range r = {NAN, NAN};
    for (uint32_t i = 0; i < s->n; i++)
        widen(&r, s->speedup[i]);
    canvas_text(c, y, x, ROLE_DIM, "├");
    canvas_text(c, y, x + width - 1, ROLE_DIM, "┤");
    for (int i = 0; i < track; i++) {
        const uint32_t point = track > 1 ? (uint32_t)lrint((double)i / (track - 1) * (s->n - 1)) : 0;
        draw_point(c, y, x + 1 + i, &r, s->speedup[point]);
    }
    canvas_text(c, y, x + 1 + (int)lrint(fmin(fmax(fraction, 0), 1) * (track - 1)), role, "●");
}

void
landscape_best(const struct landscape *l, const struct policy_info *policy, uint32_t knob, char *out, size_t n)
{
    const struct landscape_strip *s = &l->strip[knob];
    struct range r = {NAN, NAN};
    char value[40];
    out[0] = '\0';
    for (uint32_t i = 0; i < s->n; i++)
        widen(&r, s->speedup[i]);
    if (s->n >= 2 && r.high < 1) {
        snprintf(out, n, "no value gains (at most %.2f×)", (double)r.high);
        return;
    }
    if (s->n < 2 || s->best >= s->n)
        return;
    knob_format(&policy->knobs[knob], landscape_value(&policy->knobs[knob], s->n, s->best, l->values[knob]), value,
                sizeof value);
    const int used = snprintf(out, n, "best %s: %.2f× ±%.2f", value, (double)s->speedup[s->best], (double)s->best_se);
    if (l->now.in_time && used >= 0 && (size_t)used < n)
        snprintf(out + used, n - (size_t)used, " (%.2f×)", (double)s->best_modelled);
}

/* ---- the grid ---- */

static const char *
label(const struct knob *k)
{
    return k->symbol[0] != '\0' ? k->symbol : k->name;
}

#define NARROW 64 /* columns: below this width the forecast takes four rows instead of two */

/* Returns the rows of the forecast; the grid keeps at least two rows and its axis. */
static int
forecast_rows(const struct canvas *c, int axis)
{
    const int wanted = c->cols < NARROW ? 4 : 2, room = c->rows - axis - 2;
    return room >= wanted ? wanted : room > 1 ? room : c->rows > 1;
}

/* "0.75"; "–": there would be no drafts. */
static const char *
number(float value, char out[16])
{
    snprintf(out, 16, isnan(value) ? "–" : "%.2f", (double)value);
    return out;
}

/* Formats a value of an axis. */
static const char *
axis_value(const struct landscape *l, const struct policy_info *policy, int axis, uint32_t point, char out[40])
{
    const struct landscape_grid *g = &l->grid;
    const struct knob *k = &policy->knobs[g->knob[axis]];
    knob_format(k, landscape_value(k, g->n[axis], point, l->values[g->knob[axis]]), out, 40);
    return out;
}

/* "E 3  γ 2" */
static const char *
point_text(const struct landscape *l, const struct policy_info *policy, const uint32_t at[2], char out[160])
{
    const uint32_t *knob = l->grid.knob;
    char across[40], up[40];
    snprintf(out, 160, "%s %s  %s %s", label(&policy->knobs[knob[0]]), axis_value(l, policy, 0, at[0], across),
             label(&policy->knobs[knob[1]]), axis_value(l, policy, 1, at[1], up));
    return out;
}

/* The position of the next figure, on rows y to end. */
struct figures {
    const struct canvas *c;
    int y, x, end;
};

/* Draws a figure, on the next row if the current one is full. A figure that does not fit is omitted. */
__attribute__((format(printf, 3, 4))) static void
put(struct figures *p, enum role role, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (p->x > 0 && p->x + text_width(text) > p->c->cols) {
        p->x = 0;
        p->y++;
    }
    if (p->y < p->end && text_width(text) <= p->c->cols)
        p->x += canvas_text(p->c, p->y, p->x, role, text) + 2;
}

static void
draw_forecast(const struct landscape *l, const struct policy_info *policy, const struct canvas *c, int y, int rows,
              const uint32_t at[2])
{
    const struct landscape_grid *g = &l->grid;
    const struct landscape_cell *f = &g->cell[at[1]][at[0]];
    struct figures p = {.c = c, .y = y, .end = y + rows};
    char text[160], acceptance[16];
    put(&p, ROLE_FOCUS, "%s", point_text(l, policy, at, text));
    put(&p, ROLE_TEXT, "%.2f× ±%.2f", (double)f->speedup, (double)f->se);
    if (l->now.in_time)
        put(&p, ROLE_DIM, "modelled %.2f×", (double)f->modelled);
    if (g->has_best)
        put(&p, ROLE_OK, "%s %s  %.2f×", "★", point_text(l, policy, g->best, text),
            (double)g->cell[g->best[1]][g->best[0]].speedup);
    put(&p, ROLE_DIM, "now %.2f×", (double)l->now.speedup);
    put(&p, ROLE_DIM, "%.2f tokens/round", (double)f->tokens_per_round);
    put(&p, ROLE_DIM, "acceptance %s", number(f->acceptance, acceptance));
    put(&p, ROLE_DIM, "%.1f layers", (double)f->layers);
    put(&p, ROLE_DIM, "%.1f heads a token", (double)f->heads);
}

/* Returns the first shown of n values, if only `shown` around the cursor fit. */
static int
around(int at, int shown, int n)
{
    const int first = at - shown / 2 < 0 ? 0 : at - shown / 2;
    return first + shown > n ? n - shown : first;
}

#define MARGIN 7 /* columns of the vertical axis */

/* Draws a text that ends before column `end`, cut if it is too long. */
static void
put_before(const struct canvas *c, int y, int end, enum role role, const char *text)
{
    const int width = text_width(text) < end ? text_width(text) : end;
    canvas_word(c, y, end - width, width, role, MARK_NONE, text);
}

/* The points that are drawn, and the width of a column. */
struct window {
    int left, cols, wide, bottom, high;
};

/* Draws the names of both knobs and the values of the horizontal axis: the cursor's, and others as far as they fit. */
static void
draw_axis(const struct landscape *l, const struct policy_info *policy, const struct canvas *c, int y,
          const struct window *w, uint32_t cursor)
{
    const char *up = label(&policy->knobs[l->grid.knob[1]]), *across = label(&policy->knobs[l->grid.knob[0]]);
    const int end = c->cols - text_width(across) - 2;
    char text[40], here[40];
    const int length = text_width(axis_value(l, policy, 0, cursor, here)), last = end - length - 1;
    int from = MARGIN + ((int)cursor - w->left) * w->wide;
    from = from > last && last > MARGIN ? last : from;
    put_before(c, y, MARGIN - 3, ROLE_TITLE, up);
    canvas_text(c, y, MARGIN - 2, ROLE_TITLE, "↑");
    canvas_text(c, y, from, ROLE_FOCUS, here);
    int free_from = MARGIN;
    for (int i = 0; i < w->cols; i++) {
        const int x = MARGIN + i * w->wide, width = text_width(axis_value(l, policy, 0, (uint32_t)(w->left + i), text));
        if (x < free_from || x + width >= end || (x + width >= from && x <= from + length))
            continue;
        canvas_text(c, y, x, ROLE_DIM, text);
        free_from = x + width + 1;
    }
    free_from = from + length + 1 > free_from ? from + length + 1 : free_from;
    canvas_print(c, y, end > free_from ? end : free_from, ROLE_TITLE, "%s %s", across, "→");
}

static struct window
window_of(const struct landscape_grid *g, const struct canvas *c, int rows, const uint32_t at[2])
{
    const int room = c->cols - MARGIN, n = (int)g->n[0], high = rows < (int)g->n[1] ? rows : (int)g->n[1];
    const int cols = n < room ? n : room;
    return (struct window){.left = around((int)at[0], cols, n),
                           .cols = cols,
                           .wide = room / n > 0 ? room / n : 1,
                           .bottom = around((int)at[1], high, (int)g->n[1]),
                           .high = high};
}

static void
draw_grid(const struct landscape *l, const struct policy_info *policy, const struct canvas *c, const uint32_t at[2],
          const double in_force[2])
{
    const struct landscape_grid *g = &l->grid;
    const struct knob *k[2] = {&policy->knobs[g->knob[0]], &policy->knobs[g->knob[1]]};
    if (g->n[0] == 0 || g->n[1] == 0) {
        canvas_print(c, 0, 0, ROLE_DIM, "%s × %s: computing …", label(k[0]), label(k[1]));
        return;
    }
    const int axis = c->rows > 2, lines = forecast_rows(c, axis);
    const struct window w = window_of(g, c, c->rows - lines - axis, at);
    const uint32_t now[2] = {landscape_nearest(k[0], g->n[0], in_force[0]),
                             landscape_nearest(k[1], g->n[1], in_force[1])};
    struct range r = {NAN, NAN};
    for (uint32_t i = 0; i < g->n[1]; i++)
        for (uint32_t j = 0; j < g->n[0]; j++)
            widen(&r, g->cell[i][j].speedup);
    for (int y = 0; y < w.high; y++) {
        const uint32_t i = (uint32_t)(w.bottom + w.high - 1 - y);
        char text[40];
        put_before(c, y, MARGIN - 1, i == at[1] ? ROLE_FOCUS : ROLE_DIM, axis_value(l, policy, 1, i, text));
        for (int x = 0; x < w.cols; x++) {
            const uint32_t j = (uint32_t)(w.left + x);
            const bool cursor = j == at[0] && i == at[1], here = j == now[0] && i == now[1],
                       best = g->has_best && j == g->best[0] && i == g->best[1];
            draw_cell(c, y, MARGIN + x * w.wide, w.wide, &r, g->cell[i][j].speedup, cursor ? MARK_CURSOR : MARK_NONE,
                      here     ? "●"
                      : best   ? "★"
                      : cursor ? "+"
                               : "");
        }
    }
    if (axis)
        draw_axis(l, policy, c, w.high, &w, at[0]);
    draw_forecast(l, policy, c, w.high + axis, lines, at);
}

const struct landscape_strip *
landscape_strip_of(const struct view *v, uint32_t knob)
{
    const struct landscape *l = v->landscape;
    const bool known = l != NULL && l->tokens > 0 && strcmp(l->policy, scope_policy(v->scope)->name) == 0;
    return known && l->strip[knob].n > 1 ? &l->strip[knob] : NULL;
}

bool
landscape_grid_is_open(const struct view *v)
{
    return v->landscape != NULL && v->landscape->grid.open &&
           strcmp(v->landscape->policy, scope_policy(v->scope)->name) == 0;
}

bool
landscape_note(const struct view *v, uint32_t knob, char *out, size_t n)
{
    const struct landscape *l = v->landscape;
    if (landscape_grid_is_open(v))
        snprintf(out, n, "what if, %u tokens", (unsigned)l->tokens);
    else if (landscape_strip_of(v, knob) == NULL)
        return false;
    else if (l->seq != scope_focus(v->scope)) /* the sequence in focus has no forecast yet */
        snprintf(out, n, "forecast for sequence %u", (unsigned)l->seq + 1);
    else
        landscape_best(l, scope_policy(v->scope), knob, out, n);
    return true;
}

/* Places the cursor on the current values when the grid opens. */
static void
place_cursor(struct landscape_cursor *k, const struct view *v)
{
    const struct landscape_grid *g = &v->landscape->grid;
    if (k->placed || g->n[0] == 0)
        return;
    for (int i = 0; i < 2; i++)
        k->at[i] =
            landscape_nearest(&scope_policy(v->scope)->knobs[g->knob[i]], g->n[i], scope_knob(v->scope, g->knob[i]));
    k->placed = true;
}

void
landscape_grid_draw(struct landscape_cursor *k, const struct view *v, const struct canvas *c)
{
    const struct landscape_grid *g = &v->landscape->grid;
    const double in_force[2] = {scope_knob(v->scope, g->knob[0]), scope_knob(v->scope, g->knob[1])};
    place_cursor(k, v);
    const struct canvas inside = canvas_inside(c, 0, 1, c->rows, c->cols - 2);
    draw_grid(v->landscape, scope_policy(v->scope), &inside, k->at, in_force);
}

static void
adopt(const struct landscape_cursor *k, const struct view *v)
{
    const struct landscape_grid *g = &v->landscape->grid;
    for (int i = 0; i < 2; i++) {
        const struct knob *knob = &scope_policy(v->scope)->knobs[g->knob[i]];
        const double value = landscape_value(knob, g->n[i], k->at[i], v->landscape->values[g->knob[i]]);
        char text[40];
        if (value == scope_knob(v->scope, g->knob[i]))
            continue;
        knob_format(knob, value, text, sizeof text);
        if (!panel_command(v, "set %s %s", knob->name, text))
            return;
    }
    panel_command(v, "what-if close");
}

static void
step(struct landscape_cursor *k, const struct view *v, int axis, long by)
{
    const uint32_t n = v->landscape->grid.n[axis];
    const int64_t to = (int64_t)k->at[axis] + by;
    if (n > 0)
        k->at[axis] = to < 0 ? 0 : to >= n ? n - 1 : (uint32_t)to;
}

void
landscape_grid_ask(struct landscape_cursor *k, const struct view *v, uint32_t knob)
{
    const struct policy_info *policy = scope_policy(v->scope);
    k->placed = false;
    if (policy->n_knobs < 2) {
        panel_print(v, "what-if wants two knobs to open a grid");
        return;
    }
    panel_command(v, "what-if %s %s", policy->knobs[knob].name, policy->knobs[(knob + 1) % policy->n_knobs].name);
}

bool
landscape_grid_key(struct landscape_cursor *k, const struct view *v, int key)
{
    place_cursor(k, v);
    const struct step by = input_step(key, 10);
    const long far = key == INPUT_SHIFT_LEFT ? -10 : key == INPUT_SHIFT_RIGHT ? 10 : 0;
    if (by.right != 0 || by.down != 0 || far != 0) {
        step(k, v, by.down != 0, by.right + far - by.down);
        return true;
    }
    switch (key) {
    case INPUT_ENTER:
        if (k->placed)
            adopt(k, v);
        return true;
    case 'w':
    case INPUT_ESCAPE: panel_command(v, "what-if close"); return true;
    default: return false;
    }
}
