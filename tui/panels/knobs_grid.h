/* The grid of two knobs, in the knobs panel's place while it is open. */
#ifndef TUI_PANELS_KNOBS_GRID_H
#define TUI_PANELS_KNOBS_GRID_H

#include "tui/panels/panel.h"

struct knobs_grid {
    bool placed;    /* the cursor was */
    uint32_t at[2]; /* the cursor: points across and up */
};

/* What is foretold of a knob's values; NULL: nothing. */
const struct landscape_strip *knobs_strip(const struct view *, uint32_t knob);

/* On the panel's edge: how much is foretold, or the best value. False: nothing is. */
bool knobs_note_foretold(const struct view *, uint32_t knob, char *out, size_t n);

bool knobs_grid_open(const struct view *);
void knobs_grid_ask(struct knobs_grid *, const struct view *, uint32_t knob); /* to open, of this knob and the next */
void knobs_grid_draw(struct knobs_grid *, const struct view *, const struct canvas *);
/* While it is open keys move the cursor, Enter takes both values, w and Esc close. */
bool knobs_grid_key(struct knobs_grid *, const struct view *, int key);

#endif
