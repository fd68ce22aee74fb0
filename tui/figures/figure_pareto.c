/* Gain against cost: a point for each trace or line of a benchmark, and the front of the points that no other beats in
 * both. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tui/figures/figure_kind.h"

#define POINTS_MOST 4000
#define POLICIES    32

struct pareto_point {
    double x, y;
    const char *policy;
    char label[120];
    bool front;
};

struct points {
    struct pareto_point *at;
    size_t n;
    const char *policy[POLICIES];
    int n_policies;
    const struct named_measure *x, *y;
};

static int
policy_place(const struct points *all, const char *policy)
{
    int i = 0;
    while (i < all->n_policies && strcmp(all->policy[i], policy) != 0)
        i++;
    return i;
}

static void
add_point(struct points *all, double x, double y, const char *policy, const char *settings)
{
    if (isnan(x) || isnan(y) || all->n == POINTS_MOST)
        return;
    struct pareto_point *p = &all->at[all->n++];
    *p = (struct pareto_point){.x = x, .y = y, .policy = policy};
    snprintf(p->label, sizeof p->label, "%s", settings);
    if (policy_place(all, policy) == all->n_policies && all->n_policies < POLICIES)
        all->policy[all->n_policies++] = policy;
}

static bool
add_table(struct points *all, const struct bench_table *t, struct err *err)
{
    const struct named_measure *wanted[] = {all->x, all->y};
    for (int i = 0; i < 2; i++)
        if (bench_table_column(t, wanted[i]->name) == SIZE_MAX)
            return err_set(err, ERR_USAGE, "%s: it has no column %s", t->path, wanted[i]->name);
    for (size_t i = 0; i < t->n_lines; i++)
        add_point(all, bench_table_value(t, i, bench_table_column(t, all->x->name)),
                  bench_table_value(t, i, bench_table_column(t, all->y->name)), t->line[i].policy, t->line[i].params);
    return true;
}

static void
add_record(struct points *all, const struct record *r)
{
    const struct measures m = metrics_measures(&r->metrics, &r->metrics.total);
    char settings[300];
    caption_settings(r->settings, settings, sizeof settings);
    const char *knobs = strstr(settings, ": ");
    add_point(all, measure_value(all->x, &m), measure_value(all->y, &m), r->policy->name,
              knobs != NULL ? knobs + 2 : "");
}

static bool
choose_axes(struct points *all, const char *axes, struct err *err)
{
    char first[64], names[300];
    const char *comma = strchr(axes, ',');
    if (comma != NULL) {
        snprintf(first, sizeof first, "%.*s", (int)(comma - axes), axes);
        all->x = measure_named(first);
        all->y = measure_named(comma + 1);
    }
    return (all->x != NULL && all->y != NULL) ||
           err_set(err, ERR_USAGE, "the axes '%.40s' are two measures with a comma between, of: %s", axes,
                   measure_names(names, sizeof names));
}

static void
find_front(struct points *all)
{
    const int x = all->x->better, y = all->y->better;
    for (size_t i = 0; i < all->n; i++) {
        struct pareto_point *p = &all->at[i];
        p->front = x != 0 && y != 0;
        for (size_t k = 0; k < all->n && p->front; k++) {
            const double dx = (all->at[k].x - p->x) * x, dy = (all->at[k].y - p->y) * y;
            p->front = !(dx >= 0 && dy >= 0 && (dx > 0 || dy > 0));
        }
    }
}

static int
along_front(const void *a, const void *b)
{
    const struct pareto_point *p = a, *q = b;
    return p->x != q->x ? (p->x > q->x) - (p->x < q->x) : (p->y > q->y) - (p->y < q->y);
}

static void
draw_front(struct drawing *d, const struct panel_area *p, const struct points *all)
{
    double *line = malloc(2 * (all->n + 1) * sizeof *line);
    size_t n = 0;
    if (line == NULL)
        return;
    for (size_t i = 0; i < all->n; i++)
        if (all->at[i].front) {
            line[n] = all->at[i].x;
            line[all->n + 1 + n++] = all->at[i].y;
        }
    axes_line(d, p, line, line + all->n + 1, n, STROKE(INK_LIGHT, .line = 0.8, .dash = DASH_SHORT));
    free(line);
}

/* Draws numbers at the front's points and their legend below the panel, because words at the points would overlap. */
static double
label_front(struct drawing *d, const struct panel_area *p, const struct points *all)
{
    double x = p->x, y = p->y + p->height + AXES_BOTTOM + 8;
    int number = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct pareto_point *at = &all->at[i];
        char text[200], a[24], b[24];
        if (!at->front)
            continue;
        snprintf(text, sizeof text, "%d", ++number);
        const double px = scale_at(&p->across, at->x), py = scale_at(&p->up, at->y);
        const bool right = all->x->better > 0, below = all->y->better < 0 && py + 8 < p->y + p->height;
        drawing_text(d, px + (right ? 3 : -3), py + (below ? 7.5 : -3), /* on the empty side */
                     LETTERS(5.6, INK, .anchor = right ? ANCHOR_LEFT : ANCHOR_RIGHT, .bold = true), text);
        snprintf(text, sizeof text, "%d  %s%s%s (%s, %s)", number, at->policy, at->label[0] != '\0' ? " " : "",
                 at->label, value_label(at->x, a, sizeof a), value_label(at->y, b, sizeof b));
        const struct lettering l = LETTERS(5.6, INK, .room = p->width + AXES_RIGHT);
        const double wide = lettering_width(&l, text) + 10;
        if (x + wide > p->x + p->width + AXES_RIGHT && x > p->x) {
            x = p->x;
            y += 7.6;
        }
        drawing_text(d, x, y, l, text);
        x += wide;
    }
    return y;
}

static double
draw_legend(struct drawing *d, const struct points *all, double left, double right, double y)
{
    const struct lettering l = LETTERS(SIZE_TICK, INK);
    double x = left;
    for (int i = 0; i < all->n_policies; i++) {
        const double wide = 8 + lettering_width(&l, all->policy[i]) + 8;
        if (x + wide > right && x > left) {
            x = left;
            y += 8.5;
        }
        mark_draw(d, i, x + 2, y - 2.2, 2, line_styles[i % LINE_STYLES].colour);
        drawing_text(d, x + 7, y, l, all->policy[i]);
        x += wide;
    }
    return y;
}

static bool
gather(const struct figure *f, struct points *all, struct err *err)
{
    all->at = calloc(POINTS_MOST, sizeof *all->at);
    bool ok = (all->at != NULL || err_set(err, ERR_WORK, "out of memory")) &&
              choose_axes(all, f->o->axes != NULL ? f->o->axes : "verification_rate,discard_rate", err);
    for (size_t i = 0; i < f->n_inputs && ok; i++) {
        if (f->input[i].is_table)
            ok = add_table(all, &f->input[i].table, err);
        else
            add_record(all, &f->input[i].record);
    }
    return ok && (all->n > 0 || err_set(err, ERR_USAGE, "%s: none of it has both %s and %s%s", f->input[0].path,
                                        all->x->name, all->y->name,
                                        strcmp(all->x->name, "speedup") == 0 || strcmp(all->y->name, "speedup") == 0
                                            ? "; a trace has a speedup when its baseline was measured"
                                            : ""));
}

static bool
draw_pareto(struct figure *f, struct err *err)
{
    struct points all = {0};
    struct range x = RANGE_NONE, y = RANGE_NONE;
    const bool ok = gather(f, &all, err);
    if (ok) {
        for (size_t i = 0; i < all.n; i++) {
            range_add(&x, all.at[i].x);
            range_add(&y, all.at[i].y);
        }
        qsort(all.at, all.n, sizeof *all.at, along_front);
        find_front(&all);
        const double top = draw_legend(f->d, &all, AXES_LEFT, f->width - 4, 7) + 5,
                     width = f->width - AXES_LEFT - AXES_RIGHT;
        const struct panel_area p = axes_panel(AXES_LEFT, top, width, fmin(width * 0.72, 230),
                                               (struct axis){range_shown(x, false), false, all.x->label},
                                               (struct axis){range_shown(y, false), false, all.y->label});
        axes_draw(f->d, &p, true);
        draw_front(f->d, &p, &all);
        for (size_t i = 0; i < all.n; i++) {
            const int place = policy_place(&all, all.at[i].policy);
            mark_draw(f->d, place, scale_at(&p.across, all.at[i].x), scale_at(&p.up, all.at[i].y),
                      all.at[i].front ? 2.3 : 1.7, line_styles[place % LINE_STYLES].colour);
        }
        f->y = label_front(f->d, &p, &all);
        snprintf(f->note, sizeof f->note,
                 "%zu points. Dashed and numbered: those that none other beats in both, %s %s and %s %s.", all.n,
                 all.x->better > 0 ? "more" : "fewer", all.x->label, all.y->better > 0 ? "more" : "fewer",
                 all.y->label);
    }
    free(all.at);
    return ok;
}

const struct figure_kind figure_pareto = {
    .name = "pareto",
    .what = "two measures against each other, of traces and CSV files",
    .traces = true,
    .tables = true,
    .least = 1,
    .most = 64,
    .width = 100,
    .narrow = 55,
    .draw = draw_pareto,
};
