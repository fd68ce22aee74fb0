/* Acceptance by position of drafts that no layer of the target predicted: bars of the conditional rate (a) above those
 * of the unconditional one (u), and the ranks of the target's token at the first rejection (docs/methods.md:
 * Measures). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/plural.h"
#include "tui/panels/panel.h"

#define LEFT          2  /* columns of a chart's name */
#define WIDEST        9  /* columns of a position */
#define NUMBERED      4  /* of a position with a number */
#define WITH_ERRORS   8  /* and its standard error */
#define RANKS_COLS    24 /* of the ranks beside the charts, */
#define RANKS_FROM    64 /* from this width on */
#define LEGEND_COLS   28
#define LEAST_LABELED 7 /* rows from which positions are numbered */

/* Writes ".57" or "1.0". */
static int
write_share(char *out, size_t n, double share)
{
    const int percent = (int)lrint(share * 100);
    return snprintf(out, n, percent >= 100 ? "1.0" : ".%02d", percent);
}

static void
draw_number(const struct canvas *c, int y, int x, int room, struct estimate e)
{
    char text[16];
    if (isnan(e.value))
        return;
    const int n = write_share(text, sizeof text, e.value);
    if (room >= WITH_ERRORS && !isnan(e.se)) {
        x += canvas_text(c, y, x, ROLE_TEXT, text);
        x += canvas_text(c, y, x, ROLE_DIM, "±");
        write_share(text, sizeof text, e.se);
        canvas_text(c, y, x, ROLE_DIM, text);
    } else if (room > n) {
        canvas_text(c, y, x, ROLE_TEXT, text);
    }
}

/* Draws a bar, and above its middle a line up to one standard error. */
static void
draw_bar(const struct canvas *c, int x, int width, struct estimate e, enum role role)
{
    if (isnan(e.value))
        return;
    aggregated_bar(c, x, width, e.value, role);
    for (int y = 0; y < c->rows && !isnan(e.se); y++)
        if ((c->rows - 0.5 - y) / c->rows < e.value + e.se)
            canvas_under(c, y, x + (width - 1) / 2, ROLE_DIM, "│");
}

typedef struct estimate rate_fn(const struct positions *, uint32_t);

/* Draws a chart and, where there is room for them, its numbers in the row below. */
static void
draw_chart(const struct canvas *c, const struct positions *p, const char *name, rate_fn *rate, int wide, enum role role)
{
    const bool numbered = wide >= NUMBERED;
    const struct canvas bars = canvas_inside(c, 0, LEFT, c->rows - numbered, c->cols - LEFT);
    canvas_text(c, 0, 0, role, name);
    for (uint32_t i = 0; i < positions_count(p) && (int)(i + 1) * wide <= bars.cols + 1; i++) {
        const struct estimate e = rate(p, i);
        draw_bar(&bars, (int)i * wide, wide - 1, e, role);
        if (numbered)
            draw_number(c, c->rows - 1, LEFT + (int)i * wide, wide, e);
    }
}

static void
draw_charts(const struct canvas *c, const struct positions *p)
{
    const int n = (int)positions_count(p), room = (c->cols - LEFT + 1) / n;
    const int wide = room > WIDEST ? WIDEST : room < 2 ? 2 : room;
    const bool labeled = wide < NUMBERED || c->rows >= LEAST_LABELED;
    const int lower = (c->rows - labeled) / 2, upper = c->rows - labeled - lower;
    const struct canvas above = canvas_inside(c, 0, 0, upper, c->cols),
                        below = canvas_inside(c, upper, 0, lower, c->cols);
    draw_chart(&above, p, "a", positions_conditional, wide, ROLE_SERIES_1);
    draw_chart(&below, p, "u", positions_unconditional, wide, ROLE_ACCEPTED);
    for (int i = 0; i < n && labeled; i++)
        if ((i < 9 || wide > 2 || i % 2 == 1) && LEFT + i * wide + 1 + (i >= 9) <= c->cols)
            canvas_print(c, c->rows - 1, LEFT + i * wide, ROLE_DIM, "%d", i + 1);
}

/* Draws a bar for each rank that occurred. */
static void
draw_ranks(const struct canvas *c, const struct positions *p)
{
    const unsigned long long n = positions_ranked(p);
    int y = 1;
    canvas_print(c, 0, 0, ROLE_TEXT, "rank at %llu rejection%s", n, plural(n));
    for (uint32_t i = 1; i <= POSITION_RANKS + 1; i++) {
        const uint32_t rank = i % (POSITION_RANKS + 1);
        const struct estimate e = positions_rank(p, rank);
        char name[8];
        if (p->ranks[rank] == 0)
            continue;
        snprintf(name, sizeof name, "%u", (unsigned)rank);
        canvas_text(c, y, 0, ROLE_DIM, rank > 0 ? name : "later");
        for (int k = 0; k < (int)lrint(e.value * (c->cols - 15)); k++)
            canvas_text(c, y, 6 + k, ROLE_CORRECTION, "█");
        canvas_print(c, y, c->cols - 8, ROLE_TEXT, "%3.0f%%", e.value * 100);
        if (!isnan(e.se))
            canvas_print(c, y, c->cols - 4, ROLE_DIM, " ±%.0f", e.se * 100);
        y++;
    }
}

static void
draw_positions(void *state, const struct view *v, const struct canvas *c)
{
    const char *why;
    const struct aggregates *a = aggregated_now(state, v, &why);
    const struct positions *p = a != NULL ? &a->positions : NULL;
    if (p == NULL || positions_count(p) == 0) {
        canvas_text(c, 0, 0, ROLE_DIM, p == NULL ? why : "nothing was drafted");
        return;
    }
    const struct estimate tokens = positions_tokens(p);
    const bool ranked = positions_ranked(p) > 0, beside = ranked && c->cols >= RANKS_FROM;
    const int right = beside ? RANKS_COLS + 2 : 0, below = ranked && !beside && c->rows > 6;
    const struct canvas charts = canvas_inside(c, 1, 0, c->rows - 1 - below, c->cols - right),
                        ranks = canvas_inside(c, 0, c->cols - right + 2, c->rows, right - 2);
    const struct canvas head = canvas_inside(c, 0, 0, 1, charts.cols);
    char rounds[32];
    snprintf(rounds, sizeof rounds, ", %llu round%s", (unsigned long long)p->rounds, plural(p->rounds));
    int x = canvas_print(&head, 0, 0, ROLE_TEXT, "%.2f", tokens.value);
    x += isnan(tokens.se) ? 0 : canvas_print(&head, 0, x, ROLE_DIM, " ±%.2f", tokens.se);
    x += canvas_text(&head, 0, x, ROLE_TEXT, " tokens/round");
    const bool legend = x + LEGEND_COLS <= head.cols;
    if (x + (int)strlen(rounds) + (legend ? LEGEND_COLS : 0) <= head.cols)
        x += canvas_text(&head, 0, x, ROLE_TEXT, rounds);
    if (legend) {
        x += canvas_text(&head, 0, x, ROLE_SERIES_1, "  a after accepted");
        canvas_text(&head, 0, x, ROLE_ACCEPTED, "  u of all");
    }
    draw_charts(&charts, p);
    if (beside)
        draw_ranks(&ranks, p);
    if (below) {
        char text[120];
        const int at = canvas_text(c, c->rows - 1, 0, ROLE_DIM, "rank ");
        canvas_word(c, c->rows - 1, at, c->cols - at, ROLE_TEXT, MARK_NONE, positions_ranks_text(p, text, sizeof text));
    }
}

/* Drafts of the target's layers have the panel of exit layers. */
static bool
active_positions(const struct view *v)
{
    const enum draft_origin origin = scope_draft_origin(v->scope);
    return origin != DRAFTS_NONE && origin != DRAFTS_LAYERS;
}

static const struct key_help keys[] = {
    {"v", "which rounds: of the segment in which the cursor is, the last 32 up to it, the run"},
    {"a", "how often the n-th draft was accepted if all before it were"},
    {"u", "how often it was accepted, of all rounds; 1 + the sum of u is the tokens of a round"},
    {"rank", "of the target's token in the drafter's list at the first rejection: the draft would have continued there "
             "with so many candidates"},
    {NULL, NULL},
};

const struct panel_ops panel_positions = {
    .name = "positions",
    .title = "draft positions",
    PANEL_OF_AGGREGATES,
    .active = active_positions,
    .keys = keys,
    .draw = draw_positions,
};
