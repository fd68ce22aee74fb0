/* Plays a trace at its own pace, faster, or step by step: returns the events that are due, in the order of the live
 * run. It has no thread; the main loop calls it.
 *
 *     if (replay_rewound(r))
 *         … forget all events …
 *     while (replay_next(r, now, &e, err) && e != NULL)
 *         … show e …
 *
 * Steps and jumps set a target. The next calls of replay_next() return all events up to it without waiting, and the
 * loop may draw a frame in between. A jump backwards starts again at the first event; replay_rewound() then returns
 * true once.
 *
 * All runs follow one another on the time line. */
#pragma once

#include "traces/trace_pair.h"

#define REPLAY_SLOWEST 0.25
#define REPLAY_FASTEST 64.0

struct replay;

struct replay_status {
    bool playing, seeking, at_end; /* seeking: on the way to the target of a step or a jump */
    bool follows;                  /* another process may still write the trace, so it waits for more events */
    double speed;                  /* REPLAY_SLOWEST .. REPLAY_FASTEST */
    bool between_rounds;           /* the last returned event ended a round of all sequences */
    uint64_t round, rounds;        /* complete rounds played so far, over all runs, and in the trace */
    uint64_t t_us, duration_us;    /* on the time line */
    uint64_t run_us;               /* the beginning of the current run on it */
};

/* Opens a trace, paused before its first event. follow: another process is writing it. While it plays, existing and new
 * events are returned at once. After a jump back it plays at the trace's pace until it reaches the last event again. It
 * ends when the trace is closed. */
bool replay_open(struct replay **, const char *folder, bool follow, struct err *);
/* Opens two saved runs as one (trace_pair.h). */
bool replay_open_pair(struct replay **, const struct saved_choice[2], struct err *);
void replay_close(struct replay *);
const struct run_info *replay_info(const struct replay *);
struct replay_status replay_status(const struct replay *);

/* Before the first replay_next(): passes all events except LAYER, EXPERTS and SERIES to `take`; the play head stays at
 * the start. A trace that is being written passes none. */
bool replay_foresee(struct replay *, void (*take)(void *user, const struct event *), void *user, struct err *);

/* The next event that is due at the monotonic time now_us, or NULL; valid until the next call. Fails if the trace is
 * broken, and then stays at its end. */
bool replay_next(struct replay *, uint64_t now_us, const struct event **, struct err *);
bool replay_rewound(struct replay *); /* true once after the play head went back to the start */

void replay_play(struct replay *, bool);        /* at the end it plays from the start again */
void replay_set_speed(struct replay *, double); /* clamped */
/* These also pause. A step during a step continues from the latter's target. */
void replay_step_rounds(struct replay *, uint32_t n); /* to the end of the nth round from here */
void replay_step_token(struct replay *);              /* up to and with the next token event */
void replay_goto(struct replay *, uint64_t round);    /* to the end of a round; 0: before the first event; */
                                                      /* after the last one: the end of the trace */
void replay_stop(struct replay *);                    /* stops after the last returned event */
/* Continues to play if it was playing. */
void replay_goto_fraction(struct replay *, double); /* of the duration; 0: the start, 1: the very end */
