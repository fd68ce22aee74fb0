/* The exits of drafts and their acceptance: a histogram of exit layers, and acceptance by position in the draft. */
#include <math.h>

#include "base/plural.h"
#include "tui/figures/figure_kind.h"

#define HEIGHT 96.0

static bool
count(const struct record *r, struct draft_counts *c, struct err *err)
{
    if (!draft_counts_open(c, r->info->layers))
        return err_set(err, ERR_WORK, "out of memory");
    for (size_t i = 0; i < r->n_steps; i++)
        draft_counts_add(c, &r->steps[i]);
    return true;
}

static void
legend(struct drawing *d, double x, double y, int32_t colour, const char *text)
{
    drawing_rect(d, x, y, 6, 5, (struct pen){.fill = colour, .stroke = INK_LIGHT, .line = 0.3});
    drawing_text(d, x + 8, y + 4.8, LETTERS(SIZE_TICK, INK_LIGHT), text);
}

static void
draw_histogram(struct drawing *d, const struct record *r, const struct draft_counts *c, double x, double y,
               double width)
{
    const struct panel_area p =
        axes_panel(x, y, width, HEIGHT, (struct axis){{0.4, r->info->layers + 0.6}, true, "exit layer"},
                   (struct axis){{0, (double)draft_counts_most(c) * 1.06}, true, "drafts"});
    axes_draw(d, &p, true);
    axes_title(d, &p, "where drafts left");
    const double bar = width / (r->info->layers + 0.2) * 0.8;
    for (uint32_t l = 1; l <= r->info->layers; l++) {
        const double middle = scale_at(&p.across, l), zero = p.up.from;
        const double top = scale_at(&p.up, (double)c->accepted[l]),
                     higher = scale_at(&p.up, (double)(c->accepted[l] + c->others[l]));
        if (c->accepted[l] > 0)
            drawing_rect(d, middle - bar / 2, top, bar, zero - top,
                         (struct pen){.fill = ramp(0.8), .stroke = INK, .line = 0.3});
        if (c->others[l] > 0)
            drawing_rect(d, middle - bar / 2, higher, bar, top - higher,
                         (struct pen){.fill = ramp(0.2), .stroke = INK, .line = 0.3});
    }
    legend(d, x, y + HEIGHT + AXES_BOTTOM + 2, ramp(0.8), "accepted");
    legend(d, x + 48, y + HEIGHT + AXES_BOTTOM + 2, ramp(0.2), "rejected or not verified");
}

static void
draw_depths(struct drawing *d, const struct draft_counts *c, double x, double y, double width)
{
    const struct panel_area p =
        axes_panel(x, y, width, HEIGHT, (struct axis){{0.5, c->deepest + 0.5}, true, "position in the draft"},
                   (struct axis){{0, 1.04}, false, "acceptance"});
    double at[DRAFT_DEPTHS], share[DRAFT_DEPTHS], all[DRAFT_DEPTHS];
    size_t n = 0;
    axes_draw(d, &p, true);
    axes_title(d, &p, "how far they were accepted");
    for (uint32_t k = 1; k <= c->deepest; k++) {
        const struct depth_counts *b = &c->depth[k];
        double low, high;
        at[n] = k;
        share[n] = b->tried > 0 ? (double)b->passed / (double)b->tried : (double)NAN;
        all[n] = b->verified > 0 ? (double)b->accepted / (double)b->verified : (double)NAN;
        const double middle = scale_at(&p.across, k);
        share_interval(b->passed, b->tried, &low, &high);
        if (b->tried > 0)
            drawing_line(d, middle, scale_at(&p.up, low), middle, scale_at(&p.up, high),
                         STROKE(ramp(0.55), .line = 0.8));
        n++;
    }
    const struct line_style *a = &line_styles[0], *b = &line_styles[1];
    axes_line(d, &p, at, all, n, STROKE(b->colour, .line = 0.9, .dash = DASH_SHORT));
    axes_line(d, &p, at, share, n, STROKE(a->colour, .line = 1));
    for (size_t i = 0; i < n; i++) {
        if (!isnan(all[i]))
            mark_draw(d, b->mark, scale_at(&p.across, at[i]), scale_at(&p.up, all[i]), 1.6, b->colour);
        if (!isnan(share[i]))
            mark_draw(d, a->mark, scale_at(&p.across, at[i]), scale_at(&p.up, share[i]), 1.9, a->colour);
    }
    const double below = y + HEIGHT + AXES_BOTTOM + 4.5;
    mark_draw(d, a->mark, x + 3, below, 1.9, a->colour);
    drawing_text(d, x + 8, below + 2.3, LETTERS(SIZE_TICK, INK_LIGHT), "after accepted ones, 95%");
    mark_draw(d, b->mark, x + width / 2 + 19, below, 1.6, b->colour);
    drawing_text(d, x + width / 2 + 24, below + 2.3, LETTERS(SIZE_TICK, INK_LIGHT, .room = width / 2 - 20),
                 "all verified");
}

static bool
draw_exits(struct figure *f, struct err *err)
{
    const struct record *r = &f->input->record;
    struct draft_counts c = {0};
    if (r->n_drafts == 0)
        return err_set(err, ERR_USAGE, "%s: nothing was drafted (policy %s); record a run of a policy that drafts",
                       r->path, r->policy->name);
    if (!count(r, &c, err))
        return false;
    const uint64_t most = draft_counts_most(&c);
    const bool beside = f->width >= 130 * MM && most > 0 && c.deepest > 0;
    const double width = beside ? (f->width - 14) / 2 : f->width;
    double x = 0, y = AXES_TITLE;
    if (most > 0) {
        draw_histogram(f->d, r, &c, x + AXES_LEFT, y, width - AXES_LEFT - AXES_RIGHT);
        f->y = y + HEIGHT + AXES_BOTTOM + 8;
        x = beside ? width + 14 : 0;
        y = beside ? y : f->y + 8 + AXES_TITLE;
    }
    if (c.deepest > 0) {
        draw_depths(f->d, &c, x + AXES_LEFT, y, width - AXES_LEFT - AXES_RIGHT);
        f->y = y + HEIGHT + AXES_BOTTOM + 8;
    }
    snprintf(f->note, sizeof f->note, "%zu draft%s in %zu round%s%s.", r->n_steps, plural(r->n_steps), r->n_rounds,
             plural(r->n_rounds), c.elsewhere > 0 ? "; some come from none of these layers" : "");
    draft_counts_close(&c);
    return true;
}

const struct figure_kind figure_exits = {
    .name = "exits",
    .what = "exit layers, and acceptance by position in the draft",
    FIGURE_OF_TRACE,
    .draw = draw_exits,
};
