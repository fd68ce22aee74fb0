/* Where drafts left the model, and how far they were accepted: a histogram of exit layers, and acceptance by position in the
 * draft. */
#include <math.h>
#include <stdio.h>

#include "engine/base/plural.h"
#include "tui/panels/aggregated.h"

#define LEFT 4 /* columns of the labels of a scale */

static const char *const eighths[9] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/* A bar of `width` columns from row `rows` - 1 up: `part` of the height in one role and glyph, the rest to `whole` in another. */
static void
draw_stack(const struct canvas *c, int x, int width, double part, double whole)
{
    for (int y = 0; y < c->rows; y++) {
        const double under = c->rows - 1 - y, here = whole * c->rows - under, accepted = part * c->rows - under;
        const bool own = accepted >= 0.5 || (accepted > 0 && here <= 1);
        const int level = here >= 1 ? 8 : here > 0 ? (int)ceil(here * 8) : 0;
        for (int k = 0; k < width && level > 0; k++)
            canvas_text(c, y, x + k, own ? ROLE_ACCEPTED : ROLE_REJECTED, own || level < 8 ? eighths[level] : "▒");
    }
}

/* The layers of bar number i of n. */
static uint32_t
layer_of_bar(uint32_t layers, int n, int i)
{
    return 1 + (uint32_t)((uint64_t)layers * (uint64_t)i / (uint64_t)n);
}

static void
draw_layers(const struct canvas *c, const struct draft_counts *d)
{
    const int room = c->cols - LEFT;
    const int n = (int)d->layers <= room ? (int)d->layers : room;
    uint64_t most = 0, accepted[512] = {0}, others[512] = {0}; /* by bar */
    if (n < 1 || n > 512)
        return;
    for (int i = 0; i < n; i++) {
        for (uint32_t l = layer_of_bar(d->layers, n, i); l < layer_of_bar(d->layers, n, i + 1); l++) {
            accepted[i] += d->accepted[l];
            others[i] += d->others[l];
        }
        most = accepted[i] + others[i] > most ? accepted[i] + others[i] : most;
    }
    const int wide = room / n > 4 ? 4 : room / n, bar = wide > 1 ? wide - 1 : 1;
    const struct canvas plot = canvas_inside(c, 1, LEFT, c->rows - 2, room);
    const double scale = most > 0 ? 1 / (double)most : 0;
    if (most < 1000)
        canvas_print(c, 1, 0, ROLE_DIM, "%3llu", (unsigned long long)most);
    else
        canvas_print(c, 1, 0, ROLE_DIM, "%2.0fk", (double)most / 1000);
    for (int i = 0, next = 0; i < n; i++) {
        draw_stack(&plot, i * wide, bar, (double)accepted[i] * scale, (double)(accepted[i] + others[i]) * scale);
        char label[12];
        const int digits = snprintf(label, sizeof label, "%u", (unsigned)layer_of_bar(d->layers, n, i));
        if (i * wide < next)
            continue;
        canvas_text(c, c->rows - 1, LEFT + i * wide, ROLE_DIM, label);
        next = i * wide + digits + 1;
    }
}

static double
share_of(uint64_t n, uint64_t of)
{
    return of > 0 ? (double)n / (double)of : 0;
}

/* Of the drafts after accepted ones, and where they have the whole panel also of all rounds. */
static void
draw_depths(const struct canvas *c, const struct draft_counts *d, bool whole)
{
    const struct canvas plot = canvas_inside(c, 1, LEFT, c->rows - 2, c->cols - LEFT);
    const int n = (int)d->deepest, room = whole && n > 0 ? plot.cols / n : 2, wide = room > 5 ? 5 : room < 2 ? 2 : room;
    canvas_print(c, 1, 0, ROLE_DIM, "1.0");
    for (int i = 0; i < n && (i + 1) * wide <= plot.cols + 1; i++) {
        const struct depth_counts *at = &d->depth[i + 1];
        const double share = share_of(at->passed, at->tried),
                     of_all = whole ? share_of(at->passed, d->depth[1].tried) : share;
        draw_stack(&plot, i * wide, wide - 1, of_all, share);
        canvas_print(c, c->rows - 1, LEFT + i * wide, ROLE_DIM, i < 9 || wide > 2 ? "%d" : "", i + 1);
    }
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
    const bool layers = scope_draft_origin(v->scope) == DRAFTS_LAYERS, depths = d->deepest > 0;
    const int want = LEFT + 2 * ((int)d->deepest < 8 ? 8 : (int)d->deepest);
    const int right = !depths ? 0 : !layers ? c->cols : want > c->cols / 2 ? c->cols / 2 : want;
    const struct canvas of_layers = canvas_inside(c, 0, 0, c->rows, c->cols - right - (right > 0)),
                        of_depths = canvas_inside(c, 0, c->cols - right, c->rows, right);
    if (layers) {
        double sum = 0, n = 0;
        for (uint32_t l = 1; l <= d->layers; l++) {
            n += (double)(d->accepted[l] + d->others[l]);
            sum += (double)l * (double)(d->accepted[l] + d->others[l]);
        }
        const bool wide = of_layers.cols >= 26;
        canvas_print(&of_layers, 0, 0, ROLE_TEXT, wide ? "mean L%.1f of %llu draft%s" : "mean L%.1f", sum / n,
                     (unsigned long long)(d->steps - d->elsewhere), plural(d->steps - d->elsewhere));
        draw_layers(&of_layers, d);
    }
    if (depths) {
        canvas_text(&of_depths, 0, 0, ROLE_TEXT,
                    layers        ? right >= 21 ? "accepted, by position" : "by position"
                    : right >= 50 ? "█ of all rounds  ▒ where all before were accepted"
                                  : "█ of all  ▒ after accepted");
        draw_depths(&of_depths, d, !layers);
    }
}

/* Not for a policy that has nothing to draft with. */
static bool
active_exits(const struct view *v)
{
    return scope_draft_origin(v->scope) != DRAFTS_NONE;
}

static const char *
title_exits(const struct view *v)
{
    return scope_draft_origin(v->scope) == DRAFTS_LAYERS ? "exit layers" : "draft positions";
}

static const struct key_help keys[] = {
    {"v", "which rounds: of the segment in which the cursor is, the last 32 up to it, the run"},
    {"█ ▒", "by exit layer: accepted drafts, and those that were rejected or not verified"},
    {"by position",
     "how often the n-th draft was accepted where all before it were; without exit layers also of all rounds"},
    {NULL, NULL},
};

const struct panel_ops panel_exits = {
    .name = "exits",
    .title = "exit layers",
    .title_now = title_exits,
    .active = active_exits,
    .brief = "v which rounds",
    .place = PANEL_MIDDLE,
    .weight = 4,
    .min_cols = 30,
    .keys = keys,
    .open = aggregated_open,
    .close = aggregated_close,
    .draw = draw_exits,
    .note = aggregated_note,
};
