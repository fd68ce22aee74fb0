/* The help overlay: every key of what is on screen, the commands, and what the marks mean. */
#ifndef TUI_FRAME_HELP_H
#define TUI_FRAME_HELP_H

#include "tui/state/panes.h"
#include "tui/widgets/command.h"
#include "tui/widgets/help_search.h"

/* *top: the first line shown; it is brought to where there is one. Matches are highlighted. */
void help_draw(int *top, struct help_search *, const struct panes *, const struct verb *, const struct canvas *);
bool help_key(int *top, int page, int key); /* page: lines of one; false: not a key that scrolls */

#endif
