/* How figures look in print: white paper, and nothing told by hue alone. Ramps grow darker with the value; lines differ
 * in lightness, dashes and marks. */
#ifndef TUI_FIGURES_STYLE_H
#define TUI_FIGURES_STYLE_H

#include "tui/figures/drawing.h"

#define PAPER      0xffffff
#define INK        0x1a1a1a
#define INK_LIGHT  0x6b6b6b /* labels of lesser weight, and frames */
#define INK_FAINT  0xc8c8c8 /* lines of a grid */
#define GREY_BLOCK 0xe3e3e3 /* layers after the exit */
#define GREY_HATCH 0xc9c9c9
#define ALARM      0xb3261e /* spurious, rejected */

#define SIZE_TICK    6.2
#define SIZE_LABEL   6.8
#define SIZE_TITLE   7.4
#define SIZE_CAPTION 6.2

#define MM (72 / 25.4)

/* From paper to ink blue: lightness falls all the way. NAN: paper. */
int32_t ramp(double fraction);
/* Black or white, whichever reads better on it. */
int32_t ink_on(int32_t background);

#define LINE_STYLES 6
struct line_style {
    int32_t colour;
    int mark; /* of marks_draw() */
};
extern const struct line_style line_styles[LINE_STYLES];

#define MARKS 6
/* A mark of this radius: circle, square, triangle, diamond, ring, cross. */
void mark_draw(struct drawing *, int mark, double x, double y, double radius, int32_t colour);

#define LETTERS(points, ...) ((struct lettering){.size = (points), .colour = __VA_ARGS__})

#endif
