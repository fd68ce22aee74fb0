/* A drawing as a file, by cairo. Without cairo render_file() fails with a message. */
#ifndef TUI_FIGURES_RENDER_H
#define TUI_FIGURES_RENDER_H

#include "engine/base/err.h"
#include "tui/figures/drawing.h"

enum render_format { RENDER_SVG, RENDER_PDF, RENDER_PNG };

/* Returns the format by the end of the file's name; ERR_USAGE: not .svg, .pdf or .png. */
bool render_format_of(const char *file, enum render_format *, struct err *);
#define RENDER_NOTE 200
/* Writes the file; a complete new file replaces an old one. PNG has 300 dots per inch. note: one line about characters that no font of
 * this machine has; "": none. */
bool render_file(const struct drawing *, enum render_format, const char *file, char note[RENDER_NOTE], struct err *);

#endif
