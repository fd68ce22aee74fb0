/* One prompt generated to its end without the scope: run and bench share this. */
#ifndef CLI_GENERATION_GENERATION_H
#define CLI_GENERATION_GENERATION_H

#include "cli/generation/outcome.h"
#include "cli/options/options.h"

/* Loads the model, with a bar on stderr when it takes over half a second, and a line there if the engine has a note
 * (the scope shows that itself). */
bool generation_engine(const struct options *, struct engine **, struct err *);
/* What a session needs from the options; the policy is the first of options->policies. */
struct session_options generation_options(const struct options *);

/* The prompts of a session that has them all; memory is the caller's, what it points to is not. NULL: out of memory. */
struct prompt_text *generation_prompts(char *const *prompts, size_t n, struct err *);

struct generation {
    struct engine *engine;
    struct session_options session;
    const char *trace;          /* folder or NULL */
    struct trace_bounds bounds; /* … of it */
    void (*token)(void *user, token_t,
                  enum token_source); /* every committed generated token of the first sequence; may be NULL */
    void (*left)(void *user, const struct outcome *); /* a sequence of a batch ended; may be NULL */
    void *user;
    bool progress; /* of a long prefill, on stderr */
};

/* False: *err. Ctrl-C ends it early with end = "cancelled"; what was generated is in the outcome. A trace that stopped
 * is said on stderr and does not fail the run. */
bool generate(const struct generation *, struct outcome *, struct err *);

/* Ctrl-C and SIGTERM set a flag instead of ending the process; generate() looks at it. */
void generation_catch_signals(void);
bool generation_interrupted(void);
const atomic_bool *generation_interruption(void); /* the flag, for what computes without a session */

#endif
