/* The layout: a pure function of the terminal's size and the active panels.
 *
 * A panel declares its place, weight and least width. The panels of a place are beside each other in bands, as far as
 * their widths allow, and bands are below each other, as far as the height allows: a large terminal shows all panels,
 * 120×36 the first band of the upper and of the lower place. On a large terminal the panels of the middle are below an
 * upper panel. The focused panel is always shown. A narrow terminal stacks bands if it is tall, and otherwise has item
 * 0 above a row of tabs; a small one has no boxes. */
#ifndef TUI_APP_LAYOUT_H
#define TUI_APP_LAYOUT_H

#include "tui/panels/panel.h"

#define LAYOUT_PANELS     24
#define LAYOUT_MIN_COLS   40
#define LAYOUT_MIN_ROWS   10
#define LAYOUT_BOXED_COLS 80 /* smaller terminals have no boxes */
#define LAYOUT_BOXED_ROWS 24
#define LAYOUT_WIDE       120 /* columns from which panels are beside each other */
#define LAYOUT_TIMED      14  /* rows from which there is a time line */
#define LAYOUT_DEVICE     24  /* and from which there is a line about the device, if it is known */
#define LAYOUT_SPLIT      100 /* columns from which a low terminal has the text beside the tab */
#define LAYOUT_COLUMNED   150 /* columns from which the panels of the middle are below an upper panel */
#define LAYOUT_LEAST      8   /* least rows of a panel beside or below others */
#define LAYOUT_LOOKED_AT                                                                                               \
    22 /* rows of an upper panel except the text, if others are below it: 16 layers, d_max, a line, and their frame */
#define LAYOUT_BELOW 14 /* most rows of a panel below an upper one */
#define LAYOUT_TALL  44 /* rows from which narrow terminals stack panels */

struct rect {
    int y, x, rows, cols; /* rows == 0: not shown */
};

struct layout_item { /* a panel's declarations (tui/panels/panel.h) */
    enum panel_place place;
    int weight, min_cols, good_cols; /* good_cols: in a column beside others; 0: min_cols */
    bool active;
    bool alone, tall; /* in the middle: no panel beside it; at the top: no panel below it */
    int good_rows;    /* rows that it fills, with its box; 0: it can use any number */
    int more_rows;    /* further rows in which it shows something else */
};

struct layout {
    bool too_small, tabs, bare; /* bare: panels have no boxes */
    struct rect title, tab_bar, timeline, measures, reason, device, status;
    struct rect gap;                  /* between two panels without boxes */
    struct rect panel[LAYOUT_PANELS]; /* with their boxes */
};

/* Computes the layout. Item 0 stays on top if the others become tabs; `focus` is an active item, and `zoom` gives it
 * all the space. The status line is the last row: keys, the ':' line, questions. */
void layout_compute(struct layout *, int rows, int cols, const struct layout_item *, int n, int focus, bool zoom);
/* Lines below the measures: why there is no gain, and about the device. If there are enough rows, layout_compute() gets
 * one row less for each; a line about the gain needs more than LAYOUT_BOXED_ROWS. */
int layout_rows(int rows, bool reason, bool device); /* returns the rows for layout_compute() */
void layout_add_lines(struct layout *, int rows, bool reason, bool device);
struct canvas layout_canvas(struct rect, struct grid *);
/* The panel at a position of the screen; -1: none. */
int layout_at(const struct layout *, int n, int y, int x);

#endif
