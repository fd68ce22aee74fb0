#include "tui/app/layout.h"

/* Shares `cols` among the chosen items by weight, none below its min_cols while that is possible; whole columns, no
 * gap, no overlap. */
static void
side_by_side(struct layout *l, const struct layout_item *items, const int *chosen, int n, struct rect area)
{
    int width[LAYOUT_PANELS] = {0};
    int left = area.cols, weights = 0;
    bool settled[LAYOUT_PANELS] = {false};
    for (int i = 0; i < n; i++)
        weights += items[chosen[i]].weight > 0 ? items[chosen[i]].weight : 1;
    /* Whoever would get less than it needs gets just that, and the rest is shared by the others. */
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < n; i++) {
            const int weight = items[chosen[i]].weight > 0 ? items[chosen[i]].weight : 1;
            const int wanted = items[chosen[i]].min_cols;
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

/* The active items of a place, as many as stand beside each other there; the focused one is always among them. */
static int
choose(const struct layout_item *items, int n, enum panel_place place, int focus, int cols, int *chosen)
{
    int count = 0, needed = 0;
    if (focus >= 0 && focus < n && items[focus].active && items[focus].place == place)
        needed = items[focus].min_cols;
    else
        focus = -1;
    bool in[LAYOUT_PANELS] = {false};
    for (int i = 0; i < n; i++) {
        if (!items[i].active || items[i].place != place || i == focus || needed + items[i].min_cols > cols)
            continue;
        in[i] = true;
        needed += items[i].min_cols;
    }
    for (int i = 0; i < n; i++)
        if (in[i] || i == focus)
            chosen[count++] = i;
    return count;
}

static void
wide(struct layout *l, const struct layout_item *items, int n, int focus, struct rect area)
{
    int top[LAYOUT_PANELS], bottom[LAYOUT_PANELS];
    const int tops = choose(items, n, PANEL_TOP, focus, area.cols, top);
    const int bottoms = choose(items, n, PANEL_BOTTOM, focus, area.cols, bottom);
    /* The upper half holds what one looks at; the lower needs 8 rows and is best at a third. */
    int lower = area.rows / 3;
    lower = lower < 8 ? 8 : lower > 16 ? 16 : lower;
    if (lower > area.rows / 2)
        lower = area.rows / 2;
    if (bottoms == 0)
        lower = 0;
    else if (tops == 0)
        lower = area.rows;
    if (tops > 0)
        side_by_side(l, items, top, tops, (struct rect){area.y, area.x, area.rows - lower, area.cols});
    if (bottoms > 0)
        side_by_side(l, items, bottom, bottoms, (struct rect){area.y + area.rows - lower, area.x, lower, area.cols});
}

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
    int upper = area.rows * 2 / 5;
    upper = upper < 6 ? 6 : upper;
    l->panel[0] = (struct rect){area.y, area.x, upper, area.cols};
    l->tab_bar = (struct rect){area.y + upper, area.x, 1, area.cols};
    l->panel[below] = (struct rect){area.y + upper + 1, area.x, area.rows - upper - 1, area.cols};
}

void
layout_compute(struct layout *l, int rows, int cols, const struct layout_item *items, int n, int focus, bool zoom)
{
    *l = (struct layout){0};
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
    l->timeline = (struct rect){--y, 0, 1, cols};
    const struct rect area = {1, 0, y - 1, cols};
    if (zoom && focus >= 0 && focus < n)
        l->panel[focus] = area;
    else if (cols < LAYOUT_WIDE)
        tabbed(l, items, n, focus, area);
    else
        wide(l, items, n, focus, area);
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
