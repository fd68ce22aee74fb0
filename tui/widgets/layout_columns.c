#include "tui/widgets/layout_columns.h"

static int
good(const struct layout_item *item)
{
    return item->good_cols > item->min_cols ? item->good_cols : item->min_cols;
}

void
layout_side_by_side(struct layout *l, const struct layout_item *items, const int *chosen, int n, struct rect area)
{
    int width[LAYOUT_PANELS] = {0};
    int left = area.cols, weights = 0, all_good = 0;
    bool settled[LAYOUT_PANELS] = {false};
    for (int i = 0; i < n; i++) {
        weights += items[chosen[i]].weight > 0 ? items[chosen[i]].weight : 1;
        all_good += good(&items[chosen[i]]);
    }
    /* Whoever would get less than it needs gets just that, and the rest is shared by the others. */
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

/* ---- what stands under what ---- */

struct place { /* a row of a column */
    int item[LAYOUT_PANELS], n;
    int used; /* columns that its items need at least */
    bool alone;
};

struct column {
    struct rect rect; /* with the panel on top */
    struct place place[LAYOUT_PANELS];
    int n; /* places below the top one */
    bool tall;
    int least, want; /* rows that the top one keeps, and would like to keep */
};

static bool
has_room(const struct column *c)
{
    return !c->tall && c->least + LAYOUT_LEAST * (c->n + 1) <= c->rect.rows;
}

/* Beside others where there is room for it, else in the column with the fewest below. */
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

static void
share(struct layout *l, const struct layout_item *items, const struct column *c, int top)
{
    int each = c->n > 0 ? (c->rect.rows - c->want) / c->n : 0;
    each = each > c->rect.rows / (c->n + 1) ? c->rect.rows / (c->n + 1) : each;
    each = each < LAYOUT_LEAST ? LAYOUT_LEAST : each > 14 ? 14 : each;
    int y = c->rect.y + c->rect.rows - each * c->n;
    l->panel[top] = (struct rect){c->rect.y, c->rect.x, y - c->rect.y, c->rect.cols};
    for (int k = 0; k < c->n; k++, y += each)
        layout_side_by_side(l, items, c->place[k].item, c->place[k].n, (struct rect){y, c->rect.x, each, c->rect.cols});
}

bool
layout_columns(struct layout *l, const struct layout_item *items, int n, const int *chosen, int n_chosen,
               struct rect area)
{
    struct column columns[LAYOUT_PANELS];
    struct layout tops = {0};
    int found = 0;
    layout_side_by_side(&tops, items, chosen, n_chosen, area);
    for (int i = 0; i < n_chosen; i++) /* the first one has text, of which any number of rows will do */
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
