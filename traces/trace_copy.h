/* Copies a trace while it is being written: a consistent cut. As a round's other lines are on disk before its line in
 * rounds.csv, what rounds.csv has when the copy begins says which lines all tables have: those up to its last whole
 * round, and the controls of the same run that directly follow it (how it ended, a baseline). The copy has these lines
 * and no others, and counts as closed cleanly after the last of them. */
#ifndef TRACES_TRACE_COPY_H
#define TRACES_TRACE_COPY_H

#include "engine/base/err.h"

/* `to` is made if it isn't there (its parent must be); one that holds a trace is refused. Its run.json comes last. After
 * a failure nothing is left behind there, so that it can be tried again. */
bool trace_copy(const char *from, const char *to, struct err *);

#endif
