/* A frame: layout, panels, bars and overlays, sent to the terminal. */
#ifndef TUI_FRAME_FRAME_H
#define TUI_FRAME_FRAME_H

#include "tui/state/app_state.h"

bool frame_draw(struct app *, struct err *); /* fails without memory */

/* Moves *top, the first line shown of the help or the messages. page: lines of a page. Returns false if the key does not scroll. */
bool page_key(int *top, int page, int key);

#endif
