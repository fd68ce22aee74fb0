/* Data of a sequence for each position and each round, in rings: the layers of auxiliary models, a mixture's experts,
 * the values of series, and of positions whose cells were dropped one byte per layer. Only engine/scope includes it,
 * and the panel of the whole run. */
#pragma once

#include "engine/scope/scope.h"

/* ---- a ring of rows with numbers: positions or rounds ---- */

struct ring {       /* zeros: empty */
    uint32_t most;  /* rows; number i is in row i % most */
    size_t bytes;   /* of a row */
    uint32_t n;     /* rows allocated: the ring grows as numbers do */
    uint32_t *held; /* (n) 1 + the number in this row, 0: none */
    unsigned char *rows;
};

/* Returns the row of a number to fill, zeroed if the number is new; the first call sets `most` and `bytes`. NULL: out
 * of memory. */
void *ring_keep(struct ring *, uint32_t most, size_t bytes, uint32_t number);
void *ring_at(const struct ring *, uint32_t number); /* NULL: not in memory */
void ring_forget(struct ring *, uint32_t number);
size_t ring_bytes(const struct ring *);
void ring_close(struct ring *); /* makes it zeros */

/* ---- glimpses: one byte per layer for every position in memory, layer l at l - 1 ---- */

#define GLIMPSE_SPURIOUS                                                                                               \
    0x80u /* confident and wrong; the other bits are 0: unknown, or 1 + the confidence in steps of 1 / 126 */

uint8_t glimpse_make(float confidence, bool spurious); /* NAN: as 0 */
float glimpse_confidence(uint8_t);                     /* NAN: unknown */
static inline bool
glimpse_spurious(uint8_t g)
{
    return (g & GLIMPSE_SPURIOUS) != 0;
}

/* ---- the layers of an auxiliary model at the newest positions ---- */

struct aux_cells { /* zeros: empty */
    uint32_t layers;
    struct ring cells;                    /* struct scope_cell (layers + 1) */
    uint64_t *probed, *compared, *agreed; /* (layers + 1) each; compared and agreed: with the target's last layer */
};

/* Returns the cells of a position, zeroed if they are new; the first call sets the layers and the number of columns.
 * NULL: out of memory. */
struct scope_cell *aux_cells_at(struct aux_cells *, uint32_t layers, uint32_t max_columns, uint32_t pos);
void aux_cells_forget_predictions(struct aux_cells *,
                                  uint32_t pos); /* only the predictions that the policy asked for */
void aux_cells_begin(struct aux_cells *);        /* empties it and keeps the memory */
void aux_cells_close(struct aux_cells *);

/* ---- the experts of the newest positions' rows, and how often each expert was chosen ---- */

struct expert_cells { /* zeros: empty */
    uint32_t layers, experts;
    uint32_t used;     /* experts stored for a row and layer */
    struct ring rows;  /* float weight[layers + 1][used]; uint16_t expert[layers + 1][used]; uint8_t n[layers + 1] */
    uint64_t *counted; /* (layers + 1) positions counted */
    uint64_t *chosen;  /* (layers + 1, experts) how many of them went to the expert */
};

/* Stores an event whose numbers are in range; the first one allocates. False: out of memory. */
bool expert_cells_take(struct expert_cells *, const struct run_info *, uint32_t max_columns,
                       const struct experts_event *);
struct scope_experts expert_cells(const struct expert_cells *, uint32_t pos, uint32_t layer);
void expert_cells_begin(struct expert_cells *); /* empties it and keeps the memory */
void expert_cells_close(struct expert_cells *);

/* ---- the values of a series, by round: float (cells), NAN: not reported ---- */

/* Stores a value. A round's first value copies before[cells] (NULL: NANs). The value is ignored if index is not below
 * cells, if a newer round has the row, or without memory. */
void round_values_keep(struct ring *, uint32_t max_rounds, uint32_t cells, const float *before, uint32_t round,
                       uint32_t index, float value);
const float *round_values_up_to(const struct ring *, uint32_t round); /* of this round or the newest one before it */
