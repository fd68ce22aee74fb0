/* The scope as a program: opens the terminal, starts the live source or plays the trace, handles keys, the mouse, ':'
 * commands and a script, and restores the terminal.
 *
 * The files of this room. Each group uses those above it; a key reaches the commands through a table that the app is
 * given.
 *
 *   parts       line (input lines, history), chooser (menus, models), command (the ':' interpreter, scripts), message,
 *               screen, upcoming (the next prompts), layout, key_row
 *   the run     follow (events, posted controls, undo), sweeping (sweeps, races), scorer (texts), forecasting (what-if)
 *   the screen  panes (panels in their places), bars, frame
 *   commands    app_state (runs a line, handles keys and the mouse); verbs (the table), verbs_run, verbs_prompt,
 *               verbs_tuning, verbs_compare, verbs_screen
 *   the loop    app (keys, scripts, frames), model_screen (the list of models before a run) */
#ifndef TUI_APP_APP_H
#define TUI_APP_APP_H

#include "tui/app/app_options.h"
#include "tui/app/chooser.h"

/* Runs the scope. A live source must be open and not started, and opened paused if there is a script. Returns the exit
 * status: 0; 1 if the work failed or 2 for wrong usage, with *err; 128 + the signal that ended the program. With 0
 * there may also be an *err: a history that could not be saved. The source stays open. */
int app_run(const struct source *, const struct app_options *, struct err *);

/* The list of models before a run. */

struct model_screen_options {
    const char *theme, *data_dir; /* as in struct app_options */
    const char *message;          /* why the last model was not opened; NULL: no message */
    size_t at;                    /* the selected model */
};

/* Stores the chosen model in *chosen; *left: the user chose none. Returns the exit status: 0, 128 + the signal that
 * ended the program, or 1 with *err. */
int model_screen_run(struct model_list *, const struct model_screen_options *, size_t *chosen, bool *left,
                     struct err *);

#endif
