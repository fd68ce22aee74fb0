/* What the files of the whole run's panel share: panel_run.c (view state, keys), run_draw.c. Nobody else includes it. */
#ifndef TUI_PANELS_RUN_H
#define TUI_PANELS_RUN_H

#include "tui/panels/panel.h"

#define RUN_LABEL 4 /* columns of the layers' numbers */

struct run_panel {
    /* As drawn last: what keys and mouse refer to, and what needs not be drawn anew. */
    uint32_t first;             /* position of the first column: the first behind the prompt */
    uint32_t fold;              /* positions a column */
    int cols;                   /* columns that there can be */
    int halves;                 /* half rows of layers */
    uint32_t epoch, seq, cells; /* cells: from this position on they were held */
    char head[8];
    float *value; /* (cols * halves) column by column, from the deepest layer on; as canvas_halves() takes them */
    size_t room;  /* of value */
};

void run_draw(struct run_panel *, const struct view *, const struct canvas *);

#endif
