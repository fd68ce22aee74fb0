/* A live run of the scope is always recorded: into the folder that --trace names, else into a temporary one that is
 * deleted in the end, so that `:export` can save any run, also one that turned out interesting only afterwards. */
#pragma once

#include "engine/events/live.h"

struct recording;

/* trace: the folder the user named, or NULL. A disk that takes no trace is no error: then nothing is recorded and
 * recording_trouble() has the reason. A folder that contains a trace is an error. */
bool recording_open(struct recording **, const char *trace, const struct trace_bounds *, struct live *, struct err *);
/* Copies the run up to its last whole round into a new folder (traces/trace_folder.h). For struct source. */
bool recording_export(void *recording, const char *dir, struct err *);
const char *recording_trouble(void *recording);
/* Closes the trace; a temporary one is deleted. False: the trace had stopped, for the reason in *err. */
bool recording_close(struct recording *, struct err *);
