/* From roles to what the terminal can show: 24-bit colours where terminfo says so, 256, 16, 8, or attributes alone.
 * Colour pairs are made when they are first used, at most PAINT_PAIRS of them. */
#ifndef TUI_TERMINAL_PAINT_H
#define TUI_TERMINAL_PAINT_H

#include "tui/terminal/grid.h"
#include "tui/terminal/theme.h"

#define PAINT_PAIRS 1024

enum paint_depth { PAINT_NONE = 0, PAINT_8 = 8, PAINT_16 = 16, PAINT_256 = 256, PAINT_DIRECT = 1 << 24 };

struct paint {
    enum paint_depth depth;
    bool utf8, strike; /* strike: by a combining stroke */
    struct theme theme;
    struct {
        int fg, bg;
    } role[ROLES], heat[GRID_HEATS]; /* the theme in the terminal's colour numbers */
    struct grid shown;               /* what the terminal has */
    bool stale;                      /* everything must be sent again */
    int pairs, max_pairs;
    struct {
        int fg, bg;
        int number;
    } pair[2 * PAINT_PAIRS]; /* hash table, number 0: free */
};

/* After initscr(); colours only where the terminal has them and NO_COLOR is not set. */
void paint_open(struct paint *, bool utf8);
void paint_close(struct paint *);
void paint_theme(struct paint *, const struct theme *); /* copied; without colours only its attributes count */
/* Puts what changed since the last time on curses' screen; the caller then calls doupdate(). Cells whose width the
 * terminal's locale sees otherwise than we become '?', in g too. False without memory. */
bool paint_show(struct paint *, struct grid *g);
void paint_forget(struct paint *); /* the terminal's contents were lost */

/* Nearest colour number of a palette; rgb as 0xRRGGBB, THEME_NO_RGB gives -1. Pure; for tests. */
int paint_nearest(enum paint_depth, int32_t rgb);
int32_t paint_rgb(enum paint_depth, int number); /* and back */

#endif
