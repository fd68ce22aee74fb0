/* The picture before it reaches the terminal: a cell a column, with a role instead of colours. Canvases draw into it,
 * tui/terminal/paint.h puts it on the terminal, :save-screen writes it as text, tests read it without any terminal. */
#ifndef TUI_TERMINAL_GRID_H
#define TUI_TERMINAL_GRID_H

#include "tui/terminal/text.h"

#include <stdio.h>

#define GRID_NO_HEAT (-1)
#define GRID_HEATS   64               /* levels of the heat scale */
#define GRID_GREY    (GRID_HEATS + 1) /* the ground of what exited */

struct grid_cell {
    char text[TEXT_CLUSTER]; /* one cluster; "" in the right half of a wide character */
    uint8_t columns;         /* 1 or 2; 0: right half of a wide character */
    uint8_t role;            /* enum role */
    uint8_t marks;           /* enum cell_mark */
    int8_t heat;             /* 0 .. GRID_HEATS - 1, or GRID_NO_HEAT */
    uint8_t upper;           /* of a half block: 1 + a level of the heat scale, GRID_GREY; 0: the role's */
};

struct grid {
    int rows, cols;
    bool utf8;               /* false: ASCII only */
    bool mono;               /* no colours: heat is shown by a glyph */
    struct grid_cell *cells; /* (rows * cols) */
};

/* Also for resizing: an open grid changes its size and is cleared. False, and the grid as it was, without memory. */
bool grid_open(struct grid *, int rows, int cols);
void grid_close(struct grid *);
void grid_clear(struct grid *);
/* NULL outside the grid. */
struct grid_cell *grid_at(const struct grid *, int y, int x);
/* Puts one cluster (columns: 1 or 2) and mends wide characters that it cuts in half. Nothing happens outside. */
void grid_put(struct grid *, int y, int x, const char *cluster, size_t bytes, int columns, struct grid_cell style);
/* The text of row y without trailing spaces; NUL-terminated, cut at size. */
size_t grid_row(const struct grid *, int y, char *out, size_t size);
/* The whole grid as lines. False when writing failed. */
bool grid_write(const struct grid *, FILE *);

#endif
