/* The subcommands, and folders of data and of the user. */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* Prints "specscope: …" on stderr and returns the exit status: 2 for bad usage, command_interrupted() for an
 * interruption, 1 for any other error. */
int command_failed(const struct err *);
/* Stores the signal that interrupts the command. Async-signal-safe. */
void command_interrupt(int number);
/* Returns the exit status of an interrupted command: 128 + the signal, as a shell has it for a process that a signal
 * ended. */
int command_interrupted(void);

/* Returns the folder of themes/ and models/: in the source tree of the program, else the installed share folder.
 * Constant for the life of the process. */
const char *data_dir(void);
const char *bundled_model_path(void);
/* Write the path of a user's file or folder: $XDG_CONFIG_HOME/specscope/NAME, or ~/.config/…;
 * $XDG_STATE_HOME/specscope/NAME, or ~/.local/state/…. They create no folder. Return NULL if the environment
 * names no home, or the path is too long. */
const char *config_path(char *out, size_t n, const char *name);
const char *state_path(char *out, size_t n, const char *name);
