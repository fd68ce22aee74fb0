/* The key bar: first the keys for help, quitting, pausing and panels, which are always there; then what keys do in the
 * focused panel and for the run, and the panels that are not on the screen. */
#ifndef TUI_FRAME_KEY_BAR_H
#define TUI_FRAME_KEY_BAR_H

#include "tui/state/follow.h"
#include "tui/state/panes.h"
#include "tui/widgets/clicks.h"

/* On one row (tui/widgets/key_row.h). */
void key_bar_draw(const struct panes *, const struct followed *, const struct canvas *, struct clicks *);

#endif
