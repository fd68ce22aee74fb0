#include "tui/widgets/layout_columns.h"

/* ---- bands ---- */

struct band {
    enum panel_place place;
    int item[LAYOUT_PANELS], n;
    int rows;
    bool has_focus, shown;
};

struct stack {
    struct band band[LAYOUT_PANELS];
    int n;
};

/* A narrow terminal's panels get half as much again as they need at least, where others would rather have them so. */
static int
needs(const struct layout_item *item, int cols)
{
    return cols < LAYOUT_WIDE ? item->min_cols * 3 / 2 : item->min_cols;
}

/* The active items of a place that are not `taken`, as many as stand beside each other; the focused one before all. */
static bool
take_band(struct stack *s, const struct layout_item *items, int n, enum panel_place place, int focus, int cols,
          bool *taken)
{
    struct band band = {.place = place};
    int needed = 0;
    bool in[LAYOUT_PANELS] = {false};
    if (focus >= 0 && focus < n && items[focus].active && items[focus].place == place && !taken[focus]) {
        in[focus] = band.has_focus = true;
        needed = needs(&items[focus], cols);
    }
    for (int i = 0; i < n; i++) {
        const int wanted = needs(&items[i], cols);
        if (!items[i].active || items[i].place != place || taken[i] || in[i] || (needed > 0 && needed + wanted > cols))
            continue;
        in[i] = true;
        needed += wanted;
    }
    for (int i = 0; i < n; i++) {
        taken[i] = taken[i] || in[i];
        if (in[i])
            band.item[band.n++] = i;
    }
    if (band.n > 0)
        s->band[s->n++] = band;
    return band.n > 0;
}

static int
least_rows(const struct stack *s, const struct band *band)
{
    int tops = 0;
    for (int i = 0; i < s->n; i++)
        tops += s->band[i].place == PANEL_TOP;
    return band->place != PANEL_TOP ? 8 : tops > 1 ? 11 : 18; /* what one looks at most has most */
}

/* How much a band is wanted: the focus, the first of the upper and of the lower place, all upper ones, the first in the middle, the
 * others. */
static int
rank_of(const struct stack *s, int i)
{
    const struct band *band = &s->band[i];
    const bool first = i == 0 || s->band[i - 1].place != band->place;
    const int of_place[] = {[PANEL_TOP] = 2, [PANEL_MIDDLE] = first ? 3 : 5, [PANEL_BOTTOM] = 4};
    return band->has_focus ? 0 : first && band->place != PANEL_MIDDLE ? 1 : of_place[band->place];
}

/* Chooses the bands that are shown. A place's first band makes room for its focused one when both don't fit. */
static void
choose_bands(struct stack *s, int rows)
{
    int left = rows, lower = 0;
    for (int rank = 0; rank <= 5; rank++)
        for (int i = 0; i < s->n; i++) {
            struct band *band = &s->band[i];
            const int least = least_rows(s, band);
            if (rank_of(s, i) != rank)
                continue;
            /* However low the screen is, the focus is there, and an upper and a lower half. */
            const bool half = rank == 1 && (band->place == PANEL_TOP || lower == 0);
            band->shown = rank == 0 || half || least <= left;
            left -= band->shown ? least : 0;
            lower += band->shown && band->place != PANEL_TOP;
        }
}

/* Upper bands hold what one looks at; a lower one needs 8 rows and is best below a third, or less when there are more. */
static void
share_rows(struct stack *s, int rows)
{
    int tops = 0, lowers = 0, left = rows;
    for (int i = 0; i < s->n; i++)
        if (s->band[i].shown)
            *(s->band[i].place == PANEL_TOP ? &tops : &lowers) += 1;
    int lower = lowers > 0 ? rows * 9 / 10 / (lowers + tops + 1) : 0;
    const int least = lowers == 1 && rows >= 30 ? 10 : 8; /* seven knobs and what one of them does */
    lower = lower < least ? least : lower > 16 ? 16 : lower;
    if (tops > 0 && lowers > 0 && lower * lowers > rows - 6 * tops)
        lower = (rows - 6 * tops) / lowers;
    int parts = tops > 0 ? tops : lowers;
    if (tops > 0)
        left -= lower * lowers;
    for (int i = 0; i < s->n; i++) {
        struct band *band = &s->band[i];
        if (!band->shown)
            continue;
        const bool fixed = tops > 0 && band->place != PANEL_TOP;
        band->rows = fixed ? lower : left / parts;
        left -= fixed ? 0 : band->rows;
        parts -= !fixed;
    }
}

static void
place_bands(struct layout *l, const struct layout_item *items, const struct stack *s, int from, struct rect area)
{
    int y = area.y;
    for (int i = 0; i < s->n; i++) {
        const struct band *band = &s->band[i];
        if (!band->shown)
            continue;
        if (i >= from)
            layout_side_by_side(l, items, band->item, band->n, (struct rect){y, area.x, band->rows, area.cols});
        y += band->rows;
    }
}

/* focus: the panel that goes before all others, -1: none does. */
static void
stack(struct layout *l, const struct layout_item *items, int n, int focus, struct rect area)
{
    static const enum panel_place places[] = {PANEL_TOP, PANEL_MIDDLE, PANEL_BOTTOM};
    struct stack s = {.n = 0};
    bool taken[LAYOUT_PANELS] = {false};
    for (int i = 0; i < 3; i++)
        while (take_band(&s, items, n, places[i], focus, area.cols, taken))
            ;
    choose_bands(&s, area.rows);
    share_rows(&s, area.rows);
    place_bands(l, items, &s, 0, area);
}

/* A large screen: what stands in the middle is below one of the upper panels, not across the whole width. */
static bool
columned(struct layout *l, const struct layout_item *items, int n, struct rect area)
{
    struct stack s = {.n = 0};
    bool taken[LAYOUT_PANELS] = {false};
    if (area.cols < LAYOUT_COLUMNED || !take_band(&s, items, n, PANEL_TOP, -1, area.cols, taken) ||
        take_band(&s, items, n, PANEL_TOP, -1, area.cols, taken))
        return false;
    while (take_band(&s, items, n, PANEL_BOTTOM, -1, area.cols, taken))
        ;
    choose_bands(&s, area.rows);
    share_rows(&s, area.rows);
    const struct rect upper = {area.y, area.x, s.band[0].rows, area.cols};
    if (!layout_columns(l, items, n, s.band[0].item, s.band[0].n, upper))
        return false;
    place_bands(l, items, &s, 1, area);
    return true;
}

/* Panels stand where they are declared, so that nothing moves with the focus; unless it would not be seen. */
static void
stacked(struct layout *l, const struct layout_item *items, int n, int focus, struct rect area)
{
    if (!columned(l, items, n, area))
        stack(l, items, n, -1, area);
    if (focus < 0 || focus >= n || !items[focus].active || l->panel[focus].rows > 0)
        return;
    for (int i = 0; i < n; i++)
        l->panel[i] = (struct rect){0};
    stack(l, items, n, focus, area);
}

/* ---- tabs ---- */

/* A narrow terminal: item 0 on top, a row of tabs, and one of the others below. */
static void
tabbed(struct layout *l, const struct layout_item *items, int n, int focus, struct rect area)
{
    l->tabs = true;
    int below = focus > 0 && items[focus].active ? focus : -1;
    for (int i = 1; i < n && below < 0; i++)
        if (items[i].active)
            below = i;
    if (below < 0 || !items[0].active) {
        l->panel[below < 0 ? 0 : below] = area;
        return;
    }
    if (l->bare && area.cols >= LAYOUT_SPLIT) { /* low, but wide: beside each other */
        const int left = area.cols * 2 / 5;
        l->tab_bar = (struct rect){area.y, area.x, 1, area.cols};
        l->panel[0] = (struct rect){area.y + 1, area.x, area.rows - 1, left - 1};
        l->gap = (struct rect){area.y + 1, area.x + left - 1, area.rows - 1, 1};
        l->panel[below] = (struct rect){area.y + 1, area.x + left, area.rows - 1, area.cols - left};
        return;
    }
    int upper = area.rows * 2 / 5;
    upper = l->bare ? (upper < 3 ? 3 : upper) : upper < 6 ? 6 : upper;
    l->panel[0] = (struct rect){area.y, area.x, upper, area.cols};
    l->tab_bar = (struct rect){area.y + upper, area.x, 1, area.cols};
    l->panel[below] = (struct rect){area.y + upper + 1, area.x, area.rows - upper - 1, area.cols};
}

void
layout_compute(struct layout *l, int rows, int cols, const struct layout_item *items, int n, int focus, bool zoom)
{
    *l = (struct layout){.bare = rows < LAYOUT_BOXED_ROWS || cols < LAYOUT_BOXED_COLS};
    if (n > LAYOUT_PANELS)
        n = LAYOUT_PANELS;
    if (rows < LAYOUT_MIN_ROWS || cols < LAYOUT_MIN_COLS) {
        l->too_small = true;
        return;
    }
    l->title = (struct rect){0, 0, 1, cols};
    int y = rows;
    l->status = (struct rect){--y, 0, 1, cols};
    l->measures = (struct rect){--y, 0, 1, cols};
    if (rows >= LAYOUT_TIMED)
        l->timeline = (struct rect){--y, 0, 1, cols};
    const struct rect area = {1, 0, y - 1, cols};
    if (zoom && focus >= 0 && focus < n)
        l->panel[focus] = area;
    else if (l->bare || (cols < LAYOUT_WIDE && rows < LAYOUT_TALL))
        tabbed(l, items, n, focus, area);
    else
        stacked(l, items, n, focus, area);
}

int
layout_rows(int rows, bool device)
{
    return device && rows >= LAYOUT_DEVICE ? rows - 1 : rows;
}

void
layout_add_device(struct layout *l, int rows)
{
    if (l->too_small || l->status.y == rows - 1)
        return;
    l->device = l->status;
    l->status.y = rows - 1;
}

struct canvas
layout_canvas(struct rect r, struct grid *grid)
{
    return (struct canvas){.y = r.y, .x = r.x, .rows = r.rows, .cols = r.cols, .grid = grid};
}

int
layout_at(const struct layout *l, int n, int y, int x)
{
    for (int i = 0; i < n && i < LAYOUT_PANELS; i++) {
        const struct rect *r = &l->panel[i];
        if (y >= r->y && y < r->y + r->rows && x >= r->x && x < r->x + r->cols)
            return i;
    }
    return -1;
}
