/* Scores of drafters on finished texts: acceptance by position, and × plain decoding by depth of the context, of the
 * best setting of each drafter. */
#include <math.h>

#include "base/plural.h"
#include "tui/figures/figure_kind.h"

#define HEIGHT 110.0

/* The drafters that were scored, in the order of the table, as many as there are styles of lines. */
struct shown {
    uint32_t n, positions; /* positions: the last one that was tested */
    const struct score_row *row[LINE_STYLES];
};

/* Draws a value with its interval. */
static void
draw_mark(struct drawing *d, const struct panel_area *p, uint32_t k, double x, struct comparison c)
{
    const double at = scale_at(&p->across, x);
    if (!isnan(c.low))
        drawing_line(d, at, scale_at(&p->up, fmax(c.low, p->up.low)), at, scale_at(&p->up, fmin(c.high, p->up.high)),
                     STROKE(line_styles[k].colour, .line = 0.8));
    if (!isnan(c.value))
        mark_draw(d, line_styles[k].mark, at, scale_at(&p->up, c.value), 1.8, line_styles[k].colour);
}

static void
draw_accepted(struct drawing *d, const struct shown *s, double x, double y, double width)
{
    double at[SCORE_POSITIONS], value[SCORE_POSITIONS];
    const struct panel_area p =
        axes_panel(x, y, width, HEIGHT, (struct axis){{0.5, s->positions + 0.5}, true, "position in the draft"},
                   (struct axis){{0, 1.04}, false, "accepted"});
    axes_draw(d, &p, true);
    axes_title(d, &p, "acceptance by position");
    for (uint32_t k = 0; k < s->n; k++) {
        for (uint32_t i = 0; i < s->positions; i++) {
            at[i] = i + 1;
            value[i] = (double)s->row[k]->accepted[i];
            draw_mark(d, &p, k, at[i], (struct comparison){.value = value[i], .low = NAN});
        }
        axes_line(d, &p, at, value, s->positions, STROKE(line_styles[k].colour, .line = 0.9));
    }
}

/* Draws the drafters side by side at each depth that has texts; the line is plain decoding. */
static void
draw_speedups(struct drawing *d, const struct shown *s, double x, double y, double width)
{
    static const char *const labels[SCORE_DEPTHS] = {"0–1k", "1k–4k", "4k–16k", "16k+"};
    struct range range = {1, 1};
    uint32_t groups = 0, group = 0;
    for (uint32_t k = 0; k < s->n * SCORE_DEPTHS; k++) {
        const struct comparison *c = &s->row[k % s->n]->depth[k / s->n].speedup;
        groups += k % s->n == 0 && s->row[0]->depth[k / s->n].tokens > 0;
        range_add(&range, fmin(c->high, 2 * c->value));
        range_add(&range, fmax(c->low, c->value / 2));
    }
    const struct panel_area p = axes_panel(x, y, width, HEIGHT, (struct axis){{0.5, fmax(groups, 1) + 0.5}, true, NULL},
                                           (struct axis){range_shown(range, false), false, "× plain decoding"});
    axes_draw(d, &p, false);
    axes_title(d, &p, "speedup by depth of context");
    drawing_line(d, p.across.from, scale_at(&p.up, 1), p.across.to, scale_at(&p.up, 1), STROKE(INK, .line = 0.8));
    for (uint32_t i = 0; i < SCORE_DEPTHS; i++) {
        if (s->row[0]->depth[i].tokens == 0)
            continue;
        const double middle = ++group;
        drawing_text(d, scale_at(&p.across, middle), y + HEIGHT + 8, LETTERS(SIZE_TICK, INK, .anchor = ANCHOR_MIDDLE),
                     labels[i]);
        for (uint32_t k = 0; k < s->n; k++)
            draw_mark(d, &p, k, middle + (k - (s->n - 1) / 2.0) * 0.12, s->row[k]->depth[i].speedup);
    }
}

static bool
draw_score(struct figure *f, struct err *err)
{
    const struct score_report *r = f->input->score;
    struct shown s = {.positions = 1};
    const struct score_row *rows[SCORE_ROWS];
    char name[96];
    for (uint32_t i = 0, n = score_order(r, rows); i < n && s.n < LINE_STYLES; i++)
        if (rows[i]->kind != SCORE_NOT)
            s.row[s.n++] = rows[i];
    for (uint32_t i = 0; i < SCORE_POSITIONS * s.n; i++)
        if (!isnan(s.row[i % s.n]->accepted[i / s.n]))
            s.positions = i / s.n + 1;
    if (s.n == 0)
        return err_set(err, ERR_USAGE, "%s: no drafter was scored; the report has the reasons", f->input->path);
    const bool beside = f->width >= 110 * MM;
    const double width = beside ? (f->width - 14) / 2 : f->width, below = HEIGHT + AXES_BOTTOM + AXES_TITLE;
    const double inside = width - AXES_LEFT - AXES_RIGHT, x = beside ? width + 14 : 0, y = beside ? 0 : below;
    draw_accepted(f->d, &s, AXES_LEFT, AXES_TITLE, inside);
    draw_speedups(f->d, &s, x + AXES_LEFT, y + AXES_TITLE, inside);
    f->y = y + below;
    for (uint32_t k = 0; k < s.n; k++) {
        mark_draw(f->d, line_styles[k].mark, AXES_LEFT + 3, f->y += 9, 1.8, line_styles[k].colour);
        drawing_text(f->d, AXES_LEFT + 9, f->y + 2.3, LETTERS(SIZE_TICK, INK, .room = f->width - AXES_LEFT - 9),
                     score_drafter(s.row[k], name, sizeof name));
    }
    snprintf(f->note, sizeof f->note,
             "The best setting of each drafter on %u conversation%s. Lines are 95%% intervals%s.",
             (unsigned)r->conversations, plural(r->conversations),
             r->in_time ? "" : "; speedups count the weights that are read");
    return true;
}

const struct figure_kind figure_score = {
    .name = "score",
    .what = "acceptance and speedup of drafters, from score --json",
    .scores = true,
    .least = 1,
    .most = 1,
    .range = RANGE_OF_NOTHING,
    .width = 178,
    .narrow = 70,
    .draw = draw_score,
};
