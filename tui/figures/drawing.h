/* A figure before it is a file: a list of shapes in points (1/72 inch), y downwards, drawn in their order. What renders
 * it is in render.h; tests read the list. So figures need no graphics library to be made, and are the same shapes on
 * every machine.
 *
 * Drawing never fails: when memory runs out, what comes after is left out and drawing_whole() says so. */
#ifndef TUI_FIGURES_DRAWING_H
#define TUI_FIGURES_DRAWING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NO_COLOUR (-1) /* else 0xRRGGBB */

enum dash { DASH_NONE, DASH_LONG, DASH_SHORT, DASH_DOTS, DASHES };

struct pen {
    int32_t fill, stroke;
    double line; /* width of the stroke; 0 stands for LINE_FINE */
    enum dash dash;
};
#define LINE_FINE 0.5
#define FILL(rgb) ((struct pen){.fill = (rgb), .stroke = NO_COLOUR})
/* A stroke; then .line, .dash, if they are others. */
#define STROKE(...) ((struct pen){.fill = NO_COLOUR, .stroke = __VA_ARGS__})

enum anchor { ANCHOR_LEFT, ANCHOR_MIDDLE, ANCHOR_RIGHT };

struct lettering {
    double size;
    int32_t colour;
    enum anchor anchor;
    bool bold, upwards; /* upwards: read from the bottom to the top */
    double room;        /* the text is made narrower where a font makes it wider than this; 0: it may be any width */
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
    size_t text; /* where in texts */
    double radius;
};

struct drawing {
    double width, height;
    struct shape *shapes; /* (n_shapes) */
    struct point *points;
    char *texts;
    size_t n_shapes, n_points, n_texts, most_shapes, most_points, most_texts;
    bool no_memory;
};

void drawing_open(struct drawing *, double width);
void drawing_close(struct drawing *);
bool drawing_whole(const struct drawing *); /* nothing was left out */

void drawing_path(struct drawing *, const struct point *, size_t n, bool closed, struct pen);
void drawing_line(struct drawing *, double x1, double y1, double x2, double y2, struct pen);
void drawing_rect(struct drawing *, double x, double y, double width, double height, struct pen);
void drawing_circle(struct drawing *, double x, double y, double radius, struct pen);
/* The baseline is at y. Bytes that can't be read are escaped (engine/base/printable.h). */
void drawing_text(struct drawing *, double x, double y, struct lettering, const char *utf8);
__attribute__((format(printf, 5, 6))) void drawing_print(struct drawing *, double x, double y, struct lettering,
                                                         const char *format, ...);

/* How wide a text is at most, about, in the fonts that it may be set in. */
double lettering_width(const struct lettering *, const char *utf8);
/* The text as far as it goes into `room`, with '…' where it is cut; "" where not even that does. Returns out. */
char *lettering_fit(const struct lettering *, const char *utf8, double room, char *out, size_t size);

/* One line a shape, numbers to a hundredth of a point. False: writing failed. */
bool drawing_list(const struct drawing *, FILE *);

#endif
