#include "tui/panels/landscape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEAST_RANGE 0.05 /* of a speedup: less is drawn as nearly flat */

uint32_t
landscape_points(const struct knob *k, uint32_t most)
{
    const double steps = k->kind == KNOB_CHOICE ? k->max : k->step > 0 ? (k->max - k->min) / k->step : most;
    const double n = floor(steps + 1e-9) + 1;
    return n < most ? (uint32_t)n : most;
}

double
landscape_value(const struct knob *k, uint32_t n, uint32_t point)
{
    double value = n > 1 ? k->min + (k->max - k->min) * point / (n - 1) : k->min;
    if (!knob_check(k, fmin(value, k->max), &value, NULL))
        return k->min;
    return value;
}

uint32_t
landscape_nearest(const struct knob *k, uint32_t n, double value)
{
    const double at = k->max > k->min ? (value - k->min) / (k->max - k->min) * (n - 1) : 0;
    return (uint32_t)lrint(fmin(fmax(at, 0), n - 1));
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

/* A value's place between low and high; the middle of nearly nothing is in the middle. */
static double
place(const struct range *r, float value)
{
    const double span = (double)(r->high - r->low), least = LEAST_RANGE * (double)r->high;
    return span > least ? (double)(value - r->low) / span : 0.5 + (double)(value - (r->low + r->high) / 2) / least;
}

#define FAINTEST 0.3 /* of the scale: what is drawn in it must be seen */

static void
draw_point(const struct canvas *c, int y, int x, const struct range *r, float value)
{
    const double at = isnan(value) ? 0 : fmin(fmax(place(r, value), 0), 1);
    if (isnan(value))
        canvas_text(c, y, x, ROLE_DIM, "·");
    else
        canvas_styled(c, y, x, ROLE_TEXT, (float)(FAINTEST + (1 - FAINTEST) * at), MARK_INK, canvas_level(at));
}

/* A cell of the grid: its colour says it, and where there are none a height. */
static void
draw_cell(const struct canvas *c, int y, int x, int width, const struct range *r, float value, unsigned marks,
          const char *text)
{
    const double at = isnan(value) ? 0 : fmin(fmax(place(r, value), 0), 1);
    if (c->grid->mono && width < 3)
        text = text[0] != '\0' ? text : canvas_level(at);
    canvas_heat(c, y, x, width, isnan(value) ? NAN : (float)at, marks, text);
}

void
landscape_draw_strip(const struct landscape_strip *s, const struct canvas *c, int y, int x, int width, double fraction,
                     enum role role)
{
    const int track = width - 2;
    struct range r = {NAN, NAN};
    for (uint32_t i = 0; i < s->n; i++)
        widen(&r, s->modelled[i]);
    canvas_text(c, y, x, ROLE_DIM, "├");
    canvas_text(c, y, x + width - 1, ROLE_DIM, "┤");
    for (int i = 0; i < track; i++) {
        const uint32_t point = track > 1 ? (uint32_t)lrint((double)i / (track - 1) * (s->n - 1)) : 0;
        draw_point(c, y, x + 1 + i, &r, s->modelled[point]);
    }
    canvas_text(c, y, x + 1 + (int)lrint(fmin(fmax(fraction, 0), 1) * (track - 1)), role, "●");
}

void
landscape_best(const struct landscape *l, const struct policy_info *policy, uint32_t knob, char *out, size_t n)
{
    const struct landscape_strip *s = &l->strip[knob];
    char value[40];
    out[0] = '\0';
    if (s->n < 2 || s->best >= s->n)
        return;
    knob_format(&policy->knobs[knob], landscape_value(&policy->knobs[knob], s->n, s->best), value, sizeof value);
    snprintf(out, n, "best %s: %.2f× ±%.2f", value, (double)s->modelled[s->best], (double)s->best_se);
}

/* ---- the grid ---- */

static const char *
label(const struct knob *k)
{
    return k->symbol[0] != '\0' ? k->symbol : k->name;
}

#define NARROW 64 /* columns: below, what is foretold takes four lines instead of two */

static int
forecast_rows(const struct canvas *c)
{
    return c->cols < NARROW ? 4 : 2;
}

/* "0.75"; "–": nothing would have been drafted. */
static const char *
number(float value, char out[16])
{
    snprintf(out, 16, isnan(value) ? "–" : "%.2f", (double)value);
    return out;
}

static void
draw_forecast(const struct landscape *l, const struct policy_info *policy, const struct canvas *c, int y,
              const uint32_t at[2])
{
    const struct landscape_grid *g = &l->grid;
    const struct knob *k[2] = {&policy->knobs[g->knob[0]], &policy->knobs[g->knob[1]]};
    const struct forecast *f = &g->cell[at[1]][at[0]];
    const bool narrow = forecast_rows(c) > 2;
    char value[2][40], acceptance[16];
    for (int i = 0; i < 2; i++)
        knob_format(k[i], landscape_value(k[i], g->n[i], at[i]), value[i], sizeof value[i]);
    int x = canvas_print(c, y, 0, ROLE_FOCUS, "%s %s  %s %s", label(k[0]), value[0], label(k[1]), value[1]) + 2;
    if (narrow) {
        y++;
        x = 0;
    }
    x += canvas_print(c, y, x, ROLE_TEXT, "%.2f×", (double)f->modelled);
    canvas_print(c, y, x, ROLE_DIM, " ±%.2f (now %.2f×)", (double)f->se, (double)l->now.modelled);
    x = canvas_print(c, ++y, 0, ROLE_DIM, "%.2f tokens/round  acceptance %s", (double)f->tokens_per_round,
                     number(f->acceptance, acceptance)) +
        2;
    canvas_print(c, narrow ? y + 1 : y, narrow ? 0 : x, ROLE_DIM, "%.1f layers  %.1f heads a token", (double)f->layers,
                 (double)f->heads);
}

/* The first of those that are shown: where they are fewer than there are values, those around the cursor. */
static int
around(int at, int shown, int n)
{
    const int first = at - shown / 2 < 0 ? 0 : at - shown / 2;
    return first + shown > n ? n - shown : first;
}

void
landscape_draw_grid(const struct landscape *l, const struct policy_info *policy, const struct canvas *c,
                    const uint32_t at[2], const double in_force[2])
{
    const struct landscape_grid *g = &l->grid;
    const struct knob *k[2] = {&policy->knobs[g->knob[0]], &policy->knobs[g->knob[1]]};
    if (g->n[0] == 0 || g->n[1] == 0) {
        canvas_print(c, 0, 0, ROLE_DIM, "%s × %s: computing …", label(k[0]), label(k[1]));
        return;
    }
    char text[40];
    const int margin = 7, lines = forecast_rows(c), rows = c->rows > lines ? c->rows - lines : 1;
    const int room = c->cols - margin, wide = room / (int)g->n[0] > 0 ? room / (int)g->n[0] : 1;
    const int cols = (int)g->n[0] < room ? (int)g->n[0] : room;
    const int high = rows < (int)g->n[1] ? rows : (int)g->n[1];
    const uint32_t now[2] = {landscape_nearest(k[0], g->n[0], in_force[0]),
                             landscape_nearest(k[1], g->n[1], in_force[1])};
    struct range r = {NAN, NAN};
    for (uint32_t i = 0; i < g->n[1]; i++)
        for (uint32_t j = 0; j < g->n[0]; j++)
            widen(&r, g->cell[i][j].modelled);
    const int bottom = around((int)at[1], high, (int)g->n[1]), left = around((int)at[0], cols, (int)g->n[0]);
    for (int y = 0; y < high; y++) {
        const uint32_t i = (uint32_t)(bottom + high - 1 - y);
        knob_format(k[1], landscape_value(k[1], g->n[1], i), text, sizeof text);
        canvas_print(c, y, 0, i == at[1] ? ROLE_FOCUS : ROLE_DIM, "%6.6s", text);
        for (int x = 0; x < cols; x++) {
            const uint32_t j = (uint32_t)(left + x);
            const bool cursor = j == at[0] && i == at[1], here = j == now[0] && i == now[1];
            draw_cell(c, y, margin + x * wide, wide, &r, g->cell[i][j].modelled, cursor ? MARK_CURSOR : MARK_NONE,
                      here     ? "●"
                      : cursor ? "+"
                               : "");
        }
    }
    draw_forecast(l, policy, c, high, at);
}
