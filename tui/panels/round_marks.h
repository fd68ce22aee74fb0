/* A round in one line of marks, for every panel that shows one. */
#ifndef TUI_PANELS_ROUND_MARKS_H
#define TUI_PANELS_ROUND_MARKS_H

#include "tui/scope/scope.h"
#include "tui/terminal/canvas.h"

/* Its drafts, ■ accepted, □ rejected, ○ not judged yet, smaller ones off the main line, and what the target said itself:
 * ◆ a correction, + a bonus. In `width` columns; '…' where they are too few. */
void round_marks(const struct canvas *, int y, int x, int width, const struct scope_round *);

#define ROUND_REASON (4 * sizeof(((struct round_event *)0)->stop_reason) + 1)
/* Why drafting stopped, for the screen: a trace's "difficult" is "low confidence"; other traces may have any text. */
void round_reason(const struct round_event *, char out[ROUND_REASON]);

#endif
