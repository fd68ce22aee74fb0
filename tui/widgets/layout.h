/* Where everything stands, as a pure function of the terminal's size and of what there is to show.
 *
 * Panels say their place, weight and least width; nothing here knows one from another. Those of a place stand beside each
 * other as far as their widths allow, in bands, and bands below each other as far as the height allows: on a large screen
 * all of them, on 120×36 the first band of the upper and of the lower place. A large screen
 * has those of the middle below one of the upper ones. What has the focus is always among them. A
 * narrow terminal stacks bands when it is tall, else it keeps item 0 above a row of tabs; a small one does so without
 * boxes. */
#ifndef TUI_WIDGETS_LAYOUT_H
#define TUI_WIDGETS_LAYOUT_H

#include "tui/panels/panel.h"

#define LAYOUT_PANELS     24
#define LAYOUT_MIN_COLS   40
#define LAYOUT_MIN_ROWS   10
#define LAYOUT_BOXED_COLS 80 /* below, boxes go */
#define LAYOUT_BOXED_ROWS 24
#define LAYOUT_WIDE       120 /* columns from which panels stand side by side */
#define LAYOUT_TIMED      14  /* rows from which there is a time line */
#define LAYOUT_DEVICE     24  /* … and a line about the device, where something is told of it */
#define LAYOUT_SPLIT      100 /* columns from which a low one has the text beside the tab */
#define LAYOUT_COLUMNED   150 /* columns from which what stands in the middle is below one of the upper panels */
#define LAYOUT_LEAST      8   /* rows of a panel beside or below others */
#define LAYOUT_LOOKED_AT                                                                                               \
    21 /* rows of an upper panel that is no text, where others stand below it: 16 layers and what is around them */
#define LAYOUT_TALL 44 /* rows from which narrow terminals stack panels */

struct rect {
    int y, x, rows, cols; /* rows == 0: not shown */
};

struct layout_item { /* a panel, as far as its place is concerned */
    enum panel_place place;
    int weight, min_cols, good_cols; /* good_cols: that it has where others stand beside it in a column; 0: min_cols */
    bool active;
    bool alone, tall; /* in the middle: nothing stands beside it; at the top: nothing below it */
};

struct layout {
    bool too_small, tabs, bare; /* bare: panels have no boxes */
    struct rect title, tab_bar, timeline, measures, device, status;
    struct rect gap;                  /* between two panels without boxes */
    struct rect panel[LAYOUT_PANELS]; /* with their boxes, if they have any */
};

/* Item 0 is the one that stays on top when the others become tabs. `focus` is an item that is active; `zoom` gives it
 * all the space. The status line is the last row: keys, the ':' line, questions. */
void layout_compute(struct layout *, int rows, int cols, const struct layout_item *, int n, int focus, bool zoom);
/* Where a device's time goes is told in a line below the measures: one row less for the rest, where there are enough. */
int layout_rows(int rows, bool device); /* for layout_compute() */
void layout_add_device(struct layout *, int rows);
struct canvas layout_canvas(struct rect, struct grid *);
/* The panel at a place of the screen, -1: none. */
int layout_at(const struct layout *, int n, int y, int x);

#endif
