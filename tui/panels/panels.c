/* The panels, in the order in which Tab goes through them. The first one stays on top when the terminal is narrow. */
#include "tui/panels/panel.h"

#include <stddef.h>

extern const struct panel_ops panel_text, panel_layers, panel_rounds, panel_series, panel_mask, panel_knobs;

const struct panel_ops *const panel_registry[] = {&panel_text, &panel_layers, &panel_rounds, &panel_series,
                                                  &panel_mask, &panel_knobs,  NULL};
