/* Requests to a session, which carries them out between rounds or at once, and the owner that posts them for a sweep
 * (knob_sweep.h) or a tuner (tuner.h). */
#ifndef ENGINE_EVENTS_CONTROL_H
#define ENGINE_EVENTS_CONTROL_H

#include "base/err.h"
#include "engine/events/layer_record.h"

enum control_kind {
    CONTROL_PAUSE,
    CONTROL_RESUME,
    CONTROL_STEP_ROUNDS, /* n rounds, then pause */
    CONTROL_STEP_TOKEN,  /* to the next drafted or emitted token, then pause */
    CONTROL_BREAK,       /* pause after round n; 0 clears it */
    CONTROL_UNTIL,       /* text: a condition (until.h); resume, and pause after the round that meets it */
    CONTROL_KNOB, /* name, text: a knob of the policy, or of sampling (engine/events/sampling_knobs.h), and its value */
    CONTROL_POLICY,   /* text: its name */
    CONTROL_PROMPT,   /* text: a new run */
    CONTROL_RESTART,  /* same prompt: a new run */
    CONTROL_PROBE,    /* text: off, policy, all */
    CONTROL_HEAD,     /* text: policy, lens, trained */
    CONTROL_BASELINE, /* run autoregressively, measure and compare, after the present round */
    CONTROL_COSTS,    /* measure the costs of steps after the present round, unless they are known, and emit them */
    CONTROL_EXTEND,   /* n more tokens */
    CONTROL_PACE,     /* text: tokens/s at most, 0: no limit */
    CONTROL_RACE,     /* n: the following runs are those of a race; 0: they no longer are */
    CONTROL_NOTE,     /* text: a note about position n of sequence seq; "" removes it */
    /* text: "POLICY KNOB=VALUE … head=MODE", a second setting, whose other knobs are those of the first: a new run of the same prompt
     * under both, as sequences 0 and 1, which take turns, a round of one at a time. Changes of knobs, policies and heads then concern
     * sequence seq. "off": a new run under the first setting alone. */
    CONTROL_VERSUS,
    CONTROL_QUIT
};

struct control {
    enum control_kind kind;
    char name[16];
    const char *text; /* copied by session_post() */
    /* CONTROL_PROMPT in a chat: the messages before it, a JSON list of objects with `role` and `content`; a system message at its
     * beginning replaces --system. Copied; NULL: none */
    const char *before;
    uint32_t n, seq;
};

/* Functions of its owner that a sweep or a tuner calls to change settings and start runs. They return false with a
 * message on failure. */
struct run_host {
    void *user;
    /* Posts a control with this name and text; NULL: none. A sweep posts knobs, policies and runs (CONTROL_PROMPT,
     * CONTROL_RESTART), a tuner also CONTROL_PROBE and CONTROL_COSTS. */
    bool (*post)(void *user, enum control_kind, const char *name, const char *text, struct err *);
    /* of a tuner only: the layer record of the run that has just ended, false if there is none */
    bool (*record)(void *user, struct layer_record *);
    /* of a tuner with further draft models only: the next requests are for a session with this one, counted from 1; 0:
     * with the run's own */
    bool (*draft)(void *user, uint32_t draft, struct err *);
};

#endif
