/* What the panels of aggregates share: of which rounds they are. */
#ifndef TUI_PANELS_AGGREGATED_H
#define TUI_PANELS_AGGREGATED_H

#include "tui/panels/panel.h"
#include "tui/scope/aggregates.h"

struct aggregated {        /* view state of such a panel */
    struct aggregates own; /* of rounds that are asked for by number */
    uint32_t layers;       /* that it is open for; 0: not yet */
};

void *aggregated_open(void);
void aggregated_close(void *);
/* Of what the selection says; NULL: out of memory. */
const struct aggregates *aggregated_now(struct aggregated *, const struct view *);
/* A panel's note() and key(), which need no state: "stretch B", "in view", "all rounds"; v: the next of these. */
void aggregated_note(void *state, const struct view *, char *out, int n);
bool aggregated_key(void *state, const struct view *, int key);

#endif
