/* The measure of a sweep's points: a line over one knob, a map over two, a row of maps over three; a panel per
 * policy. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "tui/figures/figure_kind.h"

#define AXIS_VALUES 64
#define ROW         12.5
#define LINE_HEIGHT 92.0
#define SWEPT       3

/* A swept knob with its values, in order. */
struct swept {
    const char *name, *text[AXIS_VALUES];
    double value[AXIS_VALUES];
    int n;
};

struct swept_policy { /* of one policy */
    const struct bench_table *t;
    const char *policy;
    size_t column, spread, samples; /* of the measure, of its standard error and its samples; SIZE_MAX: there is none */
    struct swept axis[SWEPT];
    int n_axes;
    struct range range;
    size_t best; /* line; SIZE_MAX: none is clearly the best */
};

static int
place_of(const struct swept *a, const struct bench_line *line)
{
    const struct bench_setting *s = bench_line_setting(line, a->name);
    for (int i = 0; s != NULL && i < a->n; i++)
        if (strcmp(a->text[i], s->text) == 0)
            return i;
    return -1;
}

static bool
add_value(struct swept *a, const struct bench_setting *s)
{
    int at = 0;
    for (int i = 0; i < a->n; i++)
        if (strcmp(a->text[i], s->text) == 0)
            return true;
    if (a->n == AXIS_VALUES)
        return false;
    while (at < a->n && !(s->value < a->value[at])) /* words keep their order */
        at++;
    memmove(a->text + at + 1, a->text + at, (size_t)(a->n - at) * sizeof *a->text);
    memmove(a->value + at + 1, a->value + at, (size_t)(a->n - at) * sizeof *a->value);
    a->text[at] = s->text;
    a->value[at] = s->value;
    a->n++;
    return true;
}

/* Finds the settings that have several values among the policy's lines. */
static bool
find_axes(struct swept_policy *s, struct err *err)
{
    struct swept *all = calloc(BENCH_SETTINGS, sizeof *all);
    int n = 0;
    bool ok = all != NULL || err_set(err, ERR_WORK, "out of memory");
    for (size_t i = 0; i < s->t->n_lines && ok; i++) {
        const struct bench_line *line = &s->t->line[i];
        for (size_t k = 0; k < line->n_settings && strcmp(line->policy, s->policy) == 0 && ok; k++) {
            int at = 0;
            while (at < n && strcmp(all[at].name, line->setting[k].name) != 0)
                at++;
            if (at == n && n < BENCH_SETTINGS)
                all[n++].name = line->setting[k].name;
            if (at < n && !add_value(&all[at], &line->setting[k]))
                ok = err_set(err, ERR_USAGE, "%s: %s has more than %d values", s->t->path, all[at].name, AXIS_VALUES);
        }
    }
    for (int i = 0; i < n && ok; i++) {
        if (all[i].n < 2)
            continue;
        if (s->n_axes == SWEPT)
            ok = err_set(err, ERR_USAGE, "%s: policy %s was swept over more than %d knobs; sweep fewer at a time",
                         s->t->path, s->policy, SWEPT);
        else
            s->axis[s->n_axes++] = all[i];
    }
    free(all);
    return ok;
}

static double
value_of(const struct swept_policy *s, size_t line)
{
    return bench_table_value(s->t, line, s->column);
}

#define SAMPLES_UNSAID 1000 /* assumed for older files, which lack the column: two standard errors are 95% */

static struct estimate
estimate_of(const struct swept_policy *s, size_t line)
{
    const double samples = bench_table_value(s->t, line, s->samples);
    return (struct estimate){.value = value_of(s, line),
                             .se = bench_table_value(s->t, line, s->spread),
                             .n = samples >= 1 ? (uint64_t)samples : SAMPLES_UNSAID};
}

/* Returns half the width of the 95% interval; NAN: unknown. */
static double
reach_of(const struct swept_policy *s, size_t line)
{
    const struct estimate e = estimate_of(s, line);
    return e.n > 1 ? estimate_reach((double)e.n - 1) * e.se : (double)NAN;
}

/* Finds the best line; it must exceed the second by more than their uncertainty, if that is known. */
static void
find_best(struct swept_policy *s, int better)
{
    size_t best = SIZE_MAX, second = SIZE_MAX;
    s->range = RANGE_NONE;
    s->best = SIZE_MAX;
    for (size_t i = 0; i < s->t->n_lines; i++) {
        const double v = value_of(s, i);
        if (strcmp(s->t->line[i].policy, s->policy) != 0 || isnan(v))
            continue;
        range_add(&s->range, v);
        if (best == SIZE_MAX || (v - value_of(s, best)) * better > 0) {
            second = best;
            best = i;
        } else if (second == SIZE_MAX || (v - value_of(s, second)) * better > 0) {
            second = i;
        }
    }
    if (better == 0 || best == SIZE_MAX || second == SIZE_MAX)
        return;
    if (value_of(s, best) != value_of(s, second) &&
        estimate_difference(estimate_of(s, best), estimate_of(s, second)).verdict != DIFFERENCE_NOISE)
        s->best = best;
}

/* ---- one knob ---- */

static void
draw_over_one(struct figure *f, const struct swept_policy *s, const char *label)
{
    const struct swept *a = &s->axis[0];
    const bool numbers = !isnan(a->value[0]);
    double x[AXIS_VALUES], y[AXIS_VALUES];
    struct range across = RANGE_NONE, up = s->range;
    bool whole = true;
    for (int i = 0; i < a->n; i++) {
        x[i] = numbers ? a->value[i] : i;
        y[i] = NAN;
        whole = whole && x[i] == rint(x[i]);
        range_add(&across, x[i]);
    }
    for (size_t i = 0; i < s->t->n_lines; i++) /* bars of uncertainty, too */
        if (strcmp(s->t->line[i].policy, s->policy) == 0) {
            range_add(&up, value_of(s, i) - reach_of(s, i));
            range_add(&up, value_of(s, i) + reach_of(s, i));
        }
    const double air = (across.high - across.low) * 0.03;
    across.low -= air;
    across.high += air;
    const struct panel_area p =
        axes_panel(AXES_LEFT, f->y + AXES_TITLE, f->width - AXES_LEFT - AXES_RIGHT, LINE_HEIGHT,
                   (struct axis){across, whole, a->name}, (struct axis){range_shown(up, false), false, label});
    axes_draw(f->d, &p, true);
    axes_title(f->d, &p, s->policy);
    for (size_t i = 0; i < s->t->n_lines; i++) {
        const int at = strcmp(s->t->line[i].policy, s->policy) == 0 ? place_of(a, &s->t->line[i]) : -1;
        const double reach = reach_of(s, i);
        if (at < 0)
            continue;
        y[at] = value_of(s, i);
        const double px = scale_at(&p.across, x[at]), py = scale_at(&p.up, y[at]);
        if (!isnan(reach))
            drawing_line(f->d, px, scale_at(&p.up, y[at] - reach), px, scale_at(&p.up, y[at] + reach),
                         STROKE(ramp(0.55), .line = 0.8));
        mark_draw(f->d, 0, px, py, 1.8, line_styles[0].colour);
        if (i == s->best)
            drawing_circle(f->d, px, py, 4, STROKE(ALARM, .line = 0.9));
    }
    axes_line(f->d, &p, x, y, (size_t)a->n, STROKE(line_styles[0].colour, .line = 1));
    f->y = p.y + LINE_HEIGHT + AXES_BOTTOM + 6;
}

/* ---- two knobs, and a third ---- */

struct map {
    const struct swept_policy *s;
    const struct swept *across, *up, *third;
    double x, y, cell;
};

static void
draw_map_cell(struct drawing *d, const struct map *m, size_t line)
{
    const struct swept_policy *s = m->s;
    const int column = place_of(m->across, &s->t->line[line]), row = place_of(m->up, &s->t->line[line]);
    const double v = value_of(s, line), span = s->range.high - s->range.low;
    if (column < 0 || row < 0 || isnan(v))
        return;
    const double x = m->x + column * m->cell, y = m->y + (m->up->n - 1 - row) * ROW;
    const int32_t ground = ramp(span > 0 ? 0.04 + 0.96 * (v - s->range.low) / span : 0.5);
    const struct lettering l =
        LETTERS(5.8, ink_on(ground), .anchor = ANCHOR_MIDDLE, .bold = line == s->best, .room = m->cell - 1.5);
    char text[24];
    drawing_rect(d, x, y, m->cell, ROW, FILL(ground));
    value_label(v, text, sizeof text);
    if (lettering_width(&l, text) <= m->cell - 1.5)
        drawing_text(d, x + m->cell / 2, y + ROW / 2 + 2.1, l, text);
}

static void
draw_map(struct figure *f, const struct map *m, int third, bool labels)
{
    const struct swept_policy *s = m->s;
    const double bottom = m->y + m->up->n * ROW, right = m->x + m->across->n * m->cell;
    const struct lettering small = LETTERS(SIZE_TICK, INK_LIGHT, .anchor = ANCHOR_MIDDLE, .room = m->cell);
    drawing_rect(f->d, m->x, m->y, right - m->x, bottom - m->y, (struct pen){.fill = 0xf2f2f2, .stroke = NO_COLOUR});
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < s->t->n_lines; i++) {
        const struct bench_line *line = &s->t->line[i];
        if (strcmp(line->policy, s->policy) != 0 || (m->third != NULL && place_of(m->third, line) != third))
            continue;
        draw_map_cell(f->d, m, i);
        best = i == s->best ? i : best;
    }
    for (int i = 0; i < m->across->n; i++)
        if (i % (1 + (int)(lettering_width(&small, m->across->text[m->across->n - 1]) / (m->cell + 0.1))) == 0)
            drawing_text(f->d, m->x + (i + 0.5) * m->cell, bottom + 2 + SIZE_TICK, small, m->across->text[i]);
    for (int i = 0; i < m->up->n && labels; i++)
        drawing_text(f->d, m->x - 3, bottom - (i + 0.5) * ROW + SIZE_TICK * 0.36,
                     LETTERS(SIZE_TICK, INK_LIGHT, .anchor = ANCHOR_RIGHT), m->up->text[i]);
    drawing_rect(f->d, m->x, m->y, right - m->x, bottom - m->y, STROKE(INK_LIGHT));
    if (best != SIZE_MAX)
        drawing_rect(f->d, m->x + place_of(m->across, &s->t->line[best]) * m->cell,
                     m->y + (m->up->n - 1 - place_of(m->up, &s->t->line[best])) * ROW, m->cell, ROW,
                     STROKE(ALARM, .line = 1.2));
    drawing_text(f->d, (m->x + right) / 2, bottom + 5 + SIZE_TICK + SIZE_LABEL,
                 LETTERS(SIZE_LABEL, INK, .anchor = ANCHOR_MIDDLE), m->across->name);
    if (m->third != NULL)
        drawing_print(f->d, (m->x + right) / 2, m->y - 3,
                      LETTERS(SIZE_LABEL, INK, .anchor = ANCHOR_MIDDLE, .room = right - m->x), "%s = %s",
                      m->third->name, m->third->text[third]);
}

static void
draw_over_more(struct figure *f, const struct swept_policy *s, const char *label)
{
    const struct lettering title = LETTERS(SIZE_TITLE, INK, .bold = true), small = LETTERS(SIZE_TICK, INK_LIGHT);
    struct map m = {.s = s, .across = &s->axis[0], .up = &s->axis[1], .third = s->n_axes > 2 ? &s->axis[2] : NULL};
    char low[24], high[24];
    double widest = 0;
    for (int i = 0; i < m.up->n; i++)
        widest = fmax(widest, lettering_width(&small, m.up->text[i]));
    const double left = 11 + widest + 4, gap = 8;
    drawing_text(f->d, left, f->y + 7.5, title, s->policy);
    value_label(s->range.low, low, sizeof low);
    value_label(s->range.high, high, sizeof high);
    ramp_legend(f->d, left + lettering_width(&title, s->policy) + 10, f->y + 2.2, 40, label, low, high);
    f->y += AXES_TITLE + (m.third != NULL ? 10 : 2);
    const int maps = m.third != NULL ? m.third->n : 1;
    const double room = f->width - left - 2;
    int per_row = maps; /* as many side by side as leave room for numbers */
    while (per_row > 1 && (room - (per_row - 1) * gap) / per_row / m.across->n < 15)
        per_row--;
    m.cell = fmin((room - (per_row - 1) * gap) / per_row / m.across->n, 50);
    for (int i = 0; i < maps; i++) {
        const int at = i % per_row;
        m.x = left + at * (m.across->n * m.cell + gap);
        m.y = f->y;
        draw_map(f, &m, i, at == 0);
        if (at == 0)
            drawing_text(f->d, 7, m.y + m.up->n * ROW / 2,
                         LETTERS(SIZE_LABEL, INK, .anchor = ANCHOR_MIDDLE, .upwards = true), m.up->name);
        if (at == per_row - 1 || i == maps - 1)
            f->y += m.up->n * ROW + AXES_BOTTOM + (m.third != NULL && i < maps - 1 ? 12 : 4);
    }
}

static bool
first_of_policy(const struct bench_table *t, size_t line)
{
    for (size_t i = 0; i < line; i++)
        if (strcmp(t->line[i].policy, t->line[line].policy) == 0)
            return false;
    return true;
}

static bool
draw_grid(struct figure *f, struct err *err)
{
    const struct bench_table *t = &f->input->table;
    const char *measure = f->o->measure != NULL ? f->o->measure : "speedup";
    const struct named_measure *named = measure_named(measure);
    char spread[64], names[300];
    const size_t column = bench_table_column(t, measure);
    if (named != NULL && column == SIZE_MAX)
        return err_set(err, ERR_USAGE,
                       "%.100s: it has no column '%.30s'; draw a file that bench --csv or :sweep csv wrote", t->path,
                       measure);
    if (named == NULL)
        return err_set(err, ERR_USAGE, "%.100s: there is no measure '%.30s' in it; there are %s", t->path, measure,
                       measure_names(names, sizeof names));
    snprintf(spread, sizeof spread, "%s_se", measure);
    int drawn = 0;
    bool bars = false; /* error bars, over one knob */
    for (size_t i = 0; i < t->n_lines; i++) {
        struct swept_policy s = {.t = t,
                                 .policy = t->line[i].policy,
                                 .column = column,
                                 .spread = bench_table_column(t, spread),
                                 .samples = bench_table_column(t, "samples")};
        if (!first_of_policy(t, i))
            continue;
        if (!find_axes(&s, err))
            return false;
        find_best(&s, named->better);
        if (s.n_axes == 0 || s.range.low > s.range.high)
            continue;
        if (s.n_axes == 1)
            draw_over_one(f, &s, named->label);
        else
            draw_over_more(f, &s, named->label);
        bars = bars || (s.n_axes == 1 && s.spread != SIZE_MAX);
        drawn++;
    }
    if (drawn == 0)
        return err_set(err, ERR_USAGE,
                       "%s: no knob was swept in it; %s bench --grid KNOB=from:to:step --csv FILE writes such a file",
                       t->path, program_name());
    f->y -= 6;
    snprintf(f->note, sizeof f->note, "By %s%s; the best point, if one stands out, is outlined and bold.", named->label,
             bars ? ", bars of 95%" : "");
    return true;
}

const struct figure_kind figure_grid = {
    .name = "grid",
    .what = "a sweep, from the CSV of bench --grid",
    .tables = true,
    .least = 1,
    .most = 1,
    .range = RANGE_OF_NOTHING,
    .width = 120,
    .narrow = 45,
    .draw = draw_grid,
};
