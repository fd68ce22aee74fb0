/* Two knobs: the first one's values from top to bottom, the second one's from left to right, what was measured as heat. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/panels/sweep_views.h"
#include "tui/terminal/text.h"

#define NUMBER 6 /* columns of a cell with its number in it, and a star */

static void
value_text(const struct knob_sweep *s, uint32_t axis, uint32_t i, char *out, size_t n)
{
    const struct knob_axis *axes;
    sweep_axes(s, &axes);
    knob_format(sweep_knob(s, axis), knob_axis_value(&axes[axis], sweep_knob(s, axis), i), out, n);
}

static int
widest(const struct knob_sweep *s, uint32_t axis, uint32_t n)
{
    int width = 1;
    for (uint32_t i = 0; i < n; i++) {
        char text[32];
        value_text(s, axis, i, text, sizeof text);
        width = text_width(text) > width ? text_width(text) : width;
    }
    return width;
}

static void
draw_cell(const struct sweep_look *l, const struct canvas *c, int y, int x, uint32_t point)
{
    const struct estimate e = sweep_estimate(l->sweep, point, l->measure);
    const bool here = point == l->point;
    char number[24] = "", text[40];
    if (isnan(e.value)) {
        const bool runs = sweep_running(l->sweep) && point == sweep_at(l->sweep);
        canvas_styled(c, y, x + l->cell / 2, runs ? ROLE_KNOB_PENDING : ROLE_DIM, NAN, here ? MARK_CURSOR : MARK_NONE,
                      runs ? canvas_glyph(c, "◌", "o") : canvas_glyph(c, "·", "."));
        return;
    }
    const double span = l->high - l->low;
    const float heat = (float)(span > 0 ? 0.05 + 0.95 * (e.value - l->low) / span : 0.5);
    sweep_number(e.value, l->measure, number, sizeof number);
    const bool fits = text_width(number) + 1 <= l->cell;
    snprintf(text, sizeof text, "%s%s", fits ? number : "", sweep_star(l, c, point));
    canvas_heat(c, y, x, l->cell, heat,
                (here ? MARK_CURSOR : MARK_NONE) | (l->has_best && point == l->best ? MARK_BOLD : MARK_NONE), text);
}

void
sweep_draw_map(struct sweep_look *l, const struct canvas *c)
{
    const struct knob_axis *axes;
    uint32_t at[SWEEP_AXES];
    char text[64], down[32];
    sweep_axes(l->sweep, &axes);
    sweep_place(l->sweep, l->point, at);
    const int n_down = (int)axes[0].n, n_across = (int)axes[1].n;
    snprintf(down, sizeof down, "%s", sweep_knob(l->sweep, 0)->name);
    l->label = 1 + widest(l->sweep, 0, axes[0].n);
    l->label = text_width(down) + 1 > l->label && c->cols > 40 ? text_width(down) + 1 : l->label;
    const int across = widest(l->sweep, 1, axes[1].n) + 1;
    int room = c->cols - l->label - text_width(sweep_knob(l->sweep, 1)->name) - 1;
    l->cell = room / n_across >= NUMBER ? room / n_across < 10 ? room / n_across : 10 : across > 3 ? across : 3;
    l->header = c->rows > 2 ? 1 : 0;
    if (room < l->cell)
        room = c->cols - l->label;
    l->cols = room / l->cell < n_across ? room / l->cell : n_across;
    l->rows = c->rows - l->header - (c->rows > 3 ? 1 : 0);
    l->rows = l->rows < n_down ? l->rows : n_down;
    l->top = sweep_window(l->top, (int)at[0], n_down, l->rows);
    l->left = sweep_window(l->left, (int)at[1], n_across, l->cols);
    if (l->header > 0) { /* names stand where their values do: one above its column, one behind its row */
        canvas_text(c, 0, 0, ROLE_KNOB, down);
        canvas_text(c, 0, l->label + l->cols * l->cell + 1, ROLE_KNOB, sweep_knob(l->sweep, 1)->name);
    }
    for (int i = 0; i < l->cols && l->header > 0; i++) {
        value_text(l->sweep, 1, (uint32_t)(l->left + i), text, sizeof text);
        canvas_text(c, 0, l->label + i * l->cell, l->left + i == (int)at[1] ? ROLE_FOCUS : ROLE_DIM, text);
    }
    for (int y = 0; y < l->rows; y++) {
        uint32_t cell[SWEEP_AXES] = {(uint32_t)(l->top + y)};
        value_text(l->sweep, 0, cell[0], text, sizeof text);
        canvas_text(c, l->header + y, 0, cell[0] == at[0] ? ROLE_FOCUS : ROLE_DIM, text);
        for (int i = 0; i < l->cols; i++) {
            cell[1] = (uint32_t)(l->left + i);
            draw_cell(l, c, l->header + y, l->label + i * l->cell, sweep_point_at(l->sweep, cell));
        }
    }
    if (c->rows > 3)
        sweep_draw_details(l, c, l->header + l->rows);
}
