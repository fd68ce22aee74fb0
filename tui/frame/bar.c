/* Bars of items: each is shown whole or not at all, the least important ones give way. */
#include "tui/frame/bars.h"

#include <stdarg.h>

#define GAP 3 /* columns between items */

void
bar_add(struct bar *bar, enum role role, int rank, bool right, const char *format, ...)
{
    if (bar->n == BAR_ITEMS)
        return;
    struct bar_item *item = &bar->item[bar->n++];
    *item = (struct bar_item){.role = role, .rank = rank, .right = right};
    va_list args;
    va_start(args, format);
    vsnprintf(item->text, sizeof item->text, format, args);
    va_end(args);
}

void
bar_draw(const struct bar *bar, const struct canvas *c, struct clicks *clicks)
{
    const struct bar_item *items = bar->item;
    bool shown[BAR_ITEMS] = {false}, tried[BAR_ITEMS] = {false};
    int room = c->cols - 2 + GAP;
    for (;;) { /* the most important one that was not looked at yet */
        int next = -1;
        for (int i = 0; i < bar->n; i++)
            if (!tried[i] && (next < 0 || items[i].rank < items[next].rank))
                next = i;
        if (next < 0)
            break;
        tried[next] = true;
        const int width = text_width(items[next].text) + GAP;
        shown[next] = width <= room;
        room -= shown[next] ? width : 0;
    }
    int left = 1, right = c->cols - 1;
    for (int i = 0; i < bar->n; i++) {
        if (!shown[i] || items[i].right)
            continue;
        const int used = canvas_text(c, 0, left, items[i].role, items[i].text);
        if (items[i].line != NULL)
            clicks_add(clicks, c, 0, left, used, items[i].line);
        left += used + GAP;
    }
    for (int i = bar->n - 1; i >= 0; i--) {
        if (!shown[i] || !items[i].right)
            continue;
        right -= text_width(items[i].text);
        canvas_text(c, 0, right, items[i].role, items[i].text);
        right -= GAP;
    }
}
