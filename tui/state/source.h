/* Where the events come from: a live session or a replayed trace. The app loop and the commands know no more of it. */
#ifndef TUI_STATE_SOURCE_H
#define TUI_STATE_SOURCE_H

#include "engine/session/session.h"
#include "traces/replay.h"

struct source {
    struct session *session; /* exactly one of the two is set; both borrowed; the session is not started yet */
    struct replay *replay;
    const char *trace;               /* folder that a live run is being written to, or that is replayed, or NULL */
    const struct saved_choice *both; /* of a replay of two runs beside each other: which; else NULL */
    bool saved;                      /* the user named that folder: quitting loses nothing */
    const char *note;                /* shown above the key line at the start, or NULL */
    /* Writes what is known of the run into a folder; may be NULL. From the app's thread; may take a moment. */
    bool (*export_to)(void *user, const char *dir, struct err *);
    /* The folder of the run's trace, once all so far is on the disk; NULL: *err says why there is none. May be NULL. */
    const char *(*trace_now)(void *user, struct err *);
    const char *(*trouble)(void *user); /* why the trace stopped, or NULL while all is well; may be NULL itself */
    void *user;
};

#endif
