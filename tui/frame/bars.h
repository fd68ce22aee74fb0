/* The bars above and below the panels: a row each. */
#ifndef TUI_FRAME_BARS_H
#define TUI_FRAME_BARS_H

#include "tui/state/follow.h"
#include "tui/widgets/clicks.h"

#define BAR_ITEMS 24

/* Items are shown whole or not at all: the ones with the highest `rank` go first when there is no room. */
struct bar {
    struct bar_item {
        char text[96];
        enum role role;
        int rank;
        bool right;       /* from the right end */
        const char *line; /* the ':' line that a click runs; NULL: none */
    } item[BAR_ITEMS];
    int n;
};
__attribute__((format(printf, 5, 6))) void bar_add(struct bar *, enum role, int rank, bool right, const char *, ...);
void bar_draw(const struct bar *, const struct canvas *, struct clicks *);

void title_draw(const struct followed *, const struct canvas *, struct clicks *);
void measures_draw(const struct scope *, const struct canvas *);
void device_draw(const struct scope *, const struct canvas *); /* where the device's time goes */
void timeline_draw(const struct followed *, const struct canvas *);
double timeline_fraction(const struct followed *, int cols, int x); /* of a track that wide; NAN: not on it */

#endif
