/* A frame: layout, panels, bars, overlays, then to the terminal. */
#ifndef TUI_APP_FRAME_H
#define TUI_APP_FRAME_H

#include "tui/app/app_state.h"

bool frame_draw(struct app *, struct err *); /* false without memory */

#endif
