/* The folder that a trace is in. */
#ifndef TRACES_TRACE_FOLDER_H
#define TRACES_TRACE_FOLDER_H

#include <signal.h>
#include <stddef.h>

#include "engine/base/err.h"

/* Makes the folder and its parents, those that aren't there. */
bool trace_folder_make(const char *folder, struct err *);
/* Opens it, which is the caller's to close; one that holds a trace is refused (ERR_USAGE). */
bool trace_folder_open(int *fd, const char *folder, struct err *);

/* The text of its run.json, memory of the caller, a zero behind it. */
bool trace_folder_run_json(const char *folder, char **text, size_t *n, struct err *);

/* Signals are for others; and a file that grows over the process's limit is an error of write(), not the end of the
 * process, as SIGXFSZ would have it. Between the two this thread takes none, nor do threads that it starts. */
void trace_signals_block(sigset_t *before);
void trace_signals_restore(const sigset_t *before);

/* Copies a trace while it is being written: a consistent cut. As a round's other lines are on disk before its line in
 * rounds.csv, what rounds.csv has when the copy begins says which lines all tables have: those up to its last whole
 * round, and the controls of the same run that directly follow it (how it ended, a baseline). The copy has these lines
 * and no others, and counts as closed cleanly after the last of them. */

/* `to` is made if it isn't there (its parent must be); one that holds a trace is refused. Its run.json comes last. After
 * a failure nothing is left behind there, so that it can be tried again. */
bool trace_copy(const char *from, const char *to, struct err *);

#endif
