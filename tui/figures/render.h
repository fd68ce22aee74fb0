/* A drawing as a file, by cairo. A program that was built without cairo has only the sentence that says so. */
#ifndef TUI_FIGURES_RENDER_H
#define TUI_FIGURES_RENDER_H

#include "engine/base/err.h"
#include "tui/figures/drawing.h"

enum render_format { RENDER_SVG, RENDER_PDF, RENDER_PNG };

/* By how the file's name ends; ERR_USAGE: none of .svg, .pdf and .png. */
bool render_format_of(const char *file, enum render_format *, struct err *);
#define RENDER_NOTE 200
/* A file that was there is replaced when the new one is whole. PNG has 300 dots an inch. note: which characters no font of this
 * machine has, in a line; "": none. */
bool render_file(const struct drawing *, enum render_format, const char *file, char note[RENDER_NOTE], struct err *);

#endif
