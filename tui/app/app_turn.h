/* What app_run() is made of, for who has a hand in it. */
#ifndef TUI_APP_APP_TURN_H
#define TUI_APP_APP_TURN_H

#include "tui/state/app_state.h"

/* Takes the terminal, draws a frame, starts. False: it could not; app_end() afterwards all the same. */
bool app_begin(struct app *, const struct source *, const struct app_options *);
/* Waits so many milliseconds at most for a key, then does all that is due. */
void app_turn(struct app *, int patience);
int app_end(struct app *, struct err *); /* gives the terminal back; the exit status, as app_run() has it */

#endif
