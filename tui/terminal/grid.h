/* The screen's contents as cells, with roles instead of colours. Canvases draw into the grid, paint.h sends it to the terminal,
 * :save-screen writes it to a file, and tests read it without a terminal. */
#ifndef TUI_TERMINAL_GRID_H
#define TUI_TERMINAL_GRID_H

#include <stdio.h>

#include "engine/base/file_replace.h"
#include "tui/terminal/text.h"

#define GRID_NO_HEAT (-1)
#define GRID_HEATS   64               /* levels of the heat scale */
#define GRID_GREY    (GRID_HEATS + 1) /* the background of layers after the exit */

struct theme;

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

/* Opens a grid, or resizes and clears an open one. Without memory it fails and leaves the grid unchanged. */
bool grid_open(struct grid *, int rows, int cols);
void grid_close(struct grid *);
void grid_clear(struct grid *);
/* NULL outside the grid. */
struct grid_cell *grid_at(const struct grid *, int y, int x);
/* Stores one cluster (columns: 1 or 2) and blanks the rest of wide characters that it cuts. Does nothing outside of the grid. */
void grid_put(struct grid *, int y, int x, const char *cluster, size_t bytes, int columns, struct grid_cell style);
/* Copies the text of row y without trailing spaces, terminated and cut at size. */
size_t grid_row(const struct grid *, int y, char *out, size_t size);
/* Writes the whole grid as lines. False if writing failed. */
bool grid_write(const struct grid *, FILE *);

/* The picture with its colours as a file: an SVG of text and rectangles, or text with the escape sequences of a terminal of 24-bit
 * colours (`cat` shows it). Where the theme leaves colours to the terminal, an SVG is black on white. */

/* The files that a saved screen may replace: one as text, one with escape sequences, any SVG. */
extern const struct file_kind screen_text_file, screen_ansi_file, svg_file;
/* False if writing failed. */
bool grid_write_svg(const struct grid *, const struct theme *, FILE *);
bool grid_write_ansi(const struct grid *, const struct theme *, FILE *);

#endif
