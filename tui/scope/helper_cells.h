/* What the layers of a model that helps said about the newest positions of a sequence. Lies below the sequence. Only
 * tui/scope includes it. */
#ifndef TUI_SCOPE_HELPER_CELLS_H
#define TUI_SCOPE_HELPER_CELLS_H

#include "tui/scope/scope.h"

struct helper_cells {
    uint32_t layers, max_columns; /* 0: nothing was heard of it, and nothing is held */
    uint32_t *cells_of;           /* (max_columns) 1 + the position whose cells stand there, 0: none */
    struct scope_cell *cells;     /* (max_columns * (layers + 1)) position p at p % max_columns */
    uint64_t *probed;             /* (layers + 1) */
    uint64_t *compared, *agreed;  /* (layers + 1) with the target's last layer */
};

/* The cells of a position for its next guess, empty if it had none; the first time with room for so many layers and
 * positions. NULL: out of memory. */
struct scope_cell *helper_cells_at(struct helper_cells *, uint32_t layers, uint32_t max_columns, uint32_t pos);
const struct scope_cell *helper_cells(const struct helper_cells *, uint32_t pos); /* (layers + 1); NULL: not held */
void helper_cells_forget(struct helper_cells *, uint32_t pos);
void helper_cells_forget_guesses(struct helper_cells *, uint32_t pos); /* those that the policy asked for */
void helper_cells_begin(struct helper_cells *);                        /* empty again */
size_t helper_cells_bytes(const struct helper_cells *);                /* that they take */
void helper_cells_close(struct helper_cells *);

#endif
