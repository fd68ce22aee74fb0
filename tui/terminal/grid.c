#include "tui/terminal/grid.h"

#include <stdlib.h>
#include <string.h>

static const struct grid_cell blank = {.text = " ", .columns = 1, .heat = GRID_NO_HEAT};

bool
grid_open(struct grid *g, int rows, int cols)
{
    rows = rows < 1 ? 1 : rows;
    cols = cols < 1 ? 1 : cols;
    struct grid_cell *cells = calloc((size_t)rows * (size_t)cols, sizeof *cells);
    if (cells == NULL)
        return false;
    free(g->cells);
    g->cells = cells;
    g->rows = rows;
    g->cols = cols;
    grid_clear(g);
    return true;
}

void
grid_close(struct grid *g)
{
    free(g->cells);
    *g = (struct grid){0};
}

void
grid_clear(struct grid *g)
{
    for (size_t i = 0; i < (size_t)g->rows * (size_t)g->cols; i++)
        g->cells[i] = blank;
}

struct grid_cell *
grid_at(const struct grid *g, int y, int x)
{
    if (y < 0 || x < 0 || y >= g->rows || x >= g->cols)
        return NULL;
    return &g->cells[(size_t)y * (size_t)g->cols + (size_t)x];
}

/* Half of a wide character at x is about to be overwritten: its other half becomes a space. */
static void
mend(struct grid *g, int y, int x)
{
    struct grid_cell *c = grid_at(g, y, x);
    if (c == NULL)
        return;
    struct grid_cell *other = c->columns == 0 ? c - 1 : c->columns == 2 ? c + 1 : NULL;
    if (other == NULL)
        return;
    memcpy(other->text, " ", 2);
    other->columns = 1;
    memcpy(c->text, " ", 2);
    c->columns = 1;
}

void
grid_put(struct grid *g, int y, int x, const char *cluster, size_t bytes, int columns, struct grid_cell style)
{
    if (grid_at(g, y, x) == NULL || grid_at(g, y, x + columns - 1) == NULL)
        return;
    mend(g, y, x);
    if (columns == 2)
        mend(g, y, x + 1);
    struct grid_cell *c = grid_at(g, y, x);
    /* Marks piled on one character beyond the cell's size are dropped, whole characters only. */
    if (bytes >= TEXT_CLUSTER) {
        bytes = TEXT_CLUSTER - 1;
        while (bytes > 0 && ((unsigned char)cluster[bytes] & 0xc0) == 0x80)
            bytes--;
    }
    memset(style.text, 0, sizeof style.text);
    if (columns == 2) {
        style.columns = 0;
        c[1] = style;
    }
    memcpy(style.text, cluster, bytes);
    style.columns = (uint8_t)columns;
    c[0] = style;
}

size_t
grid_row(const struct grid *g, int y, char *out, size_t size)
{
    size_t length = 0, used = 0;
    for (int x = 0; x < g->cols; x++) {
        const struct grid_cell *c = grid_at(g, y, x);
        if (c == NULL)
            break;
        const size_t n = strnlen(c->text, sizeof c->text);
        if (length + n >= size)
            break;
        memcpy(out + length, c->text, n);
        length += n;
        if (!(n == 1 && c->text[0] == ' ') && n != 0)
            used = length;
    }
    out[used] = '\0';
    return used;
}

bool
grid_write(const struct grid *g, FILE *file)
{
    const size_t size = (size_t)g->cols * TEXT_CLUSTER + 1;
    char *line = malloc(size);
    if (line == NULL)
        return false;
    bool fine = true;
    for (int y = 0; y < g->rows && fine; y++) {
        const size_t n = grid_row(g, y, line, size);
        fine = fwrite(line, 1, n, file) == n && fputc('\n', file) != EOF;
    }
    free(line);
    return fine;
}
