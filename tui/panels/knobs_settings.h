/* What else is set, below the sliders: what is probed, which head looks, the sampling. */
#ifndef TUI_PANELS_KNOBS_SETTINGS_H
#define TUI_PANELS_KNOBS_SETTINGS_H

#include "tui/panels/panel.h"

void knobs_draw_settings(const struct view *, const struct canvas *, int y);

#endif
