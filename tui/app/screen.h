/* The terminal and its contents: widgets draw into the grid, and the theme supplies the colours. */
#ifndef TUI_APP_SCREEN_H
#define TUI_APP_SCREEN_H

#include "tui/terminal/paint.h"
#include "tui/terminal/terminal.h"

struct screen {
    struct terminal terminal;
    struct paint paint;
    struct grid grid;
    struct theme theme;     /* the chosen theme; `paint` may show another while the user selects one */
    bool asked_direct;      /* 24-bit colours were tried, after the terminal reported them */
    bool dirty;             /* something outside of the scope changed */
    bool repaint;           /* the terminal's contents are unknown */
    uint64_t drawn_version; /* of the scope, in the last frame */
    uint64_t frame_us;      /* time at which that frame was shown */
    uint64_t frame_cost_us; /* processor time of a frame, smoothed */
};

bool screen_open(struct screen *, bool keys, struct err *); /* screen_close() also after a failure */
void screen_close(struct screen *);
/* Loads a theme by name or file; if it fails, the theme is unchanged. */
bool screen_theme(struct screen *, const char *name, const char *data_dir, struct err *);
/* The same at the start, for the default if name is NULL; if it fails, the theme is the program's own. */
bool screen_first_theme(struct screen *, const char *name, const char *data_dir, struct err *);
bool screen_outdated(const struct screen *); /* the terminal's answer came after the last frame */
/* screen_begin() empties the grid and gives it the terminal's size; screen_show() sends it. Both fail without
 * memory. */
bool screen_begin(struct screen *);
bool screen_show(struct screen *);

#endif
