/* The folder of a trace: creating, opening, copying. */
#pragma once

#include <signal.h>
#include <stddef.h>

#include "base/err.h"

/* Creates the folder and its parents if they are missing. */
bool trace_folder_make(const char *folder, struct err *);
/* Opens the folder; the caller closes *fd. Refuses a folder that contains a trace (ERR_USAGE). */
bool trace_folder_open(int *fd, const char *folder, struct err *);

/* Reads run.json; *text is terminated, and the caller frees it. */
bool trace_folder_run_json(const char *folder, char **text, size_t *n, struct err *);

/* Block all signals for this thread and threads that it starts: other threads handle them. */
void trace_signals_block(sigset_t *before);
void trace_signals_restore(const sigset_t *before);

/* Copies the files of a trace that no thread writes meanwhile, with the text run_json in place of its run.json unless
 * it is NULL. Creates `to` if it is missing (its parent must exist); refuses a folder that contains a trace. A failure
 * leaves no files. */
bool trace_copy(const char *from, const char *to, const char *run_json, struct err *);
