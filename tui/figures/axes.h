/* Scales, panels with axes, legends and ramps, which kinds of figures share. */
#ifndef TUI_FIGURES_AXES_H
#define TUI_FIGURES_AXES_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/figures/drawing.h"

/* Linear scales from values to points, with round ticks and their labels. */

#define SCALE_TICKS 24

struct scale {
    double low, high; /* values */
    double from, to;  /* their positions, in points */
};

double scale_at(const struct scale *, double value);

/* A range of values, without NAN and infinite ones. */
struct range {
    double low, high; /* low > high: no value yet */
};
#define RANGE_NONE ((struct range){1, 0})
void range_add(struct range *, double value);
/* Returns the range of an axis: for shares [0, 1] and a margin; for others from 0 if that is near. It is never empty. */
struct range range_shown(struct range, bool share);

/* Computes round numbers (1, 2 or 5 times a power of ten apart; `whole`: only whole numbers) within [low, high], at most `most` and at
 * most SCALE_TICKS. Returns their number and sets *step to their distance. */
int scale_ticks(double low, double high, int most, bool whole, double ticks[SCALE_TICKS], double *step);
/* Prints a value with the decimals that distinguish ticks at this distance. Returns out. */
char *scale_label(double value, double step, char *out, size_t size);
/* Prints a value in about three digits: "0.123", "12.3", "1234"; "–" for NAN. Returns out. */
char *value_label(double value, char *out, size_t size);

struct axis {
    struct range range;
    bool whole;        /* whole numbers alone */
    const char *label; /* NULL: none */
};

struct panel_area {
    double x, y, width, height; /* of the area inside the frame */
    struct scale across, up;    /* up: from the bottom */
    struct axis horizontal, vertical;
    bool plain; /* without lines at the ticks */
};

#define AXES_LEFT   30 /* room to the left of a panel with a labelled axis */
#define AXES_BOTTOM 23
#define AXES_TITLE  11
#define AXES_RIGHT  7 /* room for half of the last number */

/* Returns a panel; draws nothing. */
struct panel_area axes_panel(double x, double y, double width, double height, struct axis across, struct axis up);
/* Draws the frame, faint lines at the ticks, ticks with numbers, labels. `numbers`: also those below the panel. */
void axes_draw(struct drawing *, const struct panel_area *, bool numbers);
/* Draws the title above the panel's left end. */
void axes_title(struct drawing *, const struct panel_area *, const char *title);
/* Draws a line through n values at x[i], y[i]; NAN breaks it. Values outside of the panel are drawn at its edge. */
void axes_line(struct drawing *, const struct panel_area *, const double *x, const double *y, size_t n, struct pen);
/* The same as steps: each value holds up to the next, the last up to `end`. */
void axes_steps(struct drawing *, const struct panel_area *, const double *x, const double *y, size_t n, double end,
                struct pen);
/* Fills the area between two such lines. */
void axes_band(struct drawing *, const struct panel_area *, const double *x, const double *a, const double *b, size_t n,
               double end, struct pen);

/* Draws a bar of the ramp with the names of its ends, 0 and 1 unless given. Returns the width of all. */
double ramp_legend(struct drawing *, double x, double y, double width, const char *title, const char *low,
                   const char *high);

#endif
