/* A session: one prompt after another generated under one policy after another, on a thread of its own, telling all
 * through the event log and doing what controls ask for at its gates (before every layer for cancelling, at every proposal and
 * between rounds for the rest). */
#ifndef ENGINE_SESSION_SESSION_H
#define ENGINE_SESSION_SESSION_H

#include "engine/events/event.h"
#include "engine/events/run_info.h"
#include "engine/events/settings.h"
#include "engine/session/engine.h"
#include "engine/session/prompt.h"

struct knob_setting {
    char name[16];
    char text[32];
}; /* --set name=text */

struct prompt_text {
    const char *text; /* bytes; borrowed while a session is opened */
    size_t len;
};

#define BATCH_MOST 64 /* sequences at a time */

/* What policies have learned, for the next session on the same engine. It is zeroed at first; the sessions fill it. */
struct policy_memory {
    void **learned; /* (n) by policy, from policy_ops.save; NULL: nothing */
    uint32_t n;
};
void policy_memory_free(struct policy_memory *);

struct session_options {
    const struct policy_ops *const *policies; /* NULL-terminated registry */
    const char *policy;
    const char *prompt; /* bytes */
    size_t prompt_len;
    /* Several sequences, so many at a time; 0: one, which is no batch. */
    uint32_t batch;
    const struct prompt_text
        *prompts;             /* what they begin with, one after another, in place of `prompt`; NULL: all with */
    size_t n_prompts;         /* `prompt` */
    const char *prompts_path; /* the file that they are from, for what is told of the run; NULL: none */
    struct chat_setting chat;
    struct sampling sampling;
    uint64_t seed;
    uint32_t tokens; /* to generate after the prompt; 0: until EOS or the context's end */
    uint32_t ctx;    /* 0: the model's own */
    bool ignore_eos;
    enum probe_mode probe;
    enum head_mode head;          /* HEADS_TRAINED wants an engine that has some */
    struct policy_memory *memory; /* what policies have learned, read at the start and written at the end; or NULL */
    const struct knob_setting *set;
    size_t n_set;
    const char *versus; /* a second setting, as CONTROL_VERSUS has it; NULL: none */
    double pace;        /* tokens/s at most, for people who want to watch; 0: as fast as it goes */
    bool paused;        /* start paused, after prefill */
    bool stay;          /* at the end of a run wait for controls (the scope); else finish the log */
};

enum control_kind {
    CONTROL_PAUSE,
    CONTROL_RESUME,
    CONTROL_STEP_ROUNDS, /* n rounds, then pause */
    CONTROL_STEP_TOKEN,  /* to the next drafted or emitted token, then pause */
    CONTROL_BREAK,       /* pause after round n; 0 clears it */
    CONTROL_UNTIL,       /* text, as until.h has it: go on, and pause after the round in which it comes */
    CONTROL_KNOB,        /* name, text: of the policy, or of sampling (engine/events/sampling_knobs.h) */
    CONTROL_POLICY,      /* text */
    CONTROL_PROMPT,      /* text: a new run */
    CONTROL_RESTART,     /* same prompt: a new run */
    CONTROL_PROBE,       /* text: off, policy, all */
    CONTROL_HEAD,        /* text: policy, lens, trained */
    CONTROL_BASELINE,    /* run autoregressively, measure, compare; a round in which it stands is finished before */
    CONTROL_EXTEND,      /* n more tokens */
    CONTROL_PACE,        /* text: tokens/s, 0: as fast as it goes */
    CONTROL_NOTE,        /* text: about position n of sequence seq; "": it is taken back */
    /* text: "POLICY KNOB=VALUE … head=MODE", a second setting beside the one in force: a new run of the same prompt under both, as
     * sequences 0 and 1, in step by emitted token, a round of one at a time; knobs, policies and heads are then asked for by seq.
     * "off": a run under the first alone. Other knobs of the second are as in the first. */
    CONTROL_VERSUS,
    CONTROL_QUIT
};

struct control {
    enum control_kind kind;
    char name[16];
    const char *text; /* copied by session_post() */
    uint32_t n, seq;
};

#define SESSION_NOTE 200 /* bytes of a note at most, the terminating zero counted */

struct session;

/* Checks everything (knobs, policy, prompt against the context) before it starts anything. The engine is borrowed. */
bool session_open(struct session **, struct engine *, const struct session_options *, struct err *);
const struct run_info *session_info(const struct session *);
struct event_log *session_log(struct session *);
bool session_start(struct session *, struct err *); /* starts the thread; open readers and the trace before */
/* Any thread. False with one line when it cannot be done (an unknown knob, a bad value, a prompt that is too long). */
bool session_post(struct session *, const struct control *, struct err *);
/* What the next round of that sequence gets: session_post() has changed it by the time it returns. Any thread. */
void session_requested(struct session *, uint32_t seq, struct settings *out);
/* The head that these settings come to: "lens" or "trained"; "" where the model has no trained heads. */
const char *session_head(const struct session *, const struct settings *);
/* Threads that compute now: fewer than session_info()->threads while other processes need the processors. Any thread. */
uint32_t session_threads(const struct session *);
/* Does it generate, or will it once it has taken in what was posted? Any thread. */
bool session_moving(struct session *);
/* Has it done all that was posted, and sent all events of that? It then waits for the next control. Any thread. */
bool session_resting(struct session *);
bool session_failed(struct session *, struct err *); /* the engine failed: what it said; any thread */
void session_close(struct session *);                /* cancels, joins, frees; the log with it: close readers before */

#endif
