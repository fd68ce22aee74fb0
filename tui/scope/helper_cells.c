#include "tui/scope/helper_cells.h"

#include <stdlib.h>
#include <string.h>

static bool
open_cells(struct helper_cells *h, uint32_t layers, uint32_t max_columns)
{
    const size_t rows = (size_t)layers + 1;
    h->cells_of = calloc(max_columns, sizeof *h->cells_of);
    h->cells = calloc(max_columns * rows, sizeof *h->cells);
    h->probed = calloc(rows, sizeof *h->probed);
    h->compared = calloc(rows, sizeof *h->compared);
    h->agreed = calloc(rows, sizeof *h->agreed);
    if (h->cells_of == NULL || h->cells == NULL || h->probed == NULL || h->compared == NULL || h->agreed == NULL) {
        helper_cells_close(h);
        return false;
    }
    h->layers = layers;
    h->max_columns = max_columns;
    return true;
}

void
helper_cells_close(struct helper_cells *h)
{
    free(h->cells_of);
    free(h->cells);
    free(h->probed);
    free(h->compared);
    free(h->agreed);
    *h = (struct helper_cells){0};
}

void
helper_cells_begin(struct helper_cells *h)
{
    if (h->layers == 0)
        return;
    const size_t rows = (size_t)h->layers + 1;
    memset(h->cells_of, 0, h->max_columns * sizeof *h->cells_of);
    memset(h->probed, 0, rows * sizeof *h->probed);
    memset(h->compared, 0, rows * sizeof *h->compared);
    memset(h->agreed, 0, rows * sizeof *h->agreed);
}

size_t
helper_cells_bytes(const struct helper_cells *h)
{
    return h->layers == 0 ? 0 : h->max_columns * ((size_t)h->layers + 1) * sizeof *h->cells;
}

static struct scope_cell *
place(const struct helper_cells *h, uint32_t pos)
{
    return &h->cells[(pos % h->max_columns) * ((size_t)h->layers + 1)];
}

struct scope_cell *
helper_cells_at(struct helper_cells *h, uint32_t layers, uint32_t max_columns, uint32_t pos)
{
    if (h->layers == 0 && !open_cells(h, layers, max_columns))
        return NULL;
    struct scope_cell *cells = place(h, pos);
    if (helper_cells(h, pos) == NULL)
        memset(cells, 0, ((size_t)h->layers + 1) * sizeof *cells);
    h->cells_of[pos % h->max_columns] = pos + 1;
    return cells;
}

const struct scope_cell *
helper_cells(const struct helper_cells *h, uint32_t pos)
{
    return h->layers > 0 && h->cells_of[pos % h->max_columns] == pos + 1 ? place(h, pos) : NULL;
}

void
helper_cells_forget(struct helper_cells *h, uint32_t pos)
{
    if (helper_cells(h, pos) != NULL)
        h->cells_of[pos % h->max_columns] = 0;
}

void
helper_cells_forget_guesses(struct helper_cells *h, uint32_t pos)
{
    struct scope_cell *cells = helper_cells(h, pos) != NULL ? place(h, pos) : NULL;
    for (uint32_t l = 1; cells != NULL && l <= h->layers; l++)
        if (cells[l].probed_by == PROBED_POLICY)
            cells[l].known = false;
}
