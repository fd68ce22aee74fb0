/* A histogram of the drafts' exit layers, and acceptance by position in the draft. */
#include <math.h>
#include <stdio.h>

#include "base/plural.h"
#include "tui/panels/panel.h"

#define LEFT         4  /* columns of the labels of a scale */
#define LEAST_LAYERS 30 /* least columns of the histogram */

static const char *const eighths[9] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/* Draws a bar from the last row up: `part` of the height in one role and glyph, the rest up to `whole` in another. */
static void
draw_stack(const struct canvas *c, int x, int width, double part, double whole, enum role rest)
{
    for (int y = 0; y < c->rows; y++) {
        const double under = c->rows - 1 - y, here = whole * c->rows - under, accepted = part * c->rows - under;
        const bool own = accepted >= 0.5 || (accepted > 0 && here <= 1);
        const int level = here >= 1 ? 8 : here > 0 ? (int)ceil(here * 8) : 0;
        for (int k = 0; k < width && level > 0; k++)
            canvas_text(c, y, x + k, own ? ROLE_ACCEPTED : rest, own || level < 8 ? eighths[level] : "▒");
    }
}

/* Returns the first layer of bar i of n. */
static uint32_t
layer_of_bar(uint32_t layers, int n, int i)
{
    return 1 + (uint32_t)((uint64_t)layers * (uint64_t)i / (uint64_t)n);
}

#define MOST_BARS 512

/* Writes "accepted + others: L1 18+8  L2 16+3" with all exit layers. */
static void
list_layers(const struct draft_counts *d, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "accepted + others:");
    for (uint32_t l = 1; l <= d->layers && at < size; l++)
        if (d->accepted[l] + d->others[l] > 0)
            at += (size_t)snprintf(out + at, size - at, " L%u %llu+%llu", (unsigned)l,
                                   (unsigned long long)d->accepted[l], (unsigned long long)d->others[l]);
}

static void
draw_layers(const struct canvas *c, const struct draft_counts *d, bool all)
{
    const int left = all ? AGGREGATED_LEFT : LEFT, room = c->cols - left;
    char list[2048];
    list_layers(d, list, sizeof list);
    const int n = (int)d->layers <= room ? (int)d->layers : room;
    double most = 0, accepted[MOST_BARS] = {0}, others[MOST_BARS] = {0}; /* by bar */
    if (n < 1 || n > MOST_BARS)
        return;
    for (int i = 0; i < n; i++) {
        for (uint32_t l = layer_of_bar(d->layers, n, i); l < layer_of_bar(d->layers, n, i + 1); l++) {
            accepted[i] += (double)d->accepted[l];
            others[i] += (double)d->others[l];
        }
        most = fmax(most, accepted[i] + others[i]);
    }
    const int widest = all ? 8 : 4, wide = room / n > widest ? widest : room / n, bar = wide > 1 ? wide - 1 : 1;
    /* Numbers that do not fit below their bars are listed. */
    const bool listed = all && snprintf(NULL, 0, "%.0f", most) >= wide;
    const int lines = listed ? canvas_paragraph(&(struct canvas){.cols = c->cols}, ROLE_TEXT, list) : 3;
    const int below = all ? 1 + (lines < 3 ? 3 : lines > c->rows / 3 ? c->rows / 3 : lines) : 1;
    const struct canvas plot = canvas_inside(c, 1, left, c->rows - 1 - below, room);
    const double scale = most > 0 ? 1 / most : 0;
    if (all)
        aggregated_ticks(c, 1, plot.rows, 0, most);
    else if (most < 1000)
        canvas_print(c, 1, 0, ROLE_DIM, "%3.0f", most);
    else
        canvas_print(c, 1, 0, ROLE_DIM, "%2.0fk", most / 1000);
    for (int i = 0, next = 0; i < n; i++) {
        draw_stack(&plot, i * wide, bar, accepted[i] * scale, (accepted[i] + others[i]) * scale, ROLE_REJECTED);
        char label[12];
        const int digits = snprintf(label, sizeof label, "%u", (unsigned)layer_of_bar(d->layers, n, i));
        if (accepted[i] + others[i] == 0) /* zeros have no numbers */
            accepted[i] = others[i] = NAN;
        if (i * wide < next || i * wide + digits > room)
            continue;
        canvas_text(c, c->rows - below, left + i * wide, ROLE_DIM, label);
        next = i * wide + digits + 1;
    }
    if (!all)
        return;
    canvas_text(c, c->rows - below, 0, ROLE_TITLE, "layer");
    const struct canvas text = canvas_inside(c, c->rows - below + 1, 0, below - 1, c->cols);
    if (listed) {
        canvas_paragraph(&text, ROLE_TEXT, list);
        return;
    }
    aggregated_numbers(c, c->rows - 3, "█ accepted", n, wide, accepted, "%.0f");
    aggregated_numbers(c, c->rows - 2, "▒ others", n, wide, others, "%.0f");
}

/* Draws acceptance after accepted drafts; all: with numbers. */
static void
draw_depths(const struct canvas *c, const struct aggregates *a, bool all)
{
    const struct draft_counts *d = &a->drafts;
    const int left = all ? AGGREGATED_LEFT : LEFT, below = all ? 4 : 1;
    const struct canvas plot = canvas_inside(c, 1, left, c->rows - 1 - below, c->cols - left);
    const int n = (int)d->deepest < DRAFT_DEPTHS ? (int)d->deepest : DRAFT_DEPTHS;
    const int widest = all ? 7 : 2, room = n > 0 ? plot.cols / n : 2;
    const int wide = room > widest ? widest : room < 2 ? 2 : room;
    double tried[DRAFT_DEPTHS], after[DRAFT_DEPTHS], of_all[DRAFT_DEPTHS];
    if (all)
        aggregated_ticks(c, 1, plot.rows, 0, 1);
    else
        canvas_print(c, 1, 0, ROLE_DIM, "1.0");
    for (int i = 0; i < n; i++) {
        const struct depth_counts *at = &d->depth[i + 1];
        tried[i] = at->tried > 0 ? (double)at->tried : (double)NAN;
        after[i] = at->tried > 0 ? (double)at->passed / (double)at->tried : 0;
        of_all[i] = i < POSITIONS ? positions_unconditional(&a->positions, (uint32_t)i).value : (double)NAN;
        if ((i + 1) * wide > plot.cols + 1)
            continue;
        draw_stack(&plot, i * wide, wide - 1, after[i], after[i], ROLE_SERIES_1);
        if (i < 9 || wide > 2)
            canvas_print(c, c->rows - below, left + i * wide, ROLE_DIM, "%d", i + 1);
    }
    if (!all)
        return;
    canvas_text(c, c->rows - below, 0, ROLE_TITLE, "position");
    aggregated_numbers(c, c->rows - 3, "of all", n, wide, of_all, "%.2f");
    aggregated_numbers(c, c->rows - 2, "after acc.", n, wide, after, "%.2f");
    aggregated_numbers(c, c->rows - 1, "tried", n, wide, tried, "%.0f");
}

static void
draw_exits(void *state, const struct view *v, const struct canvas *c)
{
    const char *why;
    const struct aggregates *a = aggregated_now(state, v, &why);
    if (a == NULL || a->drafts.steps == 0) {
        canvas_text(c, 0, 0, ROLE_DIM, a == NULL ? why : "nothing was drafted");
        return;
    }
    const struct draft_counts *d = &a->drafts;
    const bool depths = d->deepest > 0;
    const int want = LEFT + 2 * ((int)d->deepest < 8 ? 8 : (int)d->deepest), half = c->cols / 2;
    const bool large = c->rows >= AGGREGATED_ROWS && c->cols >= AGGREGATED_COLS;
    const int numbers = AGGREGATED_LEFT + 5 * (int)d->deepest, most = large ? c->cols - LEAST_LAYERS : half;
    const int wanted = large ? numbers : want, right = !depths ? 0 : wanted > most ? most : wanted;
    const struct canvas of_layers = canvas_inside(c, 0, 0, c->rows, c->cols - right - (right > 0)),
                        of_depths = canvas_inside(c, 0, c->cols - right, c->rows, right);
    double sum = 0, n = 0;
    for (uint32_t l = 1; l <= d->layers; l++) {
        n += (double)(d->accepted[l] + d->others[l]);
        sum += (double)l * (double)(d->accepted[l] + d->others[l]);
    }
    canvas_print(&of_layers, 0, 0, ROLE_TEXT, of_layers.cols >= 26 ? "mean L%.1f of %llu draft%s" : "mean L%.1f",
                 sum / n, (unsigned long long)(d->steps - d->elsewhere), plural(d->steps - d->elsewhere));
    draw_layers(&of_layers, d, large);
    if (depths) {
        canvas_text(&of_depths, 0, 0, ROLE_TEXT, right >= 21 ? "accepted, by position" : "by position");
        draw_depths(&of_depths, a, large);
    }
}

/* Other drafts have the panel of positions. */
static bool
active_exits(const struct view *v)
{
    return scope_draft_origin(v->scope) == DRAFTS_LAYERS;
}

static const struct key_help keys[] = {
    {"v", "which rounds: of the segment in which the cursor is, the last 32 up to it, the run"},
    {"█ ▒", "by exit layer: accepted drafts, and those that were rejected or not verified"},
    {"by position", "how often the n-th draft was accepted if all before it were"},
    {NULL, NULL},
};

const struct panel_ops panel_exits = {
    .name = "exits",
    .title = "exit layers",
    PANEL_OF_AGGREGATES,
    .active = active_exits,
    .keys = keys,
    .draw = draw_exits,
};
