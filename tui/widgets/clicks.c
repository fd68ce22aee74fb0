#include "tui/widgets/clicks.h"

#include <stddef.h>
#include <stdio.h>

void
clicks_add(struct clicks *clicks, const struct canvas *c, int y, int x, int cols, const char *line)
{
    if (clicks == NULL || clicks->n == CLICKS)
        return;
    struct click *click = &clicks->at[clicks->n++];
    *click = (struct click){.y = c->y + y, .x = c->x + x, .cols = cols};
    snprintf(click->line, sizeof click->line, "%s", line);
}

const char *
clicks_find(const struct clicks *clicks, int y, int x)
{
    for (int i = clicks->n - 1; i >= 0; i--) {
        const struct click *click = &clicks->at[i];
        if (click->y == y && x >= click->x && x < click->x + click->cols)
            return click->line;
    }
    return NULL;
}
