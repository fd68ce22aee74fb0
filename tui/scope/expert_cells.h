/* Where the rows behind the newest positions of a sequence went, of a mixture of experts, and how often each expert was chosen. Lies
 * below the sequence. Only tui/scope includes it. */
#ifndef TUI_SCOPE_EXPERT_CELLS_H
#define TUI_SCOPE_EXPERT_CELLS_H

#include "tui/scope/scope.h"

struct expert_cells {
    uint32_t layers, experts, used,
        max_columns;    /* used: kept of a row and layer; 0: nothing was heard, and nothing is held */
    uint32_t *cells_of; /* (max_columns) 1 + the position that stands there, 0: none */
    uint8_t *n;         /* (max_columns, layers + 1) experts known; position p at p % max_columns */
    uint16_t *expert;   /* (max_columns, layers + 1, used) by descending weight */
    float *weight;      /* likewise */
    uint64_t *rows;     /* (layers + 1) positions that were told of */
    uint64_t *chosen;   /* (layers + 1, experts) of them, that went there */
};

/* Of a model with these numbers of layers, experts and experts used (0: not known). The event's are in range. False: out of memory. */
bool expert_cells_take(struct expert_cells *, const struct run_info *, uint32_t max_columns,
                       const struct experts_event *);
struct scope_experts expert_cells(const struct expert_cells *, uint32_t pos, uint32_t layer);
void expert_cells_forget(struct expert_cells *, uint32_t pos);
void expert_cells_begin(struct expert_cells *); /* empty again */
size_t expert_cells_bytes(const struct expert_cells *);
void expert_cells_close(struct expert_cells *);

#endif
