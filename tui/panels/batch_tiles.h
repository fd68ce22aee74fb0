/* Tiles of the sequences of a batch: how they are arranged in a panel, and one of them drawn. */
#ifndef TUI_PANELS_BATCH_TILES_H
#define TUI_PANELS_BATCH_TILES_H

#include "tui/panels/text_flow.h"
#include "tui/terminal/canvas.h"

struct tiling {
    int columns; /* tiles beside each other */
    int rows;    /* of a tile, its box counted */
    int visible; /* tiles below each other that fit */
    bool boxed;
};

/* Of n tiles on so many rows and columns: as large as all fit, in boxes where they are large enough; small ones that
 * scroll when they don't. */
struct tiling tiling_of(uint32_t n, int rows, int cols);

struct tile_look {
    bool focused; /* fills the other panels: a thick edge and a mark */
    bool pointed; /* the cursor is on it: its number is reversed */
    int digits;   /* of the widest number */
};

/* One tile on all of the canvas. `flow` is room to work in. */
void tile_draw(const struct canvas *, const struct scope *, const struct scope_tile *, struct tile_look, bool boxed,
               struct flow *flow);

/* The end of its text alone. */
void tile_text(const struct canvas *, const struct scope *, const struct scope_tile *, struct flow *flow);

#endif
