/* Plays a trace at its own pace, or faster, or step by step: hands out the events that are due, in order, as the log of
 * a live run would have. No thread and no log of its own: the screen's loop pulls.
 *
 *     if (replay_rewound(r))
 *         … forget everything that was shown …
 *     while (replay_next(r, now, &e, err) && e != NULL)
 *         … show e …
 *
 * Steps and jumps only set a target; the next calls of replay_next() hand out everything up to it at once, without
 * looking at the clock, so a loop may stop half-way to draw a frame and go on. A jump backwards starts again from the
 * first event: replay_rewound() says so, once.
 *
 * The time line is that of all runs one after another. */
#ifndef TRACES_REPLAY_H
#define TRACES_REPLAY_H

#include "traces/trace_pair.h"

#define REPLAY_SLOWEST 0.25
#define REPLAY_FASTEST 64.0

struct replay;

struct replay_status {
    bool playing, seeking, at_end; /* seeking: on the way to the target of a step or a jump */
    bool follows;                  /* somebody may still be writing it: behind its last event it waits for more */
    double speed;                  /* REPLAY_SLOWEST .. REPLAY_FASTEST */
    bool between_rounds;           /* the event handed out last ended a round, of all its sequences */
    uint64_t round, rounds;        /* whole rounds played so far, counted over all runs; in the trace */
    uint64_t t_us, duration_us;    /* on the time line */
    uint64_t run_us;               /* where the run that is played begins on it */
};

/* Paused, before the first event. */
bool replay_open(struct replay **, const char *folder, struct err *);
/* One that another process is writing, as `tail -F` does: what is there and what comes is handed out at once while it plays.
 * Who goes back plays at the trace's own pace until the end is reached again. It is at its end once it was closed. */
bool replay_follow(struct replay **, const char *folder, struct err *);
/* Two saved runs beside each other (trace_pair.h); all that follows concerns both. */
bool replay_open_pair(struct replay **, const struct saved_choice[2], struct err *);
void replay_close(struct replay *);
const struct run_info *replay_info(const struct replay *);
struct replay_status replay_status(const struct replay *);

/* Before anything was handed out: all events that there are by now, but for what layers and policies said, to whom they concern
 * beforehand. The play head stays at the start. Of one that is being written: none. */
bool replay_foresee(struct replay *, void (*take)(void *user, const struct event *), void *user, struct err *);

/* The next event that is due at the monotonic time now_us, or NULL; valid until the next call. False when the trace
 * turns out to be broken: it stays where it is, at its end. */
bool replay_next(struct replay *, uint64_t now_us, const struct event **, struct err *);
bool replay_rewound(struct replay *); /* true once after the play head went back to the start */

void replay_play(struct replay *, bool);        /* at the end: plays from the start again */
void replay_set_speed(struct replay *, double); /* clamped */
/* These pause. */
void replay_step_rounds(struct replay *, uint32_t n); /* to the end of the nth round from here */
void replay_step_token(struct replay *);              /* up to and with the next token event */
void replay_goto(struct replay *, uint64_t round);    /* to the end of a round; 0: before the first event; */
                                                      /* beyond the last one: the very end */
void replay_stop(struct replay *);                    /* where it is, behind the event that came last */
/* Goes on playing if it was. */
void replay_goto_fraction(struct replay *, double); /* of the duration; 0: the start, 1: the very end */

#endif
