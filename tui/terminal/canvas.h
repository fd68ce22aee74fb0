/* Drawing on the terminal by role and not by colour: a panel draws "rejected" or "heat 0.7", and the theme and the
 * terminal's abilities determine the look. A canvas is a rectangle, and nothing is drawn outside of it. Text is
 * printable UTF-8 (base/utf8.h), measured in terminal columns (utf8proc). On a terminal without UTF-8, glyphs become
 * ASCII. */
#pragma once

#include <stdio.h>

#include "base/file_replace.h"
#include "base/text.h"

/* ---- the grid: the contents of the screen as cells, with roles in place of colours. paint.h sends it to the terminal,
 * :save-screen writes it to a file, and tests read it without a terminal. ---- */

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
/* Stores one cluster (columns: 1 or 2) and blanks the rest of wide characters that it cuts. Does nothing outside of the
 * grid. */
void grid_put(struct grid *, int y, int x, const char *cluster, size_t bytes, int columns, struct grid_cell style);
/* Copies the text of row y without trailing spaces, terminated and cut at size. */
size_t grid_row(const struct grid *, int y, char *out, size_t size);
/* Writes the whole grid as lines. False if writing failed. */
bool grid_write(const struct grid *, FILE *);

/* The files that a saved screen may replace: one as text, any SVG. */
extern const struct file_kind screen_text_file;
/* Writes the picture with its colours as an SVG of text and rectangles. It is black on white where the theme leaves
 * colours to the terminal. False if writing failed. */
bool grid_write_svg(const struct grid *, const struct theme *, FILE *);

/* ---- drawing ---- */

enum role {
    ROLE_TEXT,
    ROLE_DIM,
    ROLE_TITLE,
    ROLE_BORDER,
    ROLE_FOCUS,
    ROLE_STATUS,
    ROLE_ERROR,
    ROLE_OK,
    ROLE_WARN,
    ROLE_PROMPT, /* text of the prompt */
    ROLE_DRAFT,
    ROLE_ACCEPTED,
    ROLE_REJECTED,
    ROLE_CORRECTION,
    ROLE_BONUS,
    ROLE_EXITED,
    ROLE_SPURIOUS,
    ROLE_CURSOR,
    ROLE_LINE, /* d_max, thresholds */
    ROLE_KNOB,
    ROLE_KNOB_PENDING,
    ROLE_KEY, /* a key's name in help */
    ROLE_SERIES_1,
    ROLE_SERIES_2,
    ROLE_SERIES_3,
    ROLE_SERIES_4,
    ROLES
};

struct canvas {
    int y, x, rows, cols; /* on the screen */
    struct grid *grid;    /* borrowed */
};

struct canvas canvas_inside(const struct canvas *, int y, int x, int rows, int cols); /* clipped to the outer one */
void canvas_clear(const struct canvas *);
/* Returns the columns used; clipped to the canvas. */
int canvas_text(const struct canvas *, int y, int x, enum role, const char *utf8);
__attribute__((format(printf, 5, 6))) int canvas_print(const struct canvas *, int y, int x, enum role,
                                                       const char *format, ...);
/* The same if the whole text fits; otherwise draws nothing and returns 0. */
__attribute__((format(printf, 5, 6))) int canvas_fit(const struct canvas *, int y, int x, enum role, const char *format,
                                                     ...);
void canvas_under(const struct canvas *, int y, int x, enum role,
                  const char *utf8); /* a cluster in an empty cell only */
enum cell_mark {                     /* attributes that are visible without colours */
                 MARK_NONE = 0,
                 MARK_EXITED = 1,
                 MARK_SPURIOUS = 2,
                 MARK_CURSOR = 4,
                 MARK_FADED = 8,
                 MARK_BOLD = 16,
                 MARK_STRUCK = 32,
                 MARK_UNDERLINED = 64,
                 MARK_INK = 128 /* heat is the text's colour, not the background's */
};
/* Text padded or cut to exactly `width` columns, on a background of intensity heat in [0, 1] from the theme's scale. */
void canvas_heat(const struct canvas *, int y, int x, int width, float heat, unsigned marks, const char *utf8);
/* Draws a cell as an upper and a lower half with intensities in [0, 1], CANVAS_GREY (after the exit) or NAN (none).
 * Without colours or UTF-8 it draws the mean as a level. */
#define CANVAS_GREY (-1.0f)
void canvas_halves(const struct canvas *, int y, int x, float upper, float lower);
/* The same as canvas_heat() with a role's background in place of heat. */
void canvas_block(const struct canvas *, int y, int x, int width, enum role, unsigned marks, const char *utf8);
/* Text cut (with '…') to at most `width` columns; returns the columns used. */
int canvas_word(const struct canvas *, int y, int x, int width, enum role, unsigned marks, const char *utf8);
/* The general form: a role, a background (NAN: none) and marks. */
int canvas_styled(const struct canvas *, int y, int x, enum role, float heat, unsigned marks, const char *utf8);
/* Draws text wrapped at blanks; the last row ends with '…' if there is more. Returns the rows of the whole text;
 * c->rows may be 0, to draw nothing. */
int canvas_paragraph(const struct canvas *c, enum role, const char *utf8);
#define CANVAS_ROLE "\016" /* in a box's note: the next byte is 1 + the role of the following text */
void canvas_box(const struct canvas *, const char *title, const char *note,
                bool focused); /* note: right end of the top edge */
void canvas_slider(const struct canvas *, int y, int x, int width, double fraction, double default_fraction, enum role);
void canvas_bar(const struct canvas *, int y, int x, int width, double fraction, enum role); /* a progress bar */
/* A braille line chart of n values (NAN: gap) over [low, high] filling rows × cols; several may overlay. */
void canvas_plot(const struct canvas *, const float *values, int n, double low, double high, enum role);
const char *canvas_level(double fraction); /* of a cell's height, from ▁ to █ */
