/* Panels with axes, legends, ramps: what kinds of figures have in common. */
#ifndef TUI_FIGURES_AXES_H
#define TUI_FIGURES_AXES_H

#include "tui/figures/drawing.h"
#include "tui/figures/scale.h"
#include "tui/figures/style.h"

struct axis {
    struct range range;
    bool whole;        /* whole numbers alone */
    const char *label; /* NULL: none */
};

struct panel_area {
    double x, y, width, height; /* what is inside the frame */
    struct scale across, up;    /* up: from the bottom */
    struct axis horizontal, vertical;
    bool plain; /* without lines across at the ticks */
};

#define AXES_LEFT   30 /* room for what stands left of a panel with a labelled axis, below one, above one */
#define AXES_BOTTOM 23
#define AXES_TITLE  11
#define AXES_RIGHT  7 /* for half of the last number */

/* A panel; nothing is drawn yet. */
struct panel_area axes_panel(double x, double y, double width, double height, struct axis across, struct axis up);
/* Frame, faint lines at the ticks, ticks with numbers, labels. `numbers`: those below the panel, too. */
void axes_draw(struct drawing *, const struct panel_area *, bool numbers);
/* Above the panel's left end. */
void axes_title(struct drawing *, const struct panel_area *, const char *title);
/* A line through n values at x[i], y[i]; NAN breaks it. What lies outside of the panel is drawn at its edge. */
void axes_line(struct drawing *, const struct panel_area *, const double *x, const double *y, size_t n, struct pen);
/* The same, holding each value up to the next, the last up to `end`. */
void axes_steps(struct drawing *, const struct panel_area *, const double *x, const double *y, size_t n, double end,
                struct pen);
/* What lies between two of these. */
void axes_band(struct drawing *, const struct panel_area *, const double *x, const double *a, const double *b, size_t n,
               double end, struct pen);

/* A bar of the ramp, 0 to 1 or as its ends are called. Returns how wide it is with both. */
double ramp_legend(struct drawing *, double x, double y, double width, const char *title, const char *low,
                   const char *high);

#endif
