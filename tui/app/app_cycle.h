/* The parts of app_run(), for tests. */
#ifndef TUI_APP_APP_CYCLE_H
#define TUI_APP_APP_CYCLE_H

#include "tui/app/app_state.h"

/* Opens the terminal, draws a frame, starts the run. Call app_end() also after a failure. */
bool app_begin(struct app *, const struct source *, const struct app_options *);
/* Waits at most `patience` milliseconds for a key, then handles keys, events, the script and the frame. */
void app_cycle(struct app *, int patience);
int app_end(struct app *, struct err *); /* restores the terminal; returns the exit status of app_run() */

#endif
