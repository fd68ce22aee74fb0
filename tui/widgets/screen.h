/* The terminal and the picture on it: what is drawn goes into the grid, the theme makes colours of it. */
#ifndef TUI_WIDGETS_SCREEN_H
#define TUI_WIDGETS_SCREEN_H

#include "tui/terminal/paint.h"
#include "tui/terminal/terminal.h"

struct screen {
    struct terminal terminal;
    struct paint paint;
    struct grid grid;
    struct theme theme;     /* the chosen one; paint may have another one while one is only looked at */
    bool asked_direct;      /* whether 24-bit colours can be had; once the terminal says so */
    bool dirty;             /* something changed that the scope knows nothing of */
    bool repaint;           /* the terminal's contents are not to be trusted */
    uint64_t drawn_version; /* of the scope, in the last frame */
    uint64_t frame_us;      /* when that was shown */
    uint64_t frame_cost_us; /* processor time of a frame, smoothed */
};

bool screen_open(struct screen *, bool keys, struct err *); /* screen_close() also after a failure */
void screen_close(struct screen *);
/* A name or a file; the theme stays as it was when it fails. */
bool screen_theme(struct screen *, const char *name, const char *data_dir, struct err *);
void screen_take_theme(struct screen *, const struct theme *);
bool screen_outdated(const struct screen *); /* the terminal said what it can do after the last frame */
/* Between the two the grid, empty and as large as the terminal, is drawn into. False without memory. */
bool screen_begin(struct screen *);
bool screen_show(struct screen *);

#endif
