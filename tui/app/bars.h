/* The bars above and below the panels: a row each. */
#ifndef TUI_APP_BARS_H
#define TUI_APP_BARS_H

#include "engine/measure/reason.h"
#include "tui/app/follow.h"
#include "tui/app/key_row.h"
#include "tui/app/panes.h"

/* The reason is that of the present setting. */
void title_draw(const struct followed *, const struct landscape *, const struct reason *, const struct canvas *,
                struct clicks *);
/* Draws why there is no gain and what to do next. A click on a remedy runs it, one on the reason opens its help. */
void reason_draw(const struct reason_line *, const struct canvas *, struct clicks *);
void measures_draw(const struct scope *, const struct landscape *, const struct canvas *);
void device_draw(const struct scope *, const struct canvas *); /* draws where the device's time is spent */
/* Draws the time line: of a replay its position, its speed and a track to drag along; of a live run its time and how
 * full the context is. Both have the same place, so that a live screen and its replay have panels of the same size. */
void timeline_draw(const struct followed *, const struct canvas *);
/* Returns the fraction of the track at column x of a time line of cols columns; NAN: x is not on the track. */
double timeline_fraction(const struct followed *, int cols, int x);

/* Draws the key bar on one row (tui/app/key_row.h): first the keys for help, quitting, pausing and panels, which are
 * always there; then the keys of the focused panel and of the run, and the panels that are not on the screen. */
void key_bar_draw(const struct panes *, const struct followed *, const struct canvas *, struct clicks *);

#endif
