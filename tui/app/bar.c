/* Bars of items: each is shown whole or not at all, the least important ones give way. */
#include "tui/app/bars.h"

#include <string.h>

#define BAR_ITEMS 24

void
bar_draw(const struct canvas *c, const struct bar_item *items, int n, int gap)
{
    bool shown[BAR_ITEMS] = {false};
    n = n > BAR_ITEMS ? BAR_ITEMS : n;
    bool tried[BAR_ITEMS] = {false};
    for (int i = 0; i < n; i++)
        tried[i] = items[i].text[0] == '\0';
    int room = c->cols - 2 + gap;
    for (;;) { /* the most important one that was not looked at yet */
        int next = -1;
        for (int i = 0; i < n; i++)
            if (!tried[i] && (next < 0 || items[i].rank < items[next].rank))
                next = i;
        if (next < 0)
            break;
        tried[next] = true;
        const int width = text_width(items[next].text) + gap;
        shown[next] = width <= room;
        room -= shown[next] ? width : 0;
    }
    int left = 1, right = c->cols - 1;
    for (int i = 0; i < n; i++) {
        if (shown[i] && !items[i].right)
            left += canvas_text(c, 0, left, items[i].role, items[i].text) + gap;
    }
    for (int i = n - 1; i >= 0; i--) {
        if (!shown[i] || !items[i].right)
            continue;
        right -= text_width(items[i].text);
        canvas_text(c, 0, right, items[i].role, items[i].text);
        right -= gap;
    }
}
