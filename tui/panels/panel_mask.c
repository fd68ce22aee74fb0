/* Layer masks: a row of boxes for each row of a MASK series, hollow where a sublayer is skipped, and what changed with
 * the last change marked. */
#include <math.h>
#include <stdio.h>

#include "tui/panels/panel.h"

#define LABEL 10

static const struct scope_series *
first_mask(const struct scope *s)
{
    const struct scope_series *series;
    for (uint32_t i = 0; (series = scope_series(s, i)) != NULL; i++)
        if (series->declared->form == SERIES_MASK)
            return series;
    return NULL;
}

static bool
active_mask(const struct view *v)
{
    return first_mask(v->scope) != NULL;
}

static void
draw_box(const struct scope_series *m, const struct canvas *c, int y, int x, int index)
{
    const float value = m->latest[index];
    const bool changed = m->last_change > 0 && m->changed[index] == m->last_change;
    if (isnan(value))
        canvas_text(c, y, x, ROLE_DIM, "·");
    else if (changed)
        canvas_text(c, y, x, ROLE_WARN, value > 0 ? canvas_glyph(c, "◇", "o") : canvas_glyph(c, "◆", "*"));
    else
        canvas_text(c, y, x, value > 0 ? ROLE_REJECTED : ROLE_ACCEPTED, value > 0 ? "□" : "■");
}

static void
draw_mask(void *state, const struct view *v, const struct canvas *c)
{
    (void)state;
    const struct scope_series *m = first_mask(v->scope);
    if (m == NULL)
        return;
    const int rows = m->declared->rows, cols = m->declared->cols;
    const int label = c->cols > 30 ? LABEL : 0, room = c->cols - label;
    if (room < 1)
        return;
    const int gap = cols * 2 <= room ? 2 : 1, line = room / gap; /* boxes a line; long strips take several */
    const int lines = (cols + line - 1) / line;
    int skipped = 0, y = 0;
    for (int i = 0; i < rows * cols; i++)
        skipped += m->latest[i] > 0;
    for (int part = 0; part < lines && y < c->rows; part++) {
        for (int row = 0; row < rows && y < c->rows; row++, y++) {
            if (label > 0 && rows == 2)
                canvas_text(c, y, 0, ROLE_DIM, row == 0 ? "attention" : "MLP");
            else if (label > 0)
                canvas_print(c, y, 0, ROLE_DIM, "%d", row + 1);
            for (int i = 0; i < line && part * line + i < cols; i++)
                draw_box(m, c, y, label + i * gap, row * cols + part * line + i);
        }
        if (y < c->rows && cols > 1) { /* layer numbers below */
            const int first = part * line + 1, last = first + line - 1 < cols ? first + line - 1 : cols;
            canvas_print(c, y, label, ROLE_DIM, "%d", first);
            const int x = label + (last - first) * gap - (last >= 100 ? 2 : last >= 10 ? 1 : 0);
            if (last > first && x > label + 3)
                canvas_print(c, y, x, ROLE_DIM, "%d", last);
            y++;
        }
    }
    if (y < c->rows)
        canvas_print(c, y, 0, ROLE_TEXT, "%d of %d skipped", skipped, rows * cols);
    if (y + 1 < c->rows && m->last_change > 0)
        canvas_print(c, y + 1, 0, ROLE_DIM, "changed in round %u: %s now runs, %s now skipped",
                     (unsigned)m->last_change, canvas_glyph(c, "◆", "*"), canvas_glyph(c, "◇", "o"));
}

static void
note_mask(void *state, const struct view *v, char *out, int n)
{
    (void)state;
    (void)v;
    snprintf(out, (size_t)n, "■ runs  □ skipped");
}

static const struct key_help keys[] = {{NULL, NULL}};

const struct panel_ops panel_mask = {
    .name = "mask",
    .title = "layer mask",
    .place = PANEL_BOTTOM,
    .weight = 3,
    .min_cols = 24,
    .active = active_mask,
    .keys = keys,
    .draw = draw_mask,
    .note = note_mask,
};
