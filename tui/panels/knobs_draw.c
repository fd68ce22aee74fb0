/* Sliders drawn. */
#include <math.h>

#include "tui/panels/knobs.h"
#include "tui/panels/knobs_settings.h"
#include "tui/panels/landscape.h"

static double
fraction(const struct knobs_item *it, double value)
{
    return it->most > it->least ? fmin(fmax((value - it->least) / (it->most - it->least), 0), 1) : 0;
}

static void
draw_name(const struct canvas *c, const struct knobs_item *it, bool focus)
{
    int x = 0;
    if (it->symbol[0] != '\0')
        x = canvas_print(c, 0, 0, focus ? ROLE_FOCUS : ROLE_KNOB, "%s ", it->symbol);
    canvas_word(c, 0, x, c->cols - x, focus ? ROLE_FOCUS : it->idle ? ROLE_DIM : ROLE_TEXT, MARK_NONE, it->knob->name);
}

static void
draw_item(const struct knobs_panel *p, const struct view *v, const struct canvas *c, int y, uint32_t i,
          const struct knobs_places *a)
{
    const struct knobs_item it = knobs_item(v, i);
    const bool focus = v->focused && p->focus == i, pending = it.requested != it.value;
    const double value = it.requested;
    char text[40];
    canvas_text(c, y, 0, ROLE_FOCUS, focus ? "▸" : " ");
    const struct canvas name = canvas_inside(c, y, 1, 1, a->name);
    draw_name(&name, &it, focus);
    int x = 1 + a->name + 1;
    const struct landscape_strip *strip = knobs_is_policys(v, i) ? knobs_strip(v, i) : NULL;
    if (a->slider > 0 && strip != NULL)
        landscape_draw_strip(strip, c, y, x, a->slider, fraction(&it, value), pending ? ROLE_KNOB_PENDING : ROLE_TITLE);
    else if (a->slider > 0)
        canvas_slider(c, y, x, a->slider, fraction(&it, value), fraction(&it, it.knob->def),
                      pending   ? ROLE_KNOB_PENDING
                      : it.idle ? ROLE_DIM
                                : ROLE_KNOB);
    x += a->slider + 1;
    if (focus && p->typing) {
        canvas_print(c, y, x, ROLE_CURSOR, "%s_", p->typed);
        return;
    }
    knob_format(it.knob, value, text, sizeof text);
    const int used = canvas_text(c, y, x, pending ? ROLE_KNOB_PENDING : it.idle ? ROLE_DIM : ROLE_TEXT, text);
    if (pending)
        canvas_text(c, y, x + used, ROLE_KNOB_PENDING, "…");
    if (strip == NULL || a->best == 0)
        return;
    landscape_best(v->landscape, scope_policy(v->scope), i, text, sizeof text);
    canvas_text(c, y, x + a->value, ROLE_DIM, text);
}

void
knobs_draw(struct knobs_panel *p, const struct view *v, const struct canvas *c)
{
    const struct knobs_places a = knobs_arrange(v, c->rows, c->cols);
    knobs_scroll(p, v, &a);
    if (knobs_grid_open(v)) {
        knobs_grid_draw(&p->grid, v, c);
        return;
    }
    const int settings = knobs_line_of(v, scope_policy(v->scope)->n_knobs) - 1; /* above sampling */
    for (int y = 0; y < a.seen; y++) {
        const int i = knobs_item_at(v, p->top + y);
        if (i >= 0)
            draw_item(p, v, c, y, (uint32_t)i, &a);
        else if (p->top + y == settings)
            knobs_draw_settings(v, c, y);
        else
            canvas_print(c, y, 1, ROLE_DIM, "%s has no knobs", scope_policy(v->scope)->name);
    }
    if (p->top > 0)
        canvas_text(c, 0, c->cols - 1, ROLE_DIM, canvas_glyph(c, "↑", "^"));
    if (a.seen > 0 && p->top + a.seen < a.lines)
        canvas_text(c, a.seen - 1, c->cols - 1, ROLE_DIM, canvas_glyph(c, "↓", "v"));
    const struct canvas help = canvas_inside(c, a.help, 1, a.help_rows, c->cols - 2);
    char text[KNOBS_HELP];
    knobs_help(v, p->focus, text);
    if (a.help >= 0 && v->focused)
        canvas_paragraph(&help, ROLE_DIM, text);
}
