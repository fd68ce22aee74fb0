/* The grid of two knobs, in the knobs panel's place while it is open. */
#ifndef TUI_PANELS_KNOBS_GRID_H
#define TUI_PANELS_KNOBS_GRID_H

#include "tui/panels/panel.h"

struct knobs_grid {
    bool placed;    /* the cursor was */
    uint32_t at[2]; /* the cursor: points across and up */
};

bool knobs_grid_open(const struct view *);
void knobs_grid_draw(struct knobs_grid *, const struct view *, const struct canvas *);
/* `w` opens it with a knob and the one after it; then keys move the cursor, Enter takes both values, w and Esc close. */
bool knobs_grid_key(struct knobs_grid *, const struct view *, uint32_t knob, int key);

#endif
