/* Values over rounds, one panel below the other: tokens per round, acceptance, tokens per second, and the policy's
 * series. Knob changes are lines through all panels. */
#include <math.h>
#include <stdlib.h>

#include "base/plural.h"
#include "tui/figures/figure_kind.h"

#define HEIGHT      46.0
#define GAP         17.0
#define WINDOW      8 /* most rounds to each side that the strong line averages */
#define CHANGE_ROWS 3
#define CELLS_MOST  256 /* rows of a strip */
#define CHANGE_ROW  8.0

struct rounds {
    const struct record *r;
    struct drawing *d;
    double x, width;
    double *at, *edge, *value, *value2; /* (n) at: numbers of the rounds; edge: at - 0.5, where steps begin */
    size_t n, window;                   /* window: rounds to each side that the strong line averages */
    struct axis across;
};

struct ratio { /* of a round */
    double over, under;
};

static struct ratio
tokens_of(const struct round_event *e)
{
    return (struct ratio){e->emitted, 1};
}

static struct ratio
acceptance_of(const struct round_event *e)
{
    return (struct ratio){e->accepted, e->verified};
}

static struct ratio
speed_of(const struct round_event *e)
{
    return (struct ratio){e->emitted * 1e6, (double)e->draft_us + (double)e->verify_us};
}

static const struct common {
    const char *title;
    struct ratio (*of)(const struct round_event *);
    bool share;
} commons[] = {
    {"tokens/round", tokens_of, false},
    {"acceptance", acceptance_of, true},
    {"tokens/s", speed_of, false},
};
#define COMMONS (sizeof commons / sizeof *commons)

/* Computes the value of each round, and that of the rounds around it, as a ratio of sums. */
static void
common_values(const struct rounds *f, const struct common *c)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct ratio own = c->of(&f->r->rounds[i].end);
        struct ratio sum = {0, 0};
        f->value[i] = own.under > 0 ? own.over / own.under : (double)NAN;
        const size_t from = i > f->window ? i - f->window : 0, to = i + f->window < f->n ? i + f->window : f->n - 1;
        for (size_t k = from; k <= to; k++) {
            const struct ratio near = c->of(&f->r->rounds[k].end);
            sum.over += near.under > 0 ? near.over : 0;
            sum.under += near.under;
        }
        f->value2[i] = sum.under > 0 ? sum.over / sum.under : (double)NAN;
    }
}

static struct panel_area
next_panel(struct rounds *f, double y, struct range range, bool share, bool whole)
{
    return axes_panel(f->x, y, f->width, HEIGHT, f->across, (struct axis){range_shown(range, share), whole, NULL});
}

static void
draw_common(struct rounds *f, double y, const struct common *c, bool numbers)
{
    struct range range = RANGE_NONE;
    common_values(f, c);
    for (size_t i = 0; i < f->n; i++)
        range_add(&range, f->value[i]);
    const bool speed = c->of == speed_of && f->r->baseline > 0;
    if (speed)
        range_add(&range, (double)f->r->baseline);
    const struct panel_area p = next_panel(f, y, range, c->share, false);
    axes_draw(f->d, &p, numbers);
    axes_title(f->d, &p, c->title);
    if (speed) {
        const double up = scale_at(&p.up, (double)f->r->baseline);
        drawing_line(f->d, p.x, up, p.x + p.width, up, STROKE(INK_LIGHT, .line = 0.7, .dash = DASH_SHORT));
        drawing_text(f->d, p.x + p.width - 2, up - p.y < 9 ? up + 7 : up - 2,
                     LETTERS(SIZE_TICK, INK_LIGHT, .anchor = ANCHOR_RIGHT), "autoregressive");
    }
    for (size_t i = 0; i < f->n; i++)
        if (!isnan(f->value[i]))
            drawing_circle(f->d, scale_at(&p.across, f->at[i]), scale_at(&p.up, f->value[i]), 0.9, FILL(ramp(0.42)));
    axes_line(f->d, &p, f->at, f->value2, f->n, STROKE(line_styles[0].colour, .line = 1.1));
}

static bool
all_whole(const double *value, size_t n)
{
    bool whole = true;
    for (size_t i = 0; i < n; i++)
        whole = whole && (isnan(value[i]) || value[i] == rint(value[i]));
    return whole;
}

static void
draw_reported(struct rounds *f, double y, int series, bool numbers)
{
    const struct series *s = &f->r->policy->series[series];
    const bool band = s->form == SERIES_BAND;
    const double end = f->across.range.high;
    struct range range = RANGE_NONE;
    record_values(f->r, series, 0, f->value);
    record_values(f->r, series, 1, f->value2);
    for (size_t i = 0; i < f->n; i++) {
        range_add(&range, f->value[i]);
        if (band)
            range_add(&range, f->value2[i]);
    }
    const bool whole = all_whole(f->value, f->n);
    const struct panel_area p = next_panel(f, y, range, !whole, whole && !band);
    if (band)
        axes_band(f->d, &p, f->edge, f->value, f->value2, f->n, end, FILL(ramp(0.16)));
    axes_draw(f->d, &p, numbers);
    axes_title(f->d, &p, s->title);
    axes_steps(f->d, &p, f->edge, f->value, f->n, end, STROKE(line_styles[0].colour, .line = 1));
    if (band)
        axes_steps(f->d, &p, f->edge, f->value2, f->n, end, STROKE(line_styles[1].colour, .line = 1));
}

/* Draws equal neighbours as one cell. Cells overlap, so that no seams are visible. */
static void
draw_strip_row(struct rounds *f, const struct panel_area *p, double low, double high, struct range shown)
{
    const double bottom = scale_at(&p->up, low), top = fmax(scale_at(&p->up, high) - 0.2, p->y),
                 span = shown.high - shown.low;
    for (size_t i = 0, to; i < f->n; i = to) {
        for (to = i + 1; to < f->n && f->value[to] == f->value[i];)
            to++;
        if (isnan(f->value[i]))
            continue;
        const double left = scale_at(&p->across, f->edge[i]), right = scale_at(&p->across, f->at[to - 1] + 0.5);
        drawing_rect(f->d, left, top, fmin(right + 0.2, p->x + p->width) - left, bottom - top,
                     FILL(ramp(span > 0 ? (f->value[i] - shown.low) / span : 0.5)));
    }
}

/* A row of cells a round: index upwards, value as shade. */
static void
draw_strip(struct rounds *f, double y, int series, int used, bool numbers)
{
    const struct series *s = &f->r->policy->series[series];
    const bool from_one = s->cols == (int)f->r->info->layers || s->form == SERIES_DRAFTS; /* lengths begin at 0 */
    const double least = from_one ? 0.5 : -0.5;
    struct range range = RANGE_NONE;
    struct panel_area p =
        axes_panel(f->x, y, f->width, HEIGHT, f->across, (struct axis){{least, least + used}, true, NULL});
    p.plain = true;
    for (int index = 0; index < used; index++) {
        record_values(f->r, series, index, f->value);
        for (size_t i = 0; i < f->n; i++)
            range_add(&range, f->value[i]);
    }
    const struct range shown = range.low >= 0 && range.high <= 1 ? (struct range){0, 1} : range;
    for (int index = 0; index < used; index++) {
        record_values(f->r, series, index, f->value);
        draw_strip_row(f, &p, least + index, least + index + 1, shown);
    }
    axes_draw(f->d, &p, numbers);
    axes_title(f->d, &p, s->title);
    const struct lettering l = LETTERS(SIZE_TICK, INK);
    char low[24], high[24];
    const double room = 34 + lettering_width(&l, value_label(shown.low, low, sizeof low)) +
                        lettering_width(&l, value_label(shown.high, high, sizeof high));
    if (range.low <= range.high)
        ramp_legend(f->d, p.x + p.width - room, y - 3.5 - SIZE_TICK * 0.8, 30, "", low, high);
}

static int
cells_used(const struct record *r, int series)
{
    const struct series *s = &r->policy->series[series];
    int used = 0;
    for (size_t i = 0; i < r->n_values && used < CELLS_MOST; i++)
        if (r->values[i].series == series && r->values[i].index + 1 > used &&
            (s->rows == 1 ||
             r->values[i].index < s->cols)) /* only the first row of several, which the other rows explain */
            used = r->values[i].index + 1;
    return used < CELLS_MOST ? used : CELLS_MOST;
}

/* Returns whether a series has a panel: a GRID and its parts have no course over rounds, and a MASK has its own
 * figure. */
enum panel_form { NO_PANEL, LINES, CELLS };
static const enum panel_form panel_forms[SERIES_FORMS] = {
    [SERIES_LINE] = LINES,  [SERIES_BAND] = LINES,   [SERIES_PHASE] = LINES,  [SERIES_BARS] = CELLS,
    [SERIES_STRIP] = CELLS, [SERIES_DRAFTS] = CELLS, [SERIES_CHOICE] = CELLS,
};

/* Draws the knob changes as lines through the panels, with their text above the first. */
static void
draw_changes(const struct rounds *f, double top, int panels)
{
    const struct scale s = {f->across.range.low, f->across.range.high, f->x, f->x + f->width};
    const struct lettering l = LETTERS(SIZE_TICK, INK);
    double taken[CHANGE_ROWS] = {0};
    for (size_t i = 0; i < f->r->n_changes; i++) {
        const struct record_change *t = &f->r->changes[i];
        const double x = scale_at(&s, (double)t->round - 0.5), wide = lettering_width(&l, t->text);
        if (t->round < f->r->rounds[0].number || x > f->x + f->width)
            continue;
        for (int k = 0; k < panels; k++)
            drawing_line(f->d, x, top + k * (HEIGHT + GAP), x, top + k * (HEIGHT + GAP) + HEIGHT,
                         STROKE(INK, .line = 0.5, .dash = DASH_DOTS));
        const double left = fmax(f->x, fmin(x - 1, f->x + f->width - wide));
        for (int row = 0; row < CHANGE_ROWS; row++)
            if (taken[row] <= left) {
                drawing_text(f->d, left, top - AXES_TITLE - 2 - CHANGE_ROW * row, l, t->text);
                taken[row] = left + wide + 5;
                break;
            }
    }
}

static bool
open_rounds(struct rounds *f, struct figure *figure, struct err *err)
{
    const struct record *r = &figure->input->record;
    *f = (struct rounds){.r = r, .d = figure->d, .x = AXES_LEFT - 8, .n = r->n_rounds};
    f->width = figure->width - f->x - AXES_RIGHT;
    f->window = r->n_rounds / 16 < 1 ? 1 : r->n_rounds / 16 > WINDOW ? WINDOW : r->n_rounds / 16;
    f->at = malloc(4 * r->n_rounds * sizeof *f->at);
    if (f->at == NULL)
        return err_set(err, ERR_WORK, "out of memory");
    f->edge = f->at + r->n_rounds;
    f->value = f->edge + r->n_rounds;
    f->value2 = f->value + r->n_rounds;
    for (size_t i = 0; i < r->n_rounds; i++) {
        f->at[i] = r->rounds[i].number;
        f->edge[i] = f->at[i] - 0.5;
    }
    f->across = (struct axis){{f->at[0] - 0.5, f->at[r->n_rounds - 1] + 0.5}, true, "round"};
    return true;
}

static bool
draw_series(struct figure *figure, struct err *err)
{
    struct rounds f;
    if (!open_rounds(&f, figure, err))
        return false;
    const struct policy_info *policy = f.r->policy;
    int panels[COMMONS + POLICY_SERIES], n = 0; /* commons are below 0 */
    for (int i = 0; i < (int)COMMONS; i++)
        panels[n++] = i - (int)COMMONS;
    for (int i = 0; i < (int)policy->n_series; i++) {
        if (panel_forms[policy->series[i].form] != NO_PANEL && cells_used(f.r, i) > 0)
            panels[n++] = i;
    }
    const double above = f.r->n_changes > 0 ? CHANGE_ROWS * CHANGE_ROW : 0;
    const double top = above + AXES_TITLE + (above > 0 ? 3 : 0);
    for (int k = 0; k < n; k++) {
        const bool last = k == n - 1;
        const double y = top + k * (HEIGHT + GAP);
        if (panels[k] < 0) {
            draw_common(&f, y, &commons[panels[k] + (int)COMMONS], last);
            continue;
        }
        if (panel_forms[policy->series[panels[k]].form] == CELLS)
            draw_strip(&f, y, panels[k], cells_used(f.r, panels[k]), last);
        else
            draw_reported(&f, y, panels[k], last);
    }
    draw_changes(&f, top, n);
    figure->y = top + n * (HEIGHT + GAP) - GAP + AXES_BOTTOM;
    snprintf(figure->note, sizeof figure->note,
             "Dots: single rounds; lines of the first %d panels: with %zu round%s to each side.", (int)COMMONS,
             f.window, plural(f.window));
    free(f.at);
    return true;
}

const struct figure_kind figure_series = {
    .name = "series",
    .what = "tokens a round, acceptance, tokens a second, the policy's series, knob changes",
    FIGURE_OVER_ROUNDS,
    .draw = draw_series,
};
