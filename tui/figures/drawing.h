/* A figure as a list of shapes in points (1/72 inch), y downwards, in the order of drawing. render.h makes a file of
 * it, and tests read the list. So figures need no graphics library, and have the same shapes on every machine.
 *
 * Drawing never fails: when memory runs out, later shapes are omitted and no_memory is set. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NO_COLOUR (-1) /* else 0xRRGGBB */

enum dash { DASH_NONE, DASH_LONG, DASH_SHORT, DASH_DOTS, DASHES };

struct pen {
    int32_t fill, stroke;
    double line; /* width of the stroke; 0: LINE_FINE */
    enum dash dash;
};
#define LINE_FINE 0.5
#define FILL(rgb) ((struct pen){.fill = (rgb), .stroke = NO_COLOUR})
/* A stroke of a colour; .line and .dash may follow. */
#define STROKE(...) ((struct pen){.fill = NO_COLOUR, .stroke = __VA_ARGS__})

enum anchor { ANCHOR_LEFT, ANCHOR_MIDDLE, ANCHOR_RIGHT };

struct lettering {
    double size;
    int32_t colour;
    enum anchor anchor;
    bool bold, upwards; /* upwards: read from the bottom to the top */
    double room;        /* width to which a wider text is narrowed; 0: unlimited */
};

struct point {
    double x, y;
};

enum shape_kind { SHAPE_PATH, SHAPE_CIRCLE, SHAPE_TEXT };

struct shape {
    enum shape_kind kind;
    struct pen pen; /* of a path, a circle */
    bool closed;
    struct lettering lettering;
    size_t first,
        n;       /* a path's points[first .. first + n); a text's bytes, terminated; points[first] is where a text's */
                 /* baseline or a circle's centre is */
    size_t text; /* index in texts */
    double radius;
};

struct drawing { /* zeros except for the width: empty */
    double width, height;
    struct shape *shapes; /* (n_shapes) */
    struct point *points;
    char *texts;
    size_t n_shapes, n_points, n_texts, most_shapes, most_points, most_texts;
    bool no_memory;
};

void drawing_close(struct drawing *);

void drawing_path(struct drawing *, const struct point *, size_t n, bool closed, struct pen);
void drawing_line(struct drawing *, double x1, double y1, double x2, double y2, struct pen);
void drawing_rect(struct drawing *, double x, double y, double width, double height, struct pen);
void drawing_circle(struct drawing *, double x, double y, double radius, struct pen);
/* Draws a text with its baseline at y. Unprintable bytes are escaped (base/utf8.h). */
void drawing_text(struct drawing *, double x, double y, struct lettering, const char *utf8);
__attribute__((format(printf, 5, 6))) void drawing_print(struct drawing *, double x, double y, struct lettering,
                                                         const char *format, ...);

/* Estimates the largest width of a text in the usual fonts: that of DejaVu Sans, the widest. */
double lettering_width(const struct lettering *, const char *utf8);
/* Cuts the text to `room`, with '…' at the end; "" if there is no room for that either. Returns out. */
char *lettering_fit(const struct lettering *, const char *utf8, double room, char *out, size_t size);

/* The style of figures in print: white paper, and hue alone carries no information. Ramps darken with the value; lines
 * differ in lightness, dashes and marks. */

#define PAPER      0xffffff
#define INK        0x1a1a1a
#define INK_LIGHT  0x6b6b6b /* secondary labels, and frames */
#define INK_FAINT  0xc8c8c8 /* lines of a grid */
#define GREY_BLOCK 0xe3e3e3 /* layers after the exit */
#define GREY_HATCH 0xc9c9c9
#define ALARM      0xb3261e /* spurious, rejected */

#define SIZE_TICK    6.2
#define SIZE_LABEL   6.8
#define SIZE_TITLE   7.4
#define SIZE_CAPTION 6.2

#define MM (72 / 25.4)

/* Returns a colour from paper to ink blue, of falling lightness. NAN: paper. */
int32_t ramp(double fraction);
/* Returns black or white, by the better contrast. */
int32_t ink_on(int32_t background);

#define LINE_STYLES 6
struct line_style {
    int32_t colour;
    int mark; /* of mark_draw() */
};
extern const struct line_style line_styles[LINE_STYLES];

#define MARKS 6
/* Draws mark 0 to 5: circle, square, triangle, diamond, ring, cross. */
void mark_draw(struct drawing *, int mark, double x, double y, double radius, int32_t colour);

#define LETTERS(points, ...) ((struct lettering){.size = (points), .colour = __VA_ARGS__})

/* Scales, panels with axes, legends and ramps, which kinds of figures share. */

/* Linear scales from values to points, with round ticks and their labels. */

#define SCALE_TICKS 24

struct scale {
    double low, high; /* values */
    double from, to;  /* their positions, in points */
};

double scale_at(const struct scale *, double value);

/* A range of values, without NAN and infinite ones. */
struct range {
    double low, high; /* low > high: no value yet */
};
#define RANGE_NONE ((struct range){1, 0})
void range_add(struct range *, double value);
/* Returns the range of an axis: for shares [0, 1] and a margin; for others from 0 if that is near. It is never
 * empty. */
struct range range_shown(struct range, bool share);

/* Computes round numbers (1, 2 or 5 times a power of ten apart; `whole`: only whole numbers) within [low, high], at
 * most `most` and at most SCALE_TICKS. Returns their number and sets *step to their distance. */
int scale_ticks(double low, double high, int most, bool whole, double ticks[SCALE_TICKS], double *step);
/* Prints a value with the decimals that distinguish ticks at this distance. Returns out. */
char *scale_label(double value, double step, char *out, size_t size);
/* Prints a value in about three digits: "0.123", "12.3", "1234"; "–" for NAN. Returns out. */
char *value_label(double value, char *out, size_t size);

struct axis {
    struct range range;
    bool whole;        /* whole numbers alone */
    const char *label; /* NULL: none */
};

struct panel_area {
    double x, y, width, height; /* of the area inside the frame */
    struct scale across, up;    /* up: from the bottom */
    struct axis horizontal, vertical;
    bool plain; /* without lines at the ticks */
};

#define AXES_LEFT   30 /* room to the left of a panel with a labelled axis */
#define AXES_BOTTOM 23
#define AXES_TITLE  11
#define AXES_RIGHT  7 /* room for half of the last number */

/* Returns a panel; draws nothing. */
struct panel_area axes_panel(double x, double y, double width, double height, struct axis across, struct axis up);
/* Draws the frame, faint lines at the ticks, ticks with numbers, labels. `numbers`: also those below the panel. */
void axes_draw(struct drawing *, const struct panel_area *, bool numbers);
/* Draws the title above the panel's left end. */
void axes_title(struct drawing *, const struct panel_area *, const char *title);
/* Draws a line through n values at x[i], y[i]; NAN breaks it. Values outside of the panel are drawn at its edge. */
void axes_line(struct drawing *, const struct panel_area *, const double *x, const double *y, size_t n, struct pen);
/* The same as steps: each value is valid up to the next, the last up to `end`. */
void axes_steps(struct drawing *, const struct panel_area *, const double *x, const double *y, size_t n, double end,
                struct pen);
/* Fills the area between two such lines. */
void axes_band(struct drawing *, const struct panel_area *, const double *x, const double *a, const double *b, size_t n,
               double end, struct pen);

/* Draws a bar of the ramp with the names of its ends, 0 and 1 unless given. Returns the width of all. */
double ramp_legend(struct drawing *, double x, double y, double width, const char *title, const char *low,
                   const char *high);
