/* Data of a sequence for each position and each round, in rings: the layers of auxiliary models, a mixture's experts, the values of
 * series, and of positions whose cells were dropped one byte per layer. Only tui/scope includes it, and the panel of the whole run. */
#ifndef TUI_SCOPE_SEQUENCE_CELLS_H
#define TUI_SCOPE_SEQUENCE_CELLS_H

#include "tui/scope/scope.h"

/* ---- glimpses: one byte per layer for every position in memory ---- */

#define GLIMPSE_SPURIOUS                                                                                               \
    0x80u /* confident and wrong; the other bits are 0: unknown, or 1 + the confidence in steps of 1 / 126 */

uint8_t glimpse_make(float confidence, bool spurious); /* NAN: as 0 */
float glimpse_confidence(uint8_t);                     /* NAN: unknown */
static inline bool
glimpse_spurious(uint8_t g)
{
    return (g & GLIMPSE_SPURIOUS) != 0;
}

struct glimpses { /* zeros: empty */
    uint32_t max_positions, layers;
    uint32_t n;    /* positions allocated */
    uint32_t *of;  /* (n) 1 + the position of these bytes, 0: none */
    uint8_t *byte; /* (n * layers) position p at p % max_positions, layer l at l - 1 */
};

/* Returns a position's bytes, (layers), to fill; the first call sets max_positions and layers. NULL: out of memory. */
uint8_t *glimpses_keep(struct glimpses *, uint32_t max_positions, uint32_t layers, uint32_t pos);
const uint8_t *glimpses_at(const struct glimpses *, uint32_t pos); /* NULL: not in memory */
size_t glimpses_bytes(const struct glimpses *);
void glimpses_close(struct glimpses *); /* makes it empty */

/* ---- the layers of an auxiliary model at the newest positions ---- */

struct aux_cells { /* zeros: empty */
    uint32_t layers, max_columns;
    uint32_t *cells_of;          /* (max_columns) 1 + the position of these cells, 0: none */
    struct scope_cell *cells;    /* (max_columns * (layers + 1)) position p at p % max_columns */
    uint64_t *probed;            /* (layers + 1) */
    uint64_t *compared, *agreed; /* (layers + 1) with the target's last layer */
};

/* Returns the cells of a position, zeroed if they are new; the first call allocates this many layers and columns.
 * NULL: out of memory. */
struct scope_cell *aux_cells_at(struct aux_cells *, uint32_t layers, uint32_t max_columns, uint32_t pos);
const struct scope_cell *aux_cells(const struct aux_cells *, uint32_t pos); /* (layers + 1); NULL: not in memory */
void aux_cells_forget(struct aux_cells *, uint32_t pos);
void aux_cells_forget_predictions(struct aux_cells *,
                                  uint32_t pos); /* only the predictions that the policy asked for */
void aux_cells_begin(struct aux_cells *);        /* empties it and keeps the memory */
size_t aux_cells_bytes(const struct aux_cells *);
void aux_cells_close(struct aux_cells *);

/* ---- the experts of the newest positions' rows, and how often each expert was chosen ---- */

struct expert_cells { /* zeros: empty */
    uint32_t layers, experts, max_columns;
    uint32_t used;      /* experts stored for a row and layer */
    uint32_t *cells_of; /* (max_columns) 1 + the position, 0: none */
    uint8_t *n;         /* (max_columns, layers + 1) experts stored; position p at p % max_columns */
    uint16_t *expert;   /* (max_columns, layers + 1, used) by descending weight */
    float *weight;      /* likewise */
    uint64_t *rows;     /* (layers + 1) positions counted */
    uint64_t *chosen;   /* (layers + 1, experts) how many of them went to the expert */
};

/* Stores an event whose numbers are in range; the first one allocates. False: out of memory. */
bool expert_cells_take(struct expert_cells *, const struct run_info *, uint32_t max_columns,
                       const struct experts_event *);
struct scope_experts expert_cells(const struct expert_cells *, uint32_t pos, uint32_t layer);
void expert_cells_forget(struct expert_cells *, uint32_t pos);
void expert_cells_begin(struct expert_cells *); /* empties it and keeps the memory */
size_t expert_cells_bytes(const struct expert_cells *);
void expert_cells_close(struct expert_cells *);

/* ---- the values of a series, by round ---- */

struct round_values { /* zeros: empty */
    uint32_t max_rounds, cells;
    uint32_t n_rounds; /* allocated */
    uint32_t *of;      /* (n_rounds) 1 + the round of these values, 0: none */
    float *value;      /* (n_rounds * cells) round r at r % max_rounds; NAN: not reported */
};

/* Stores a value; the first call sets max_rounds and cells. A round's first value copies before[cells] (NULL: NANs). The value is
 * ignored if index is not below cells, if a newer round has the row, or without memory. */
void round_values_keep(struct round_values *, uint32_t max_rounds, uint32_t cells, const float *before, uint32_t round,
                       uint32_t index, float value);
const float *round_values(const struct round_values *, uint32_t round); /* (cells); NULL: not in memory */
const float *round_values_up_to(const struct round_values *,
                                uint32_t round); /* of this round or the newest one before it */
size_t round_values_bytes(const struct round_values *);
void round_values_close(struct round_values *); /* makes it empty */

#endif
