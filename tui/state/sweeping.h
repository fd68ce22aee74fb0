/* A sweep on a live session: what engine/events/knob_sweep.h asks for is posted, as fast as it goes; speed and pause are
 * afterwards as they were. */
#ifndef TUI_STATE_SWEEPING_H
#define TUI_STATE_SWEEPING_H

#include "engine/events/knob_sweep.h"
#include "engine/session/session.h"

struct sweeping {
    struct session *session;  /* borrowed; NULL: a replay, which has no sweeps */
    struct knob_sweep *sweep; /* owned; NULL likewise */
    double pace;              /* as they were */
    bool paused;
};

bool sweeping_open(struct sweeping *, struct session *, const struct run_info *, struct err *);
void sweeping_close(struct sweeping *);

/* As sweep_begin(), with what is running: whether it is paused, and what it is slowed down to (0: not). */
bool sweeping_begin(struct sweeping *, const char *grid, char *const *prompts, size_t n_prompts,
                    const struct segments *, bool paused, double pace, struct err *);
void sweeping_event(struct sweeping *, const struct event *);
/* Posts what is due. *over: with that it has come to its end. False with a line: it stopped, which is *over, too. */
bool sweeping_go_on(struct sweeping *, bool *over, struct err *);
bool sweeping_stop(struct sweeping *, struct err *);
bool sweeping_now(const struct sweeping *); /* one is under way */
/* Would it change what the sweep measures? Then it is stopped before. */
bool sweeping_disturbed_by(enum control_kind);

/* "sweep of 30 points: the best is tau=0.5 d_max=4, 410 ±6 tokens/s, clearly" */
void sweeping_say(const struct sweeping *, char *out, size_t n);

#endif
