/* The key bar: which panels there are, what keys do in the one that has the focus, and what they do for the run. */
#ifndef TUI_FRAME_KEY_BAR_H
#define TUI_FRAME_KEY_BAR_H

#include "tui/state/follow.h"
#include "tui/state/panes.h"

/* On one row (tui/widgets/key_row.h). */
void key_bar_draw(const struct panes *, const struct followed *, const struct canvas *);

#endif
