/* What a cell of the picture is drawn with: whose colours, and which attributes. The same for the terminal
 * (tui/terminal/paint.h) and for pictures saved in colour (tui/terminal/grid_picture.h). */
#ifndef TUI_TERMINAL_CELL_STYLE_H
#define TUI_TERMINAL_CELL_STYLE_H

#include "tui/terminal/grid.h"
#include "tui/terminal/theme.h"

struct cell_style {
    int heat;            /* the colours of this level of the scale; GRID_NO_HEAT: */
    enum role role;      /* the role's */
    bool ink;            /* the level's colour is the text's, and what is behind it is the role's */
    int upper;           /* its text in the ground colour of this level of the scale; GRID_NO_HEAT: not so */
    bool grey;           /* its text in the ground colour of what exited */
    unsigned attributes; /* a set of enum theme_attribute */
};

struct cell_style cell_style(const struct theme *, const struct grid_cell *);

#endif
