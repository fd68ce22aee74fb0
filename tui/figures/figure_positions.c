/* Acceptance by position in the draft: conditional and unconditional rates with standard errors, and the ranks of the
 * target's token at the first rejection (docs/methods.md: Measures). */
#include <math.h>
#include <stdlib.h>

#include "base/plural.h"
#include "tui/figures/figure_kind.h"

#define HEIGHT 96.0
#define APART  0.07 /* of a position, from its middle to either mark */

/* Sums the rounds; the sequences of a batch are samples. False: out of memory. */
static bool
count(const struct record *r, struct positions *all)
{
    uint32_t sequences = 0;
    for (size_t i = 0; i < r->n_rounds; i++)
        sequences = r->rounds[i].seq >= sequences ? r->rounds[i].seq + 1 : sequences;
    struct positions *of = calloc(sequences, sizeof *of);
    for (size_t i = 0; i < r->n_rounds && of != NULL; i++)
        positions_round(&of[r->rounds[i].seq], &r->rounds[i].end);
    for (uint32_t seq = 0; seq < sequences && of != NULL; seq++)
        positions_add(all, &of[seq]);
    free(of);
    return of != NULL;
}

typedef struct estimate rate_fn(const struct positions *, uint32_t);

static void
draw_rate(struct drawing *d, const struct panel_area *p, const struct positions *of, rate_fn *rate, double apart,
          const struct line_style *style, enum dash dash)
{
    double at[POSITIONS], value[POSITIONS];
    const uint32_t n = positions_count(of);
    for (uint32_t i = 0; i < n; i++) {
        const struct estimate e = rate(of, i);
        at[i] = i + 1 + apart;
        value[i] = e.value;
        if (isnan(e.value) || isnan(e.se))
            continue;
        drawing_line(d, scale_at(&p->across, at[i]), scale_at(&p->up, fmax(0, e.value - e.se)),
                     scale_at(&p->across, at[i]), scale_at(&p->up, fmin(1, e.value + e.se)),
                     STROKE(style->colour, .line = 0.8));
    }
    axes_line(d, p, at, value, n, STROKE(style->colour, .line = 0.9, .dash = dash));
    for (uint32_t i = 0; i < n; i++)
        if (!isnan(value[i]))
            mark_draw(d, style->mark, scale_at(&p->across, at[i]), scale_at(&p->up, value[i]), 1.8, style->colour);
}

static void
legend(struct drawing *d, double x, double y, double room, const struct line_style *style, const char *text)
{
    mark_draw(d, style->mark, x + 3, y, 1.8, style->colour);
    drawing_text(d, x + 8, y + 2.3, LETTERS(SIZE_TICK, INK_LIGHT, .room = room - 8), text);
}

static void
draw_rates(struct drawing *d, const struct positions *of, double x, double y, double width)
{
    const struct panel_area p =
        axes_panel(x, y, width, HEIGHT, (struct axis){{0.5, positions_count(of) + 0.5}, true, "position in the draft"},
                   (struct axis){{0, 1.04}, false, "accepted"});
    axes_draw(d, &p, true);
    axes_title(d, &p, "acceptance by position");
    draw_rate(d, &p, of, positions_unconditional, APART, &line_styles[1], DASH_SHORT);
    draw_rate(d, &p, of, positions_conditional, -APART, &line_styles[0], DASH_NONE);
    const double below = y + HEIGHT + AXES_BOTTOM + 4.5;
    legend(d, x, below, width * 0.6, &line_styles[0], "after accepted drafts");
    legend(d, x + width * 0.62, below, width * 0.38, &line_styles[1], "of all rounds");
}

static void
draw_ranks(struct drawing *d, const struct positions *of, double x, double y, double width)
{
    uint32_t last = POSITION_RANKS;
    while (last > 1 && of->ranks[last] == 0)
        last--;
    const uint32_t bars = last + (of->ranks[0] > 0);
    const struct panel_area p = axes_panel(x, y, width, HEIGHT, (struct axis){{0.4, bars + 0.6}, true, NULL},
                                           (struct axis){{0, 1.04}, false, "first rejections"});
    const double bar = width / (bars + 0.2) * 0.6;
    axes_draw(d, &p, false);
    axes_title(d, &p, "the target's token in the drafter's list");
    for (uint32_t i = 1; i <= bars; i++) {
        const struct estimate e = positions_rank(of, i > last ? 0 : i);
        const double middle = scale_at(&p.across, i), top = scale_at(&p.up, e.value);
        const struct lettering letters = LETTERS(SIZE_TICK, INK, .anchor = ANCHOR_MIDDLE, .room = width / bars);
        if (e.value > 0)
            drawing_rect(d, middle - bar / 2, top, bar, p.up.from - top,
                         (struct pen){.fill = ramp(0.55), .stroke = INK, .line = 0.3});
        if (!isnan(e.se) && e.value > 0)
            drawing_line(d, middle, scale_at(&p.up, fmax(0, e.value - e.se)), middle,
                         scale_at(&p.up, fmin(1, e.value + e.se)), STROKE(INK, .line = 0.8));
        if (i > last)
            drawing_text(d, middle, y + HEIGHT + 8, letters, "later");
        else
            drawing_print(d, middle, y + HEIGHT + 8, letters, "%u", (unsigned)i);
    }
    drawing_text(d, x + width / 2, y + HEIGHT + 17, LETTERS(SIZE_LABEL, INK, .anchor = ANCHOR_MIDDLE), "rank");
}

static bool
draw_positions(struct figure *f, struct err *err)
{
    const struct record *r = &f->input->record;
    struct positions of = {0};
    if (!count(r, &of))
        return err_set(err, ERR_WORK, "out of memory");
    if (positions_count(&of) == 0)
        return err_set(err, ERR_USAGE, "%s: nothing was drafted (policy %s); record a run of a policy that drafts",
                       r->path, r->policy->name);
    const unsigned long long ranked = positions_ranked(&of);
    const bool beside = ranked > 0 && f->width >= 130 * MM;
    const double width = beside ? (f->width - 14) * 0.55 : f->width;
    double x = 0, y = AXES_TITLE;
    draw_rates(f->d, &of, x + AXES_LEFT, y, width - AXES_LEFT - AXES_RIGHT);
    f->y = y + HEIGHT + AXES_BOTTOM + 8;
    if (ranked > 0) {
        x = beside ? width + 14 : 0;
        y = beside ? y : f->y + 8 + AXES_TITLE;
        draw_ranks(f->d, &of, x + AXES_LEFT, y, f->width - x - AXES_LEFT - AXES_RIGHT);
        f->y = y + HEIGHT + AXES_BOTTOM + 8;
    }
    const struct estimate tokens = positions_tokens(&of);
    int n = snprintf(f->note, sizeof f->note, "%.2f", tokens.value);
    if (!isnan(tokens.se))
        n += snprintf(f->note + n, sizeof f->note - (size_t)n, " ±%.2f", tokens.se);
    n += snprintf(f->note + n, sizeof f->note - (size_t)n, " tokens a round in %llu round%s",
                  (unsigned long long)of.rounds, plural(of.rounds));
    if (ranked > 0)
        n += snprintf(f->note + n, sizeof f->note - (size_t)n, "; ranks of %llu rejection%s", ranked, plural(ranked));
    snprintf(f->note + n, sizeof f->note - (size_t)n, ". Lines are ± one standard error%s.",
             of.tokens.n > 1 ? ", over sequences" : "");
    return true;
}

const struct figure_kind figure_positions = {
    .name = "positions",
    .what = "acceptance by position in the draft, ranks of the target's token at rejections",
    FIGURE_OF_TRACE,
    .draw = draw_positions,
};
