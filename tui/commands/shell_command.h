/* A stretch as a command line: what a shell is given to generate with these settings again. */
#ifndef TUI_COMMANDS_SHELL_COMMAND_H
#define TUI_COMMANDS_SHELL_COMMAND_H

#include "engine/events/stretches.h"

/* "specscope run --policy specbound --set tau=0.7 … -p '…' MODEL": a setting is left out if it is the default and was at the run's start, too. A string for the
 * caller to free; NULL: out of memory. prompt may be NULL: it isn't known. */
char *shell_command(const struct stretch *, const struct run_info *, const char *prompt);

#endif
