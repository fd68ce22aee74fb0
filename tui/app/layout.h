/* Where everything stands, as a pure function of the terminal's size and of what there is to show. */
#ifndef TUI_APP_LAYOUT_H
#define TUI_APP_LAYOUT_H

#include "tui/panels/panel.h"

#define LAYOUT_PANELS   12
#define LAYOUT_MIN_COLS 80
#define LAYOUT_MIN_ROWS 24
#define LAYOUT_WIDE     120 /* columns from which panels stand side by side */

struct rect {
    int y, x, rows, cols; /* rows == 0: not shown */
};

struct layout_item { /* a panel, as far as its place is concerned */
    enum panel_place place;
    int weight, min_cols;
    bool active;
};

struct layout {
    bool too_small, tabs;
    struct rect title, tab_bar, timeline, measures, status;
    struct rect panel[LAYOUT_PANELS]; /* with their boxes */
};

/* Item 0 is the one that stays on top when the others become tabs. `focus` is an item that is active; `zoom` gives it
 * all the space. The status line is the last row: messages, the ':' line, questions. */
void layout_compute(struct layout *, int rows, int cols, const struct layout_item *, int n, int focus, bool zoom);
struct canvas layout_canvas(struct rect, struct grid *);
/* The panel at a place of the screen, -1: none. */
int layout_at(const struct layout *, int n, int y, int x);

#endif
