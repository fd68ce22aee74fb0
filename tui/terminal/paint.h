/* Converts roles to the terminal's colours: 24-bit, 256, 16, 8, or only attributes. Colour pairs are made when they are
 * first used, at most PAINT_PAIRS.
 *
 * curses sets 24-bit colours only if terminfo describes a terminal without other colours (xterm-direct), which is rare.
 * On a terminal with 256 colours that also has 24-bit colours, the numbers from PAINT_FIRST_SLOT on are slots: curses
 * uses 256 colours, and terminal_output_end() replaces the number of a slot by its colour. */
#pragma once

#include "tui/terminal/canvas.h"
#include "tui/terminal/theme.h"

#define PAINT_PAIRS      4096
#define PAINT_SLOTS      256
#define PAINT_FIRST_SLOT 16 /* curses writes smaller numbers in another way */

enum paint_depth { PAINT_NONE = 0, PAINT_8 = 8, PAINT_16 = 16, PAINT_256 = 256, PAINT_DIRECT = 1 << 24 };

struct paint {
    enum paint_depth depth;
    bool strike; /* by a combining stroke */
    struct theme theme;
    struct {
        int fg, bg;
    } role[ROLES], heat[GRID_HEATS]; /* the theme in the terminal's colour numbers */
    struct grid shown;               /* the terminal's contents */
    bool stale; /* everything must be sent again; the caller sets it if the terminal's contents were lost */
    bool slots; /* 24-bit colours through slots */
    int32_t slot[PAINT_SLOTS]; /* 0xRRGGBB of a colour number, up to */
    int n_slots;
    int pairs, max_pairs;
    struct {
        int fg, bg;
        int number;
    } pair[2 * PAINT_PAIRS]; /* hash table, number 0: free */
};

/* To be called after initscr(). Uses colours only if the terminal has them and NO_COLOR is not set. */
void paint_open(struct paint *, bool utf8);
/* Sets 24-bit colours for a terminal that has them, even if terminfo lacks them. Call it before paint_theme(). Returns
 * false and changes nothing if they are in use already, the terminal shows no colours, or it sets 256 colours in an
 * unknown way. */
bool paint_direct(struct paint *);
void paint_theme(struct paint *, const struct theme *); /* copied; without colours only its attributes count */
/* Writes the changes since the last call to curses' screen; the caller then calls doupdate(). Cells with another width
 * in the terminal's locale become '?', in g too. Returns false if memory runs out. */
bool paint_show(struct paint *, struct grid *g);

/* Nearest colour number of a palette; rgb as 0xRRGGBB, THEME_NO_RGB gives -1. Pure; for tests. */
int paint_nearest(enum paint_depth, int32_t rgb);
int32_t paint_rgb(enum paint_depth, int number); /* and back */
/* The scale of heat as colour numbers: lightness only grows, or only falls where theme.darker is set. Pure. */
void paint_scale(enum paint_depth, const struct theme *, int numbers[GRID_HEATS]);
