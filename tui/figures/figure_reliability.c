/* The reliability diagram: the acceptance of drafts by their confidence, with the threshold. */
#include <math.h>

#include "base/plural.h"
#include "tui/figures/figure_kind.h"

#define COUNTS     26.0 /* height of the counts below */
#define THRESHOLDS 3

static struct calibration
calibrate(const struct record *r)
{
    struct calibration c = {0};
    for (size_t i = 0; i < r->n_steps; i++)
        if (r->steps[i].tried)
            calibration_add(&c, (double)r->steps[i].confidence, r->steps[i].accepted == 1);
    return c;
}

static void
draw_bins(struct drawing *d, const struct panel_area *p, const struct calibration *c)
{
    for (int i = 0; i < CALIBRATION_BINS; i++) {
        const double x1 = scale_at(&p->across, (double)i / CALIBRATION_BINS),
                     x2 = scale_at(&p->across, (i + 1.0) / CALIBRATION_BINS);
        double low, high;
        if (c->n[i] == 0)
            continue;
        const double share = (double)c->right[i] / (double)c->n[i], mean = c->confidence[i] / (double)c->n[i];
        const double top = scale_at(&p->up, share), zero = p->up.from;
        drawing_rect(d, x1 + 0.5, top, x2 - x1 - 1, zero - top, FILL(ramp(0.28)));
        share_interval(c->right[i], c->n[i], &low, &high);
        const double middle = scale_at(&p->across, mean);
        drawing_line(d, middle, scale_at(&p->up, low), middle, scale_at(&p->up, high),
                     STROKE(line_styles[0].colour, .line = 0.7));
        mark_draw(d, 0, middle, top, 2, line_styles[0].colour);
    }
    drawing_line(d, p->x, p->y + p->height, p->x + p->width, scale_at(&p->up, 1),
                 STROKE(INK_LIGHT, .line = 0.6, .dash = DASH_SHORT));
}

static void
draw_counts(struct drawing *d, const struct panel_area *p, const struct calibration *c)
{
    for (int i = 0; i < CALIBRATION_BINS; i++) {
        const double x1 = scale_at(&p->across, (double)i / CALIBRATION_BINS),
                     x2 = scale_at(&p->across, (i + 1.0) / CALIBRATION_BINS);
        const double top = scale_at(&p->up, (double)c->n[i]);
        if (c->n[i] > 0)
            drawing_rect(d, x1 + 0.5, top, x2 - x1 - 1, p->up.from - top, FILL(ramp(0.6)));
    }
}

/* Finds the thresholds of the rounds; -1: more than THRESHOLDS, and found[0] is their mean. */
static int
thresholds(const struct record *r, double found[THRESHOLDS])
{
    double sum = 0, rounds = 0;
    int n = 0;
    for (size_t i = 0; i < r->n_rounds; i++) {
        const double t = (double)r->rounds[i].end.threshold;
        int k = 0;
        if (!(t >= 0 && t <= 1))
            continue;
        sum += t;
        rounds++;
        while (k < n && k < THRESHOLDS && fabs(found[k] - t) > 1e-6)
            k++;
        if (k < THRESHOLDS && k == n)
            found[n++] = t;
        else if (k == THRESHOLDS)
            n = THRESHOLDS + 1;
    }
    if (n <= THRESHOLDS)
        return n;
    found[0] = sum / rounds;
    return -1;
}

static void
draw_thresholds(struct drawing *d, const struct panel_area *p, double bottom, const struct record *r)
{
    double found[THRESHOLDS], before = -1;
    const int n = thresholds(r, found);
    for (int i = 0; i < (n < 0 ? 1 : n); i++) {
        const struct lettering l = LETTERS(SIZE_LABEL, ALARM, .anchor = ANCHOR_MIDDLE);
        const double x = scale_at(&p->across, found[i]);
        char text[32];
        snprintf(text, sizeof text, "%s %.3g", n < 0 ? "mean τ" : "τ", found[i]);
        drawing_line(d, x, p->y - 1.5, x, bottom, STROKE(ALARM, .line = 0.8, .dash = DASH_LONG));
        if (before < 0 || fabs(x - before) > lettering_width(&l, text)) /* otherwise only the line */
            drawing_text(d, x, p->y - 3.5, l, text);
        before = x;
    }
}

static bool
draw_reliability(struct figure *f, struct err *err)
{
    const struct record *r = &f->input->record;
    const struct calibration c = calibrate(r);
    double most = 0;
    if (c.all == 0)
        return err_set(err, ERR_USAGE,
                       "%s: no draft with a confidence was verified (policy %s); record a run of a policy that drafts",
                       r->path, r->policy->name);
    for (int i = 0; i < CALIBRATION_BINS; i++)
        most = fmax(most, (double)c.n[i]);
    const double width = f->width - AXES_LEFT - AXES_RIGHT, height = fmin(width, 190);
    const struct axis across = {
        {0, 1}, false, r->n_forecasts > 0 ? "forecast of the confidence head" : "confidence of the draft"};
    const struct panel_area p =
        axes_panel(AXES_LEFT, AXES_TITLE + 10, width, height, across, (struct axis){{0, 1.03}, false, "accepted"});
    const struct panel_area below =
        axes_panel(AXES_LEFT, p.y + height + 7, width, COUNTS, across, (struct axis){{0, most * 1.08}, true, "drafts"});
    axes_draw(f->d, &p, false);
    draw_bins(f->d, &p, &c);
    axes_draw(f->d, &below, true);
    draw_counts(f->d, &below, &c);
    draw_thresholds(f->d, &p, below.y + below.height, r);
    drawing_print(f->d, p.x, SIZE_TITLE, LETTERS(SIZE_TITLE, INK, .bold = true), "ECE %.3f", calibration_error(&c));
    drawing_print(f->d, p.x + p.width, SIZE_TITLE, LETTERS(SIZE_TICK, INK_LIGHT, .anchor = ANCHOR_RIGHT),
                  "%llu draft%s", (unsigned long long)c.all, plural(c.all));
    f->y = below.y + below.height + AXES_BOTTOM;
    snprintf(
        f->note, sizeof f->note,
        "Drafts whose predecessors were accepted, in %d bins; bars of 95%% (Wilson); dashed: as often right as sure.",
        CALIBRATION_BINS);
    return true;
}

const struct figure_kind figure_reliability = {
    .name = "reliability",
    .what = "confidence against acceptance, with ECE and the threshold",
    .traces = true,
    .least = 1,
    .most = 1,
    .width = 85,
    .narrow = 45,
    .draw = draw_reliability,
};
