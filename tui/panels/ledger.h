/* What the files of the ledger share: panel_ledger.c (which row, keys), ledger_rows.c (a row's columns, comparisons).
 * Nobody else includes it. */
#ifndef TUI_PANELS_LEDGER_H
#define TUI_PANELS_LEDGER_H

#include <string.h>

#include "engine/events/effects.h"
#include "tui/panels/panel.h"

struct ledger_choice {
    bool pinned;
    uint32_t reference; /* the number of the segment that is compared with; without a pin the prompt's first is */
    bool modelled;      /* modelled speedups are shown and ranked, not tokens/s */
    const struct effects *effects; /* what rows are compared by, the view's; NULL: there are none */

    const struct segment *against; /* as judged last, memory of the scope; NULL: there is nothing to compare with */
    const struct segment *best;    /* of the prompt; NULL: one row alone is none */
    bool best_by_far;              /* by more than noise, from each of the others, on the same tokens */
};

struct ledger_columns { /* where they end, counted from the left; 0: left out */
    int what, tokens, length, acceptance, speed, ratio, difference, lossless;
};

/* Finds reference and best; before a frame's rows. */
void ledger_judge(struct ledger_choice *, const struct scope *);
struct ledger_columns ledger_arrange(int cols);
void ledger_draw_heading(const struct ledger_choice *, const struct scope *, const struct ledger_columns *,
                         const struct canvas *, int y);
void ledger_draw_row(const struct ledger_choice *, const struct scope *, const struct segment *,
                     const struct ledger_columns *, const struct canvas *, int y, bool here);
/* The comparison in words: "C is 8.1% ±3.0 faster than B". */
void ledger_say(struct ledger_choice *, const struct scope *, const struct segment *, char *out, size_t n);

#endif
