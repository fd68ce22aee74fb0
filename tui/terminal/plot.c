/* Line charts: two by four braille dots a cell, so that a panel of 40 × 8 cells draws 80 × 32 points. */
#include "engine/base/utf8.h"
#include "tui/terminal/canvas.h"

#include <math.h>
#include <string.h>

/* Bit of the dot at (row 0..3, column 0..1) in U+2800 + bits. */
static const uint8_t dot_bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

static void
dot(const struct canvas *c, int row, int column, enum role role)
{
    const int y = row / 4, x = column / 2;
    if (row < 0 || column < 0 || y >= c->rows || x >= c->cols)
        return;
    if (!c->grid->utf8) {
        static const char *const heights[4] = {"'", "-", ".", "_"};
        canvas_text(c, y, x, role, heights[row % 4]);
        return;
    }
    uint32_t code = 0;
    char glyph[5] = "";
    const struct grid_cell *cell = grid_at(c->grid, c->y + y, c->x + x);
    if (cell == NULL || utf8_character(cell->text, strlen(cell->text), &code) == 0 || code < 0x2800 || code > 0x28ff)
        code = 0x2800; /* not a chart's cell yet */
    utf8_put(glyph, code | dot_bits[row % 4][column % 2]);
    canvas_text(c, y, x, role, glyph);
}

/* A value's dot row; the top row is `high`. */
static int
row_of(double value, double low, double high, int dots)
{
    const double span = high > low ? high - low : 1;
    const double up = fmin(fmax((value - low) / span, 0), 1);
    return dots - 1 - (int)lrint(up * (dots - 1));
}

void
canvas_plot(const struct canvas *c, const float *values, int n, double low, double high, enum role role)
{
    const int wide = c->cols * 2, tall = c->rows * 4;
    if (n <= 0 || wide <= 0 || tall <= 0)
        return;
    int last = -1; /* dot row of the column before, -1: a gap */
    for (int column = 0; column < wide; column++) {
        /* The values that fall on this column: their whole range is drawn, so that no peak is lost. */
        const int from = (int)((int64_t)column * n / wide);
        const int to = (int)((int64_t)(column + 1) * n / wide);
        int top = tall, bottom = -1;
        for (int i = from; i < to || i == from; i++) {
            if (isnan(values[i]))
                continue;
            const int row = row_of((double)values[i], low, high, tall);
            top = row < top ? row : top;
            bottom = row > bottom ? row : bottom;
        }
        if (bottom < 0) {
            last = -1;
            continue;
        }
        const int reached = isnan(values[to > from ? to - 1 : from])
                                ? bottom
                                : row_of((double)values[to > from ? to - 1 : from], low, high, tall);
        if (last >= 0 && last < top) /* joined to the column before */
            top = last + 1 < top ? last + 1 : top;
        if (last >= 0 && last > bottom)
            bottom = last - 1 > bottom ? last - 1 : bottom;
        for (int row = top; row <= bottom; row++)
            dot(c, row, column, role);
        last = reached;
    }
}
