/* The skipped sublayers of each round. */
#include <math.h>
#include <stdlib.h>

#include "tui/figures/figure_kind.h"

#define GAP 16.0

/* Draws one row of the mask: a line of cells for each layer, upwards. Adds to skipped[] of each round. */
static bool
draw_row(struct figure *f, const struct panel_area *p, int series, int row, double *value, double *skipped)
{
    const struct record *r = &f->input->record;
    const int cols = r->policy->series[series].cols;
    bool any = false;
    for (int i = 0; i < cols; i++) {
        record_values(r, series, row * cols + i, value);
        const double bottom = scale_at(&p->up, i + 0.5), top = scale_at(&p->up, i + 1.5);
        for (size_t k = 0, to; k < r->n_rounds; k = to) {
            for (to = k + 1;
                 to < r->n_rounds && (value[to] > 0) == (value[k] > 0) && isnan(value[to]) == isnan(value[k]);)
                to++;
            any = any || !isnan(value[k]);
            if (!(value[k] > 0))
                continue;
            const double left = scale_at(&p->across, r->rounds[k].number - 0.5),
                         right = scale_at(&p->across, r->rounds[to - 1].number + 0.5);
            drawing_rect(f->d, left, top + 0.25, right - left, bottom - top - 0.5, FILL(ramp(0.82)));
        }
        for (size_t k = 0; k < r->n_rounds; k++)
            skipped[k] += value[k] > 0;
    }
    return any;
}

static void
draw_count(struct figure *f, const struct panel_area *p, const double *at, const double *skipped, int all)
{
    const struct record *r = &f->input->record;
    axes_draw(f->d, p, true);
    axes_title(f->d, p, "sublayers skipped");
    axes_steps(f->d, p, at, skipped, r->n_rounds, p->across.high, STROKE(line_styles[0].colour, .line = 1));
    drawing_print(f->d, p->x + p->width, p->y - 3.5, LETTERS(SIZE_TICK, INK_LIGHT, .anchor = ANCHOR_RIGHT), "of %d",
                  all);
}

static bool
draw_mask(struct figure *f, struct err *err)
{
    const struct record *r = &f->input->record;
    const int series = policy_series_of_form(r->policy, SERIES_MASK);
    if (series < 0)
        return err_set(err, ERR_USAGE, "%s: policy %s skips no sublayers; record a run with --policy swift", r->path,
                       r->policy->name);
    const struct series *s = &r->policy->series[series];
    double *value = calloc(3 * r->n_rounds, sizeof *value), *skipped = value + r->n_rounds, *at = skipped + r->n_rounds;
    if (value == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    const double width = f->width - AXES_LEFT - AXES_RIGHT, height = fmax(s->cols * (s->cols > 40 ? 2.4 : 4.2), 40);
    const struct range rounds = {r->rounds[0].number - 0.5, r->rounds[r->n_rounds - 1].number + 0.5};
    double y = AXES_TITLE, most = 0;
    bool any = false;
    for (size_t k = 0; k < r->n_rounds; k++)
        at[k] = r->rounds[k].number - 0.5;
    for (int row = s->rows; row-- > 0;) { /* MLP above attention, as in a layer */
        struct panel_area p = axes_panel(AXES_LEFT, y, width, height, (struct axis){rounds, true, NULL},
                                         (struct axis){{0.5, s->cols + 0.5}, true, "layer"});
        char title[24];
        p.plain = true;
        snprintf(title, sizeof title, "row %d", row + 1);
        axes_draw(f->d, &p, false);
        any = draw_row(f, &p, series, row, value, skipped) || any;
        axes_title(f->d, &p, s->rows != 2 ? title : row == 0 ? "attention" : "MLP");
        drawing_rect(f->d, p.x, p.y, p.width, p.height, STROKE(INK_LIGHT));
        y += height + GAP;
    }
    for (size_t k = 0; k < r->n_rounds; k++)
        most = fmax(most, skipped[k]);
    const struct panel_area count = axes_panel(AXES_LEFT, y, width, 26, (struct axis){rounds, true, "round"},
                                               (struct axis){{0, fmax(most * 1.15, 1)}, true, NULL});
    draw_count(f, &count, at, skipped, s->rows * s->cols);
    f->y = y + 26 + AXES_BOTTOM;
    snprintf(f->note, sizeof f->note, "Dark: skipped while drafting.");
    free(value);
    return any || err_set(err, ERR_USAGE, "%s: no mask was reported in these rounds; take a longer range", r->path);
}

const struct figure_kind figure_mask = {
    .name = "mask",
    .what = "sublayers skipped over the rounds (swift)",
    FIGURE_OVER_ROUNDS,
    .draw = draw_mask,
};
