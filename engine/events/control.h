/* Requests to a session, which carries them out between rounds or at once. */
#ifndef ENGINE_EVENTS_CONTROL_H
#define ENGINE_EVENTS_CONTROL_H

#include <stdint.h>

#include <stdint.h>

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
    CONTROL_PROBE,    /* text: off, policy, all, or a share such as 10% */
    CONTROL_HEAD,     /* text: policy, lens, trained */
    CONTROL_BASELINE, /* run autoregressively, measure and compare, after the present round */
    CONTROL_COSTS,    /* measure the costs of steps after the present round, unless they are known, and emit them */
    CONTROL_EXTEND,   /* n more tokens */
    CONTROL_PACE,     /* text: tokens/s at most, 0: no limit */
    CONTROL_RACE,     /* n: the following runs are those of a race; 0: they no longer are */
    CONTROL_NOTE,     /* text: a note about position n of sequence seq; "" removes it */
    /* text: "POLICY KNOB=VALUE … head=MODE", a second setting, whose other knobs are those of the first: a new run of
     * the same prompt under both, as sequences 0 and 1, which take turns, a round of one at a time. Changes of knobs,
     * policies and heads then concern sequence seq. "off": a new run under the first setting alone. */
    CONTROL_VERSUS,
    CONTROL_QUIT
};

struct control {
    enum control_kind kind;
    char name[16];
    const char *text; /* copied by post() */
    /* CONTROL_PROMPT in a chat: the messages before it, a JSON list of objects with `role` and `content`; a system
     * message at its beginning replaces --system. Copied; NULL: none */
    const char *before;
    uint32_t n, seq;
};

#endif
