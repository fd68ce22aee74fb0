/* One prompt generated to its end without the scope, and what came of it: run and bench share this. */
#ifndef CLI_GENERATION_H
#define CLI_GENERATION_H

#include <cjson/cJSON.h>

#include "cli/options.h"
#include "engine/events/metrics.h"

struct outcome {
    token_t *tokens; /* (n_tokens) generated ones; owned */
    size_t n_tokens;
    struct metrics metrics;
    char end[64]; /* eos, tokens, context, cancelled */
};

/* Loads the model, with a bar on stderr when it takes over half a second, and a line there if the engine has a note
 * (the scope shows that itself). */
bool generation_engine(const struct options *, struct engine **, struct err *);
/* What a session needs from the options; the policy is the first of options->policies. */
struct session_options generation_options(const struct options *);

struct generation {
    struct engine *engine;
    struct session_options session;
    const char *trace;                                     /* folder or NULL */
    void (*token)(void *user, token_t, enum token_source); /* every committed generated token; may be NULL */
    void *user;
    bool progress; /* of a long prefill, on stderr */
};

/* False: *err. Ctrl-C ends it early with end = "cancelled"; what was generated is in the outcome. A trace that stopped
 * is said on stderr and does not fail the run. */
bool generate(const struct generation *, struct outcome *, struct err *);
void outcome_free(struct outcome *);

/* {model, backend, policy, params, token_ids, rounds, drafted, verified, accepted, emitted, acceptance_rate, …} */
cJSON *outcome_json(const struct outcome *, const struct engine *, const struct session_options *);
void json_number(cJSON *to, const char *name, double value); /* null where it is none */
/* Prints to a file, or stdout for "-". */
bool json_write(const cJSON *, const char *path, struct err *);

/* Ctrl-C and SIGTERM set a flag instead of ending the process; generate() looks at it. */
void generation_catch_signals(void);
bool generation_interrupted(void);

#endif
