/* The key bar: which panels there are, what keys do in the one that has the focus, and what they do for the run. */
#ifndef TUI_APP_KEY_BAR_H
#define TUI_APP_KEY_BAR_H

#include "tui/app/follow.h"
#include "tui/app/panes.h"

/* On one row. Items are shown whole or not at all; the least important ones give way. */
void key_bar_say(const char *pairs, const struct canvas *); /* of what lies over the panels: "Enter run  Esc leave" */
void key_bar_draw(const struct panes *, const struct followed *, const struct canvas *);

#endif
