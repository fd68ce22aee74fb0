/* Half blocks: two values in a cell, one above the other. */
#include "tui/terminal/canvas.h"

#include <math.h>

#define STEPS 16 /* levels of a half, so that a screen needs few pairs of colours */

static float
stepped(float value)
{
    return isnan(value) || value < 0 ? value : rintf(fminf(value, 1) * (STEPS - 1)) / (STEPS - 1);
}

static uint8_t
level_of(float value)
{
    return value < 0 ? GRID_GREY : (uint8_t)(1 + lrintf(value * (GRID_HEATS - 1)));
}

/* Without colours: the mean of what is known. */
static void
draw_level(const struct canvas *c, int y, int x, float upper, float lower)
{
    const float above = upper >= 0 ? upper : lower, below = lower >= 0 ? lower : upper; /* neither NAN nor grey */
    if (above >= 0)
        canvas_styled(c, y, x, ROLE_TEXT, (above + below) / 2, MARK_NONE, canvas_level((double)(above + below) / 2));
    else
        canvas_text(c, y, x, ROLE_DIM, isnan(upper) && isnan(lower) ? " " : "░");
}

void
canvas_halves(const struct canvas *c, int y, int x, float upper, float lower)
{
    struct grid_cell *cell = grid_at(c->grid, c->y + y, c->x + x);
    if (y < 0 || y >= c->rows || x < 0 || x >= c->cols || cell == NULL)
        return;
    if (c->grid->mono || !c->grid->utf8) {
        draw_level(c, y, x, upper, lower);
        return;
    }
    upper = stepped(upper);
    lower = stepped(lower);
    if (isnan(upper) && isnan(lower)) {
        canvas_text(c, y, x, ROLE_TEXT, " ");
    } else if (isnan(upper)) {
        canvas_text(c, y, x, ROLE_TEXT, "▄");
        cell->upper = level_of(lower);
    } else {
        canvas_styled(c, y, x, lower < 0 ? ROLE_EXITED : ROLE_TEXT, lower < 0 ? NAN : lower, MARK_NONE, "▀");
        cell->upper = level_of(upper);
    }
}
