/* A session is a live source (engine/events/live.h) that generates text on a thread of its own, prompt after prompt and
 * under changing settings. It emits events to a log, and carries out controls at its control points: at every draft and
 * between rounds. Cancelling takes effect before the next layer. */
#ifndef ENGINE_SESSION_SESSION_H
#define ENGINE_SESSION_SESSION_H

#include "engine/events/live.h"
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

/* State that policies have learned, for the next session on the same engine. It is zeroed at first; the sessions fill
 * it. */
struct policy_memory {
    void **learned; /* (n) by policy, from policy_ops.save; NULL: nothing */
    uint32_t n;
};
void policy_memory_free(struct policy_memory *);

struct session_options {
    const struct policy_ops *const *policies; /* NULL-terminated registry */
    const char *policy;                       /* a name, or POLICY_AUTO */
    const char *prompt;                       /* bytes */
    size_t prompt_len;
    uint32_t batch; /* sequences at a time; 0: one, which is no batch */
    const struct prompt_text
        *prompts; /* (n_prompts) of the sequences, in place of `prompt`; NULL: all begin with `prompt` */
    size_t n_prompts;
    const char *prompts_path; /* their file, for the description of the run; NULL: none */
    struct chat_setting chat;
    struct sampling sampling;
    uint64_t seed;
    uint32_t tokens; /* to generate after the prompt; 0: until EOS or the context's end */
    uint32_t ctx;    /* 0: the model's own */
    bool ignore_eos;
    enum probe_mode probe;
    uint32_t probe_percent;       /* PROBE_SHARE: of the time */
    enum head_mode head;          /* HEADS_TRAINED needs an engine with trained heads */
    struct policy_memory *memory; /* read at the start and written at the end; or NULL */
    const struct knob_setting *set;
    size_t n_set;
    const char *versus; /* a second setting, as the text of CONTROL_VERSUS; NULL: none */
    double pace;        /* tokens/s at most; 0: no limit */
    bool paused;        /* pause after prefill */
    bool stay;          /* wait for controls at the end of a run (the scope); else finish the log */
};

#define SESSION_NOTE 200 /* bytes of a note at most, with the terminating zero */

/* Checks everything (knobs, policy, prompt against the context) before it starts anything. The engine is borrowed. */
bool session_open(struct live **, struct engine *, const struct session_options *, struct err *);

#endif
