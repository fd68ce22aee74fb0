/* The scope as a program: opens the terminal, starts the session or plays the trace, handles keys, the mouse, ':' commands and a script, and
 * restores the terminal. */
#ifndef TUI_APP_APP_H
#define TUI_APP_APP_H

#include "tui/state/app_options.h"
#include "tui/widgets/chooser.h"

/* Runs the scope. A live session must be open and not started, and opened paused if there is a script. Returns the exit status: 0; 1 if the
 * work failed or 2 for wrong usage, with *err; 128 + the signal that ended the program. With 0 there may also be an *err: a history that could
 * not be saved. The source stays open. */
int app_run(const struct source *, const struct app_options *, struct err *);

/* The list of models before a run. */

struct model_screen_options {
    const char *theme, *data_dir; /* as in struct app_options */
    const char *message;          /* why the last model was not opened; NULL: no message */
    size_t at;                    /* the selected model */
};

/* Stores the chosen model in *chosen; *left: the user chose none. Returns the exit status: 0, 128 + the signal that ended the program, or 1
 * with *err. */
int model_screen_run(struct model_list *, const struct model_screen_options *, size_t *chosen, bool *left,
                     struct err *);

#endif
