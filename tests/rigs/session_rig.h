/* Sessions without a screen, for tests: runs one to its end, calls a hook on its events, and checks that they come in
 * the order of engine/events/event.h. */
#pragma once

#include "base/rng.h"
#include "engine/measure/metrics.h"
#include "engine/session/session.h"

/* Called on every event, on the thread that runs the rig; it may post controls. */
typedef void (*session_rig_hook)(void *user, struct live *, const struct event *);

struct session_rig_sequence {
    token_t *tokens; /* (n) generated in the last run; owned */
    size_t n, room;
    char left[16]; /* new text of its `left` control, in a batch */
};

struct session_rig_result {
    struct session_rig_sequence *sequences; /* (n_sequences) by number; owned */
    size_t n_sequences;
    const token_t *tokens; /* (n) tokens of the first sequence */
    size_t n;
    struct metrics metrics;
    char end[64]; /* new text of the last `end` control */
    uint64_t events;
    uint32_t runs;
    uint32_t ranked; /* rejections whose rank was compared with the drafter's list */
    char wrong[200]; /* the first broken promise about events, or "" */
};

/* Runs a session from its opening to the end of its log. Returns false and fills *err if it does not open or the engine
 * fails. */
bool session_rig_generate(struct engine *, const struct session_options *, session_rig_hook, void *user,
                          struct session_rig_result *, struct err *);
void session_rig_free(struct session_rig_result *);
bool session_rig_engine(struct engine **, const char *model_path, const char *backend, uint32_t threads, struct err *);
/* Opens an engine with a draft model: a path, "self:E" or "none". Draft models get a random acceptance head
 * (heads_rig.h). */
bool session_rig_engine_with(struct engine **, const char *model_path, const char *draft, const char *backend,
                             uint32_t threads, struct err *);
/* Opens an engine with any options, and with "check" as a further backend (check_backend.h). If there is a draft model,
 * the engine gets synthetic versions of everything else that policies need. */
bool session_rig_engine_open(struct engine **, const struct engine_options *, struct err *);

/* Waits until a started run has ended. Returns the number of tokens of its prompt. */
uint32_t session_rig_wait_end(struct live *);
/* Returns a value on the knob's grid; which: 0 the default, 1 the least, 2 the most, else random. */
double session_rig_knob_value(const struct knob *, int which, uint64_t *random);

#define SESSION_PROMPTS 20
extern const char *const session_prompts[SESSION_PROMPTS];
