/* Marks along a time axis: a tick with its text wherever a knob, a policy or a head was turned. */
#ifndef TUI_PANELS_MARKS_H
#define TUI_PANELS_MARKS_H

#include "tui/scope/scope.h"
#include "tui/terminal/canvas.h"

#define MARKS 64 /* drawn at most, the newest */

struct mark {
    int x; /* column */
    const struct segment *segment;
};

struct marks { /* (n) as found: the newest first */
    struct mark mark[MARKS];
    int n;
};

/* The turn that came with a round of the current run; NULL: none did. */
const struct segment *mark_of_round(const struct scope *, uint32_t round);
/* All turns of the current run; `place` gives each its column, -1: it isn't shown. */
void marks_find(struct marks *, const struct scope *, int (*place)(const void *user, const struct segment *),
                const void *user);
/* The same of what is still to come of a replay's run: of all its segments those behind the scope's newest. */
void marks_find_ahead(struct marks *, const struct scope *, const struct segments *all,
                      int (*place)(const void *user, const struct segment *), const void *user);
/* Ticks on a row and, behind each, as much of its text as fits before the next tick, before `end`, and before what isn't
 * one of the row's own glyphs (of a line or a bar). */
void marks_draw(const struct marks *, const struct scope *, const struct canvas *, int y, int end, enum role);
void marks_draw_tick(const struct canvas *, int y, int x); /* where nothing stands yet */

#endif
