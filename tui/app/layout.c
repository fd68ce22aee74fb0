#include "tui/app/layout.h"

/* ---- columns ---- */

static int
good(const struct layout_item *item)
{
    return item->good_cols > item->min_cols ? item->good_cols : item->min_cols;
}

/* Shares `cols` among the chosen items by weight, none below its min_cols while that is possible; whole columns, no
 * gap, no overlap. */
static void
layout_side_by_side(struct layout *l, const struct layout_item *items, const int *chosen, int n, struct rect area)
{
    int width[LAYOUT_PANELS] = {0};
    int left = area.cols, weights = 0, all_good = 0;
    bool settled[LAYOUT_PANELS] = {false};
    for (int i = 0; i < n; i++) {
        weights += items[chosen[i]].weight > 0 ? items[chosen[i]].weight : 1;
        all_good += good(&items[chosen[i]]);
    }
    /* An item whose share is too small gets what it needs; the others share the rest. */
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < n; i++) {
            const int weight = items[chosen[i]].weight > 0 ? items[chosen[i]].weight : 1;
            const int wanted = all_good <= area.cols ? good(&items[chosen[i]]) : items[chosen[i]].min_cols;
            if (settled[i] || weights <= weight || left * weight / weights >= wanted || wanted >= left)
                continue;
            width[i] = wanted;
            settled[i] = again = true;
            left -= wanted;
            weights -= weight;
        }
    }
    for (int i = 0; i < n; i++) {
        const int weight = items[chosen[i]].weight > 0 ? items[chosen[i]].weight : 1;
        if (settled[i])
            continue;
        width[i] = weights <= weight ? left : left * weight / weights;
        left -= width[i];
        weights -= weight;
    }
    int x = area.x;
    for (int i = 0; i < n; i++) {
        l->panel[chosen[i]] = (struct rect){area.y, x, area.rows, width[i]};
        x += width[i];
    }
}

/* ---- columns of items ---- */

struct place { /* a row of a column */
    int item[LAYOUT_PANELS], n;
    int used; /* columns that its items need at least */
    bool alone;
};

struct column {
    struct rect rect; /* including the top panel */
    struct place place[LAYOUT_PANELS];
    int n; /* places below the top one */
    bool tall;
    int least, want; /* rows that the top panel needs, and prefers */
};

static bool
has_room(const struct column *c)
{
    return !c->tall && c->least + LAYOUT_LEAST * (c->n + 1) <= c->rect.rows;
}

/* Places an item beside others if there is room, else in the column with the fewest rows of panels below its top
 * one. */
static bool
put(struct column *columns, int n, const struct layout_item *items, int item)
{
    const int wanted = items[item].min_cols, beside = good(&items[item]);
    struct column *fewest = NULL;
    struct place *place = NULL;
    for (int i = 0; i < n; i++) {
        struct column *c = &columns[i];
        for (int k = 0; k < c->n && place == NULL; k++)
            if (!items[item].alone && !c->place[k].alone && c->place[k].used + beside <= c->rect.cols)
                place = &c->place[k];
        if (wanted <= c->rect.cols && has_room(c) && (fewest == NULL || c->n < fewest->n))
            fewest = c;
    }
    if (place == NULL && fewest != NULL)
        place = &fewest->place[fewest->n++];
    if (place == NULL)
        return false;
    place->item[place->n++] = item;
    place->alone = items[item].alone;
    place->used += beside;
    return true;
}

/* Returns the most rows up to `rows` that an upper item fills: with or without those for something else. 0: any, or it
 * needs more. */
static int
fills(const struct layout_item *item, int rows)
{
    const int good = item->good_rows < LAYOUT_LOOKED_AT ? LAYOUT_LOOKED_AT : item->good_rows;
    const int all = item->good_rows + item->more_rows;
    if (item->good_rows == 0 || rows < good)
        return 0;
    return all > good && rows >= all ? all : good;
}

static void
share(struct layout *l, const struct layout_item *items, const struct column *c, int top)
{
    const int roomy = fills(&items[top], c->rect.rows - c->n * LAYOUT_BELOW);
    const int tight = fills(&items[top], c->rect.rows - c->n * LAYOUT_LEAST);
    const int want = roomy > 0 ? roomy : tight > 0 ? tight : c->want;
    int each = c->n > 0 ? (c->rect.rows - want) / c->n : 0;
    each = each > c->rect.rows / (c->n + 1) ? c->rect.rows / (c->n + 1) : each;
    each = each < LAYOUT_LEAST ? LAYOUT_LEAST : each > LAYOUT_BELOW ? LAYOUT_BELOW : each;
    int y = c->rect.y + c->rect.rows - each * c->n;
    l->panel[top] = (struct rect){c->rect.y, c->rect.x, y - c->rect.y, c->rect.cols};
    for (int k = 0; k < c->n; k++, y += each)
        layout_side_by_side(l, items, c->place[k].item, c->place[k].n, (struct rect){y, c->rect.x, each, c->rect.cols});
}

/* Places the chosen items beside each other, and below them, in their columns, the active items of the middle, as far
 * as there is room. False: there is room for none of these, and nothing is placed. */
static bool
layout_columns(struct layout *l, const struct layout_item *items, int n, const int *chosen, int n_chosen,
               struct rect area)
{
    struct column columns[LAYOUT_PANELS];
    struct layout tops = {0};
    int found = 0;
    layout_side_by_side(&tops, items, chosen, n_chosen, area);
    for (int i = 0; i < n_chosen; i++) /* the first contains text, which works with any number of rows */
        columns[i] = (struct column){.rect = tops.panel[chosen[i]],
                                     .tall = items[chosen[i]].tall,
                                     .least = i == 0 ? 10 : 18,
                                     .want = i == 0 ? 10 : LAYOUT_LOOKED_AT};
    for (int i = 0; i < n; i++) {
        if (!items[i].active || items[i].place != PANEL_MIDDLE)
            continue;
        found += put(columns, n_chosen, items, i);
    }
    if (found == 0)
        return false;
    for (int i = 0; i < n_chosen; i++)
        share(l, items, &columns[i], chosen[i]);
    return true;
}

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

/* Columns that an item needs: on a narrow terminal half as many again as its least. */
static int
needs(const struct layout_item *item, int cols)
{
    return cols < LAYOUT_WIDE ? item->min_cols * 3 / 2 : item->min_cols;
}

/* Adds a band of the active items of a place that are not `taken`, as many as fit side by side; the focused item comes
 * first. */
static bool
choose_band(struct stack *s, const struct layout_item *items, int n, enum panel_place place, int focus, int cols,
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
    return band->place != PANEL_TOP ? 8 : tops > 1 ? 11 : 18; /* the upper panels get most rows */
}

/* The rank of a band: the focus, the first of the upper and of the lower place, all upper ones, the first in the
 * middle, all others. */
static int
rank_of(const struct stack *s, int i)
{
    const struct band *band = &s->band[i];
    const bool first = i == 0 || s->band[i - 1].place != band->place;
    const int of_place[] = {[PANEL_TOP] = 2, [PANEL_MIDDLE] = first ? 3 : 5, [PANEL_BOTTOM] = 4};
    return band->has_focus ? 0 : first && band->place != PANEL_MIDDLE ? 1 : of_place[band->place];
}

/* Chooses the bands that are shown. If a place has room for one band, its focused band replaces its first. */
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
            /* Even the lowest screen shows the focus, an upper and a lower half. */
            const bool half = rank == 1 && (band->place == PANEL_TOP || lower == 0);
            band->shown = rank == 0 || half || least <= left;
            left -= band->shown ? least : 0;
            lower += band->shown && band->place != PANEL_TOP;
        }
}

/* A lower band needs 8 rows and gets at most a third, or less if there are several. */
static void
share_rows(struct stack *s, int rows)
{
    int tops = 0, lowers = 0, left = rows;
    for (int i = 0; i < s->n; i++)
        if (s->band[i].shown)
            *(s->band[i].place == PANEL_TOP ? &tops : &lowers) += 1;
    int lower = lowers > 0 ? rows * 9 / 10 / (lowers + tops + 1) : 0;
    const int least = lowers == 1 && rows >= 30 ? 10 : 8; /* seven knobs and the help of one */
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

/* focus: the panel that is preferred to all others; -1: none. */
static void
stack(struct layout *l, const struct layout_item *items, int n, int focus, struct rect area)
{
    static const enum panel_place places[] = {PANEL_TOP, PANEL_MIDDLE, PANEL_BOTTOM};
    struct stack s = {.n = 0};
    bool taken[LAYOUT_PANELS] = {false};
    for (int i = 0; i < 3; i++)
        while (choose_band(&s, items, n, places[i], focus, area.cols, taken))
            ;
    choose_bands(&s, area.rows);
    share_rows(&s, area.rows);
    place_bands(l, items, &s, 0, area);
}

/* Gives the lower bands rows that the panels of the first band and those below these do not fill. */
static void
share_unused(struct stack *s, const struct layout_item *items)
{
    int filled = 0, lowers = 0;
    for (int i = 0; i < s->band[0].n; i++) {
        const struct layout_item *item = &items[s->band[0].item[i]];
        const int rows = item->tall ? s->band[0].rows : fills(item, s->band[0].rows - LAYOUT_BELOW);
        filled = rows > filled ? rows : filled;
    }
    for (int i = 1; i < s->n; i++)
        lowers += s->band[i].shown;
    const int unused = s->band[0].rows - LAYOUT_BELOW - filled;
    if (filled == 0 || lowers == 0 || unused < lowers)
        return;
    const int more = unused / lowers;
    for (int i = 1; i < s->n; i++) {
        s->band[i].rows += s->band[i].shown ? more : 0;
        s->band[0].rows -= s->band[i].shown ? more : 0;
    }
}

/* A large screen: the middle panels are each below one of the upper panels, instead of across the whole width. */
static bool
columned(struct layout *l, const struct layout_item *items, int n, struct rect area)
{
    struct stack s = {.n = 0};
    bool taken[LAYOUT_PANELS] = {false};
    if (area.cols < LAYOUT_COLUMNED || !choose_band(&s, items, n, PANEL_TOP, -1, area.cols, taken) ||
        choose_band(&s, items, n, PANEL_TOP, -1, area.cols, taken))
        return false;
    while (choose_band(&s, items, n, PANEL_BOTTOM, -1, area.cols, taken))
        ;
    choose_bands(&s, area.rows);
    share_rows(&s, area.rows);
    share_unused(&s, items);
    const struct rect upper = {area.y, area.x, s.band[0].rows, area.cols};
    if (!layout_columns(l, items, n, s.band[0].item, s.band[0].n, upper))
        return false;
    place_bands(l, items, &s, 1, area);
    return true;
}

/* Places the panels in the order of their declaration. The focus changes this only if its panel would be hidden. */
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
    if (l->bare && area.cols >= LAYOUT_SPLIT) { /* low but wide: side by side */
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

/* A line about the gain never takes the boxes from the panels. */
static bool
has_reason(int rows, bool reason, bool device)
{
    return reason && rows - device > LAYOUT_BOXED_ROWS;
}

int
layout_rows(int rows, bool reason, bool device)
{
    return rows - has_reason(rows, reason, device) - (device && rows >= LAYOUT_DEVICE);
}

void
layout_add_lines(struct layout *l, int rows, bool reason, bool device)
{
    if (l->too_small)
        return;
    if (has_reason(rows, reason, device)) {
        l->reason = l->status;
        l->status.y++;
    }
    if (device && rows >= LAYOUT_DEVICE) {
        l->device = l->status;
        l->status.y++;
    }
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
