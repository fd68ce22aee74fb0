/* What the last tokens would have come to at other values of the knobs (docs/methods.md: What-if): computed by the app, drawn by
 * the knobs panel, as strips, one for each knob with the others as they are, and as a grid of two knobs. */
#ifndef TUI_PANELS_LANDSCAPE_H
#define TUI_PANELS_LANDSCAPE_H

#include "engine/events/forecast.h"
#include "tui/terminal/canvas.h"

#define LANDSCAPE_POINTS 128 /* of a strip, or of an axis of the grid, at most */

struct landscape_strip {
    uint32_t n;    /* points, 0: none */
    uint32_t best; /* the largest of those that are larger than now beyond the uncertainty; n: there is none */
    float best_se; /* of its gain */
    float modelled[LANDSCAPE_POINTS]; /* (n) */
};

struct landscape_cell { /* the forecast at a point (engine/events/forecast.h) */
    float modelled, se, tokens_per_round, acceptance, layers, heads;
};

struct landscape_grid {
    bool open;
    uint32_t knob[2]; /* across and up */
    uint32_t n[2];    /* points; 0: not computed yet */
    bool has_best;
    uint32_t best[2]; /* the largest of those that are larger than now beyond the uncertainty */
    struct landscape_cell cell[LANDSCAPE_POINTS][LANDSCAPE_POINTS];
};

struct landscape {
    char policy[16]; /* whose knobs they are */
    char why[64];    /* why there is no forecast: "what-if does not support sv"; "": not known, or there is one */
    uint32_t tokens; /* foretold; 0: nothing is */
    uint32_t seq;    /* whose text they are of */
    double values[POLICY_KNOBS]; /* in force when it was computed */
    struct forecast now;
    struct landscape_strip strip[POLICY_KNOBS];
    struct landscape_grid grid;
};

/* The points of a strip or of an axis: all values of a knob, or `most` evenly spread ones, of which the one nearest to the value in
 * force is that value, so that it always is a point. */
uint32_t landscape_points(const struct knob *, uint32_t most);
double landscape_value(const struct knob *, uint32_t n, uint32_t point, double in_force);
uint32_t landscape_nearest(const struct knob *, uint32_t n, double value);

/* The track of a slider, with ● at a fraction of its width. */
void landscape_draw_strip(const struct landscape_strip *, const struct canvas *, int y, int x, int width,
                          double fraction, enum role);
/* "best 0.66: 1.46× ±0.03", with the standard error of its gain; "" where no value is larger than now beyond the uncertainty. */
void landscape_best(const struct landscape *, const struct policy_info *, uint32_t knob, char *out, size_t n);
/* The grid with a cursor on a point: ● the values in force, ★ the best ones; below it the values across, the forecast at the
 * cursor, and the best one. Where there are more points than room, those around the cursor. */
void landscape_draw_grid(const struct landscape *, const struct policy_info *, const struct canvas *,
                         const uint32_t at[2], const double in_force[2]);

#endif
