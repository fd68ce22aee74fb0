#include "tui/panels/panel.h"

#include <stddef.h>

/* The panels in the order of Tab and of the digits. The first one stays on top in a narrow terminal. */
#define PANELS(P)                                                                                                      \
    P(panel_text)                                                                                                      \
    P(panel_layers)                                                                                                    \
    P(panel_rounds)                                                                                                    \
    P(panel_series)                                                                                                    \
    P(panel_knobs)                                                                                                     \
    P(panel_ledger)                                                                                                    \
    P(panel_run)                                                                                                       \
    P(panel_mask)                                                                                                      \
    P(panel_versus)                                                                                                    \
    P(panel_batch)                                                                                                     \
    P(panel_judge)                                                                                                     \
    P(panel_exits)                                                                                                     \
    P(panel_positions)                                                                                                 \
    P(panel_reliability)                                                                                               \
    P(panel_server)                                                                                                    \
    P(panel_sweep)                                                                                                     \
    P(panel_tune)                                                                                                      \
    P(panel_score)

#define DECLARE(panel) extern const struct panel_ops panel;
PANELS(DECLARE)

#define ADDRESS(panel) &(panel),
const struct panel_ops *const panel_registry[] = {PANELS(ADDRESS) NULL};
