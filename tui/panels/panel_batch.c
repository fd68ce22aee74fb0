/* The sequences of a batch as tiles: position, speed, and the choice of the sequence that the other panels show. Live
 * sequences are in the order of their places in the batch, so that none moves; the ended ones follow, the latest
 * first. */
#include <math.h>
#include <stdio.h>

#include "tui/panels/panel.h"
#include "tui/panels/text_flow.h"

#define TITLE "batch"

struct batch_panel {
    uint32_t order[SCOPE_TILES]; /* (n) indices of tiles in the order shown */
    uint32_t n;
    uint32_t cursor; /* the number of the selected sequence */
    uint32_t focus;  /* and of the one in focus, as drawn last */
    bool drawn;      /* a tile has been drawn */
    int top;         /* rows of tiles above the first shown one */
    int cols;        /* of the panel, as drawn last */
    struct tiling tiling;
    struct flow flow;
};

static void
close_batch(void *state)
{
    struct batch_panel *p = state;
    flow_close(&p->flow);
}

static bool
active_batch(const struct view *v)
{
    return scope_is_batch(v->scope) && scope_now(v->scope)->versus == NULL;
}

/* ---- positions of the tiles ---- */

/* Sorts the tiles; returns how many have a place in the batch. */
static uint32_t
arrange(struct batch_panel *p, const struct scope *s)
{
    const uint32_t n = scope_batch(s).tiles;
    uint32_t places = 0;
    p->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct scope_tile *t = scope_tile(s, i);
        places = t->has_place && t->place + 1 > places ? t->place + 1 : places;
    }
    for (uint32_t place = 0; place < places; place++)
        for (uint32_t i = 0; i < n; i++)
            if (scope_tile(s, i)->has_place && scope_tile(s, i)->place == place)
                p->order[p->n++] = i;
    const uint32_t with_lanes = p->n;
    for (uint32_t i = n; i-- > 0;)
        if (!scope_tile(s, i)->has_place)
            p->order[p->n++] = i;
    return with_lanes;
}

/* Returns the index of a sequence in p->order; p->n: none. */
static uint32_t
place_of(const struct batch_panel *p, const struct scope *s, uint32_t seq)
{
    const uint32_t index = scope_tile_index(s, seq);
    uint32_t at = 0;
    while (at < p->n && p->order[at] != index)
        at++;
    return at;
}

static int
lines_of(const struct batch_panel *p)
{
    return ((int)p->n + p->tiling.columns - 1) / p->tiling.columns;
}

static void
scroll_to(struct batch_panel *p, uint32_t place)
{
    p->top = panel_scroll(p->top, (int)place / p->tiling.columns, lines_of(p), p->tiling.visible);
}

static void
update(struct batch_panel *p, const struct view *v, int rows, int cols)
{
    const struct scope *s = v->scope;
    const uint32_t places = arrange(p, s);
    p->tiling = tiling_of(p->n, rows, cols);
    if (!p->tiling.boxed) /* those with a place in the batch are large, the others need scrolling */
        p->tiling = tiling_of(places, rows, cols);
    const uint32_t focus = scope_focus(s);
    if (!p->drawn || focus != p->focus) {
        p->cursor = focus;
        scroll_to(p, place_of(p, s, focus));
    }
    p->focus = focus;
    p->drawn = p->n > 0;
    const int last = lines_of(p) - p->tiling.visible;
    p->top = p->top > last ? last : p->top;
    p->top = p->top < 0 ? 0 : p->top;
}

/* Draws the numbers of hidden tiles on the rows that remain. */
static void
draw_hidden(const struct batch_panel *p, const struct canvas *c)
{
    const int above = p->top * p->tiling.columns, seen = (p->top + p->tiling.visible) * p->tiling.columns;
    const int below = (int)p->n - seen, y = p->tiling.visible * p->tiling.rows;
    int x = 1;
    if (above > 0)
        x += canvas_print(c, y, x, ROLE_DIM, "%d above  ", above);
    if (below > 0)
        canvas_print(c, y, x, ROLE_DIM, "%d below", below);
}

static void
draw_batch(void *state, const struct view *v, const struct canvas *c)
{
    struct batch_panel *p = state;
    p->cols = c->cols;
    update(p, v, c->rows, c->cols);
    if (p->n == 0) {
        canvas_text(c, 0, 0, ROLE_DIM, "no sequences yet");
        return;
    }
    const struct tiling t = p->tiling;
    p->flow.no_drafts = v->no_drafts;
    draw_hidden(p, c);
    struct tile_look look = {.digits = snprintf(NULL, 0, "%u", (unsigned)scope_tile(v->scope, p->n - 1)->seq + 1)};
    for (int line = 0; line < t.visible; line++)
        for (int column = 0; column < t.columns; column++) {
            const uint32_t place = (uint32_t)((p->top + line) * t.columns + column);
            const int x = c->cols * column / t.columns, end = c->cols * (column + 1) / t.columns;
            const struct canvas tile = canvas_inside(c, line * t.rows, x, t.rows, end - x);
            if (place >= p->n)
                return;
            const struct scope_tile *what = scope_tile(v->scope, p->order[place]);
            look.focused = what->seq == p->focus;
            look.pointed = v->focused && what->seq == p->cursor;
            tile_draw(&tile, v->scope, what, look, t.boxed, &p->flow);
        }
}

/* Writes the longest note that fits on the panel's edge. */
static void
note_batch(void *state, const struct view *v, char *out, int n)
{
    const struct batch_panel *p = state;
    const struct scope_batch b = scope_batch(v->scope);
    const double goodput = scope_window_measures(v->scope).of.tokens_per_s;
    const int seen = (p->top + p->tiling.visible) * p->tiling.columns;
    char speed[32] = "", left[32] = "", waiting[32] = "", hidden[32] = "", text[3][160];
    if (!isnan(goodput))
        snprintf(speed, sizeof speed, "%.*f tok/s · ", goodput < 10 ? 1 : 0, goodput);
    if (b.left > 0)
        snprintf(left, sizeof left, " · %u ended", (unsigned)b.left);
    if (b.waiting > 0)
        snprintf(waiting, sizeof waiting, " · %u waiting", (unsigned)b.waiting);
    if ((uint32_t)seen < p->n)
        snprintf(hidden, sizeof hidden, " · %u below", (unsigned)(p->n - (uint32_t)seen));
    if (b.live > 0)
        snprintf(text[0], sizeof text[0], "%s%u live", speed, (unsigned)b.live);
    else
        snprintf(text[0], sizeof text[0], "%s%u ended", speed, (unsigned)b.left);
    snprintf(text[1], sizeof text[1], "%s%u live%s%s", speed, (unsigned)b.live, left, waiting);
    snprintf(text[2], sizeof text[2], "goodput %s%u live%s%s%s", speed, (unsigned)b.live, left, waiting, hidden);
    int longest = speed[0] != '\0' ? 2 : 1;
    while (longest > 0 && text_width(text[longest]) + text_width(TITLE) + 5 > p->cols)
        longest--;
    snprintf(out, (size_t)n, "%s", text[longest]);
}

/* ---- keys and mouse ---- */

static void
focus_on(const struct batch_panel *p, const struct view *v, uint32_t place)
{
    panel_command(v, "sequence %u", (unsigned)scope_tile(v->scope, p->order[place])->seq + 1);
}

static void
point(struct batch_panel *p, const struct view *v, long by)
{
    const long from = (long)place_of(p, v->scope, p->cursor), to = from + by;
    if (p->n == 0)
        return;
    const uint32_t place = to < 0 ? 0 : to >= (long)p->n ? p->n - 1 : (uint32_t)to;
    p->cursor = scope_tile(v->scope, p->order[place])->seq;
    scroll_to(p, place);
}

static bool
key_batch(void *state, const struct view *v, int key)
{
    struct batch_panel *p = state;
    arrange(p, v->scope); /* tiles drawn last may not exist any more, after a replay went back */
    if (p->n == 0 || p->tiling.columns == 0)
        return false; /* nothing has been drawn yet */
    const uint32_t line = (uint32_t)p->tiling.columns, at = place_of(p, v->scope, p->cursor);
    const struct step by = input_step(key, p->tiling.visible);
    if (by.down != 0 || by.right != 0) {
        const bool stays = by.down < 0 && key != INPUT_PAGE_UP && at < line; /* it is in the first row */
        point(p, v, stays ? 0 : by.right + by.down * (long)line);
        return true;
    }
    switch (key) {
    case INPUT_HOME: point(p, v, -(long)p->n); return true;
    case INPUT_END: point(p, v, (long)p->n); return true;
    case INPUT_ENTER:
        if (at < p->n)
            focus_on(p, v, at);
        return true;
    default: return false;
    }
}

static bool
mouse_batch(void *state, const struct view *v, const struct canvas *c, int y, int x, enum mouse_action action)
{
    struct batch_panel *p = state;
    arrange(p, v->scope);
    if (p->n == 0)
        return false;
    if (mouse_wheel(action) != 0) {
        p->top += mouse_wheel(action); /* drawing limits it */
        return true;
    }
    if (action != MOUSE_PRESS || y < 0 || x < 0 || y >= p->tiling.visible * p->tiling.rows || x >= c->cols)
        return false;
    const int column = ((x + 1) * p->tiling.columns - 1) / c->cols;
    const uint32_t place = (uint32_t)((p->top + y / p->tiling.rows) * p->tiling.columns + column);
    if (place >= p->n)
        return false;
    focus_on(p, v, place);
    return true;
}

static const struct key_help keys[] = {
    {"← → ↑ ↓", "point at a sequence"},
    {"Enter, click", "show it in the other panels"},
    {"PgUp PgDn", "scroll"},
    {NULL, NULL},
};

const struct panel_ops panel_batch = {
    .name = "batch",
    .title = TITLE,
    .brief = "←↑↓→ point  Enter focus",
    .place = PANEL_TOP,
    .first_tab = true,
    .tall = true,
    .weight = 3,
    .min_cols = 30,
    .active = active_batch,
    .keys = keys,
    .state_size = sizeof(struct batch_panel),
    .close = close_batch,
    .draw = draw_batch,
    .note = note_batch,
    .key = key_batch,
    .mouse = mouse_batch,
};
