/* A frame: layout, panels, bars, overlays, then to the terminal. */
#ifndef TUI_FRAME_FRAME_H
#define TUI_FRAME_FRAME_H

#include "tui/state/app_state.h"

bool frame_draw(struct app *, struct err *); /* false without memory */

#endif
