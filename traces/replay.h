/* Plays a trace into an event log at its own pace, or faster, or step by step. No thread: the screen's loop calls
 * replay_tick(). Rewinding starts a new log generation: readers are closed, the scope reset, reading starts again. */
#ifndef TRACES_REPLAY_H
#define TRACES_REPLAY_H

#include "traces/reader.h"

struct replay;

struct replay_status {
    bool playing, at_end;
    double speed;               /* 1/4 .. 64 */
    uint64_t round, rounds;     /* whole rounds played so far, counted over all runs; in the trace */
    uint64_t t_us, duration_us; /* on the time line of all runs one after another */
};

bool replay_open(struct replay **, const char *folder, struct err *);
void replay_close(struct replay *);
const struct run_info *replay_info(const struct replay *);
struct event_log *replay_log(struct replay *); /* of the current generation */
struct replay_status replay_status(const struct replay *);
void replay_play(struct replay *, bool);
void replay_set_speed(struct replay *, double); /* clamped */
/* Appends what is due at the monotonic time now_us. */
bool replay_tick(struct replay *, uint64_t now_us, struct err *);
bool replay_step_rounds(struct replay *, uint32_t n, struct err *); /* plays whole rounds at once, then pauses */
bool replay_step_token(struct replay *, struct err *);              /* up to the next token event */
/* Up to the end of round n (0: before the first event). Backwards begins a new generation: *rewound is set, and
 * the caller must have closed its reader before. */
bool replay_goto(struct replay *, uint64_t round, bool *rewound, struct err *);
bool replay_goto_fraction(struct replay *, double, bool *rewound, struct err *); /* of the duration */

#endif
