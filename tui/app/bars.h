/* The bars above and below the panels: a row each. */
#ifndef TUI_APP_BARS_H
#define TUI_APP_BARS_H

#include "tui/app/follow.h"

/* Items of a bar, whole or not at all: the ones with the highest `rank` go first when there is no room. */
struct bar_item {
    char text[96];
    enum role role;
    int rank;
    bool right; /* from the right end */
};
void bar_draw(const struct canvas *, const struct bar_item *, int n, int gap);

void title_draw(const struct followed *, const struct canvas *);
void measures_draw(const struct scope *, const struct canvas *);
void timeline_draw(const struct followed *, const struct canvas *);
double timeline_fraction(const struct followed *, int cols, int x); /* of a track that wide; NAN: not on it */

#endif
