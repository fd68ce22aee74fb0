/* The scope as a program: takes the terminal, starts the session (or plays the trace), follows keys, mouse, ':' commands
 * and a script, and gives the terminal back. */
#ifndef TUI_APP_APP_H
#define TUI_APP_APP_H

#include "tui/state/app_options.h"
#include "tui/state/source.h"

/* A live session must be open and not started: the app opens its reader first, then starts it. With a script a live
 * session should have been opened paused. Returns the exit status: 0; 1 when the work failed and 2 for bad usage, with
 * *err filled for the user to read; 128 + the signal that ended the program. With 0, too, there may be something to read: a
 * history that could not be kept. The source stays open. */
int app_run(const struct source *, const struct app_options *, struct err *);

#endif
