/* The parts of a frame that run a ':' line when they are clicked, such as the keys that a row of hints names. */
#ifndef TUI_WIDGETS_CLICKS_H
#define TUI_WIDGETS_CLICKS_H

#include "tui/terminal/canvas.h"

#define CLICKS 96

struct clicks { /* zeros: empty */
    struct click {
        int y, x, cols; /* on the screen */
        char line[24];
    } at[CLICKS];
    int n;
};

/* Columns x to x + cols of the canvas' row y. clicks may be NULL. An entry that the list has no place for is dropped. */
void clicks_add(struct clicks *, const struct canvas *, int y, int x, int cols, const char *line);
/* The line of a place on the screen; of several the one that was added last. NULL: there is none. */
const char *clicks_find(const struct clicks *, int y, int x);

#endif
