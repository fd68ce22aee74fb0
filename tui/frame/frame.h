/* A frame: layout, panels, bars, overlays, then to the terminal. */
#ifndef TUI_FRAME_FRAME_H
#define TUI_FRAME_FRAME_H

#include "tui/state/app_state.h"

bool frame_draw(struct app *, struct err *); /* fails without memory */

/* The help overlay: every key of the panels on the screen, the commands, and the meaning of the marks. *top, the first line shown, is
 * moved to a line that exists. Matches are highlighted. */
void help_draw(int *top, struct help_search *, const struct panes *, const struct verb *, const struct canvas *);
bool help_key(int *top, int page, int key); /* page: lines of a page; returns false if the key does not scroll */

#endif
