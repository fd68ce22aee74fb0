/* The window: of which rounds all numbers on the screen are. Header, bar, versus, batch, exit layers and reliability take theirs
 * from here; the ledger's newest row is the segment. */
#ifndef TUI_SCOPE_WINDOW_H
#define TUI_SCOPE_WINDOW_H

#include "tui/scope/scope.h"

enum scope_window {
    WINDOW_SEGMENT, /* the rounds since the settings changed last */
    WINDOW_LATEST,  /* the last METRICS_WINDOW rounds of the run */
    WINDOW_RUN,
    WINDOWS
};
extern const char *const window_names[WINDOWS]; /* "segment", "last", "run": what :window takes */

struct window_measures {
    struct measures of;
    struct estimates with;   /* the same with their standard errors, */
    struct estimate speedup; /* and tokens/s over the baseline's */
};

void scope_show_window(struct scope *, enum scope_window);
enum scope_window scope_window(const struct scope *);
/* "segment C", "last 32 rounds", "run". */
void scope_window_name(const struct scope *, char *out, size_t n);
struct window_measures scope_window_measures(const struct scope *);
/* The newest segment of the run that the sequence in focus belongs to; NULL: it has no round yet. */
const struct segment *scope_segment(const struct scope *);

#endif
