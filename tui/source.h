/* Where the events come from: a live session or a replayed trace. The app loop and the commands know no more of it. */
#ifndef TUI_SOURCE_H
#define TUI_SOURCE_H

#include "engine/session.h"
#include "traces/replay.h"

struct source {
    struct session *session; /* exactly one of the two is set; both borrowed */
    struct replay *replay;
    const char *trace; /* folder that a live run is being written to, or NULL */
    const char *note;  /* shown once on the status line at the start, or NULL */
};

#endif
