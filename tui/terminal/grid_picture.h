/* The picture with its colours, as a file: an SVG of text and rectangles, or text with the escape sequences of a terminal
 * of 24-bit colours (`cat` shows it). Where the theme leaves colours to the terminal, an SVG is black on white. */
#ifndef TUI_TERMINAL_GRID_PICTURE_H
#define TUI_TERMINAL_GRID_PICTURE_H

#include "engine/base/file_replace.h"
#include "tui/terminal/grid.h"
#include "tui/terminal/theme.h"

/* What a saved screen may take the place of: one as text, one with escape sequences, and any SVG. */
extern const struct file_kind screen_text_file, screen_ansi_file, svg_file;
/* False when writing failed. */
bool grid_write_svg(const struct grid *, const struct theme *, FILE *);
bool grid_write_ansi(const struct grid *, const struct theme *, FILE *);

#endif
