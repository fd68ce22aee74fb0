/* Runs the whole app on a pseudo-terminal: bytes arrive as from a keyboard, and output is discarded. */
#pragma once

#include "tui/app/app_state.h"

/* Call once per process. Replaces standard input and output by a terminal, and the working folder by a temporary one
 * that is removed at exit. root: the former working folder. */
void app_rig_open(char root[4096]);
void app_rig_type(const void *bytes, size_t n); /* at most 4000 */
/* Replaces '/', '~' and Ctrl-Z, which could leave the folder or stop the process, by '.'. */
void app_rig_tame(char *bytes, size_t n);
void app_rig_size(int rows, int cols);
/* Writes a trace to the folder: the first so many rounds of the test trace of that name. Long traces are slow, because
 * every input reads them again. */
void app_rig_trace(const char *root, const char *name, int rounds);
