/* The scope on a live source, for the scope and connect. */
#ifndef CLI_SCOPE_H
#define CLI_SCOPE_H

#include "cli/options/options.h"
#include "tui/app/app.h"

/* `without`: the command for the same without a terminal. */
bool scope_has_terminal(const char *without, struct err *);
/* Shows an opened source, and records it: in the folder of --trace if that was given. Options of the command line replace
 * those of `app`, except for prompts, pace, once and opening. Ends the source's work, but does not close it. Prints why
 * it failed; returns the exit status. */
int scope_show(const struct options *, struct live *, struct app_options app, const char *note, struct err *);

#endif
