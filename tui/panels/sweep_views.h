/* What the files of the sweep's panel share: panel_sweep.c (cursor, keys), sweep_map.c (two knobs as heat), sweep_lines.c (one
 * knob as a line, more as a list). Nobody else includes it. */
#ifndef TUI_PANELS_SWEEP_VIEWS_H
#define TUI_PANELS_SWEEP_VIEWS_H

#include "engine/events/knob_sweep.h"
#include "tui/terminal/canvas.h"

struct sweep_look { /* what is drawn */
    const struct knob_sweep *sweep;
    enum sweep_measure measure;
    uint32_t point; /* the cursor's */
    bool has_best;
    uint32_t best, near;       /* the best one, and how many show no clear difference from it */
    double low, high;          /* of all that is measured, with their errors; NAN: nothing is */
    int top, left, rows, cols; /* of what was drawn: passed over, and shown */
    int header, label, cell;   /* rows above, columns before, a cell's width */
    uint32_t *ranked;          /* (points) the best first; where nothing is measured last; owned by the panel */
};

void sweep_number(double value, enum sweep_measure, char *out, size_t n);
/* Each draws what fits, the cursor in it, and says in *look where that was. */
void sweep_draw_map(struct sweep_look *, const struct canvas *);
void sweep_draw_line(struct sweep_look *, const struct canvas *);
void sweep_draw_list(struct sweep_look *, const struct canvas *);
/* All measures of the cursor's point in a line. */
void sweep_draw_details(const struct sweep_look *, const struct canvas *, int y);
/* "★" where the point is clearly the best, "☆" where others show no clear difference from the best one, " ". */
const char *sweep_star(const struct sweep_look *, const struct canvas *, uint32_t point);
/* The first of n that are shown, of which `room` fit, so that `at` is among them; stays near `top`. */
int sweep_window(int top, int at, int n, int room);

#endif
