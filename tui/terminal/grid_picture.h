/* The picture with its colours, as a file: an SVG of text and rectangles, or text with the escape sequences of a terminal
 * of 24-bit colours (`cat` shows it). Where the theme leaves colours to the terminal, an SVG is black on white. */
#ifndef TUI_TERMINAL_GRID_PICTURE_H
#define TUI_TERMINAL_GRID_PICTURE_H

#include "tui/terminal/grid.h"
#include "tui/terminal/theme.h"

/* False when writing failed. */
bool grid_write_svg(const struct grid *, const struct theme *, FILE *);
bool grid_write_ansi(const struct grid *, const struct theme *, FILE *);

#endif
