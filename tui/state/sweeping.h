/* A sweep on a live session: posts the requests of engine/events/knob_sweep.h, at full speed; restores speed and pause at the end. */
#ifndef TUI_STATE_SWEEPING_H
#define TUI_STATE_SWEEPING_H

#include "engine/events/knob_sweep.h"
#include "engine/session/session.h"

struct sweeping {
    struct session *session;  /* borrowed; NULL: a replay, which has no sweeps */
    struct knob_sweep *sweep; /* owned; NULL in a replay */
    double pace;              /* before the sweep */
    bool paused;
};

bool sweeping_open(struct sweeping *, struct session *, const struct run_info *, struct err *);
void sweeping_close(struct sweeping *);

/* The same as sweep_begin(), with the present pause and pace (0: full speed). */
bool sweeping_begin(struct sweeping *, const char *grid, char *const *prompts, size_t n_prompts,
                    const struct segments *, bool paused, double pace, struct err *);
void sweeping_event(struct sweeping *, const struct event *);
/* Posts the next requests. *over: the sweep has ended. Fails if it stopped because of an error; *over is set, too. */
bool sweeping_continue(struct sweeping *, bool *over, struct err *);
bool sweeping_stop(struct sweeping *, struct err *);
bool sweeping_now(const struct sweeping *); /* a sweep is running */
/* True if the control would disturb the measurements; the sweep is then stopped first. */
bool sweeping_disturbed_by(enum control_kind);

/* "sweep of 30 points: the best is tau=0.5 d_max=4, 410 ±6 tokens/s, clearly" */
void sweeping_summary(const struct sweeping *, char *out, size_t n);

#endif
