/* Forecasts of other knob values on the last tokens (docs/forecasts.md: What-if). The app computes them; the knobs
 * panel draws them as strips, one for each knob while the other knobs keep their values, and as a grid of two knobs. */
#pragma once

#include "engine/measure/forecast.h"
#include "tui/panels/panel.h"

#define LANDSCAPE_POINTS 128 /* of a strip, or of an axis of the grid, at most */

struct landscape_strip {
    uint32_t n;    /* points, 0: none */
    uint32_t best; /* the best of the points that are clearly better than the current value; n: none is */
    float best_se; /* of its gain */
    float best_modelled;
    float speedup[LANDSCAPE_POINTS]; /* (n) */
};

struct landscape_cell { /* the forecast at a point (engine/measure/forecast.h) */
    float speedup, modelled, se, tokens_per_round, acceptance, layers, heads;
};

struct landscape_grid {
    bool open;
    uint32_t knob[2]; /* across and up */
    uint32_t n[2];    /* points; 0: not computed yet */
    bool has_best;
    uint32_t best[2]; /* the best of the points that are clearly better than the current values */
    struct landscape_cell cell[LANDSCAPE_POINTS][LANDSCAPE_POINTS];
};

#define WHY_NO_FORECAST 100 /* bytes */

/* The forecast of another policy with the knobs that it has now. */
struct landscape_policy {
    struct forecast of;
    bool better; /* it is clearly better than the present setting */
};

struct landscape {
    char policy[16];             /* the policy of these knobs */
    char why[WHY_NO_FORECAST];   /* why there is no forecast, of one line; "": unknown, or there is one */
    uint32_t tokens;             /* the length of the text; 0: no forecast */
    uint32_t seq;                /* the sequence of the text */
    double values[POLICY_KNOBS]; /* current when it was computed */
    struct forecast now;
    struct landscape_strip strip[POLICY_KNOBS];
    struct landscape_policy other[POLICIES_MOST]; /* by policy of the run; 0 tokens: no forecast */
    struct landscape_grid grid;
};

/* The number of points of a strip or an axis: all values of a knob, or `most` evenly spread ones. The point nearest to
 * the current value is exactly this value. */
uint32_t landscape_points(const struct knob *, uint32_t most);
double landscape_value(const struct knob *, uint32_t n, uint32_t point, double in_force);
uint32_t landscape_nearest(const struct knob *, uint32_t n, double value);

/* The place of a speedup on the heat scale, if all of them are between low and high: below 0.5 if it is below 1, 0.5 at
 * 1, above 0.5 if it is above 1. So a loss is never drawn warm. */
float landscape_heat(double speedup, double low, double high);

/* The strip of a knob of the current policy; NULL: no forecast. */
const struct landscape_strip *landscape_strip_of(const struct view *, uint32_t knob);
/* Draws it as the track of a slider, with ● at a fraction of its width. */
void landscape_draw_strip(const struct landscape_strip *, const struct canvas *, int y, int x, int width,
                          double fraction, enum role);
/* "best 0.66: 1.46× ±0.03 (1.58×)", with the standard error of its gain, and the modelled speedup if the forecast is in
 * time; "": no value is clearly better than the current one. "no value gains (at most 0.36×)" if all are below 1. */
void landscape_best(const struct landscape *, const struct policy_info *, uint32_t knob, char *out, size_t n);
/* Writes the panel's note: the length of the forecast's text, or a knob's best value. False: no forecast. */
bool landscape_note(const struct view *, uint32_t knob, char *out, size_t n);

/* ---- the grid, in place of the sliders while it is open ---- */

struct landscape_cursor {
    bool placed;    /* false: the grid opens at the current values */
    uint32_t at[2]; /* points across and up */
};

bool landscape_grid_is_open(const struct view *);
/* Asks the app to open the grid of this knob and the next one. */
void landscape_grid_ask(struct landscape_cursor *, const struct view *, uint32_t knob);
/* Draws the grid: ● the current values, ★ the best ones; below it the values across, the forecast at the cursor, and
 * the best one. If it has more points than room, draws those around the cursor. */
void landscape_grid_draw(struct landscape_cursor *, const struct view *, const struct canvas *);
/* Arrows move the cursor, Enter sets both knobs, w and Esc close the grid. */
bool landscape_grid_key(struct landscape_cursor *, const struct view *, int key);
