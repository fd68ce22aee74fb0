/* A frame: layout, panels, bars and overlays, sent to the terminal. */
#ifndef TUI_APP_FRAME_H
#define TUI_APP_FRAME_H

#include "tui/app/app_state.h"

bool frame_draw(struct app *, struct err *); /* fails without memory */

#endif
