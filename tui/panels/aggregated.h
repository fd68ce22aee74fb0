/* What the panels of aggregates share: they are of the window, up to the cursor. */
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
/* Of the segment in which the cursor is, of the last rounds up to it, or of the run; NULL: out of memory, or the rounds are not held
 * any more, which `why` names then. */
const struct aggregates *aggregated_now(struct aggregated *, const struct view *, const char **why);
/* With so much room, as when it is zoomed, such a panel has ticks on its axes and every number below its bars. */
#define AGGREGATED_ROWS 16
#define AGGREGATED_COLS 70
#define AGGREGATED_LEFT 11 /* columns of ticks and of the names of numbers */
/* Ticks with values from `low` to `high` along the left of the plot, which begins in column AGGREGATED_LEFT of `c`. */
void aggregated_ticks(const struct canvas *c, int y, int rows, double low, double high);
/* A line of numbers below n bars: its name, and the numbers, of which those without a value (NAN) are left out, as far as they
 * have room beside each other. */
void aggregated_numbers(const struct canvas *c, int y, const char *name, int n, int wide, const double *value,
                        const char *format);

/* A panel's note(), which needs no state: "segment B", "last 32 rounds", "run". */
void aggregated_note(void *state, const struct view *, char *out, int n);

#endif
