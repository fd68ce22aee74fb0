/* The scope as a program: takes the terminal, starts the session (or plays the trace), follows keys, mouse, ':' commands
 * and a script, and gives the terminal back. */
#ifndef TUI_APP_APP_H
#define TUI_APP_APP_H

#include "tui/state/app_options.h"
#include "tui/widgets/chooser.h"

/* A live session must be open and not started: the app opens its reader first, then starts it. With a script a live
 * session should have been opened paused. Returns the exit status: 0; 1 when the work failed and 2 for bad usage, with
 * *err filled for the user to read; 128 + the signal that ended the program. With 0, too, there may be something to read: a
 * history that could not be kept. The source stays open. */
int app_run(const struct source *, const struct app_options *, struct err *);

/* Before there is a run: the models on this machine on a screen of their own. */

struct model_screen_options {
    const char *theme, *data_dir; /* as of struct app_options */
    const char *message;          /* why the last one was not opened; NULL: nothing to say */
    size_t at;                    /* the model to stand at */
};

/* The model that was chosen in *chosen, or *left: none was. Returns the exit status: 0, or 128 + the signal that ended the
 * program, or 1 with *err. */
int model_screen_run(struct model_list *, const struct model_screen_options *, size_t *chosen, bool *left,
                     struct err *);

#endif
