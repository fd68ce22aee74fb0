/* Generates one prompt to its end without the scope, for run and bench. */
#ifndef CLI_GENERATION_GENERATION_H
#define CLI_GENERATION_GENERATION_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/file_replace.h"
#include "cli/options/files.h"
#include "cli/options/options.h"
#include "engine/measure/estimate.h"
#include "engine/measure/metrics.h"
#include "engine/measure/positions.h"
#include "engine/session/session.h"

struct outcome_text { /* of a sequence */
    token_t *tokens;  /* (n_tokens) generated ones; owned */
    size_t n_tokens, room;
    struct tally total; /* of its rounds, with its shares of times and loads */
    struct positions positions;
    char end[64]; /* eos, tokens, context, cancelled, batch */
};

struct outcome {
    struct outcome_text *texts; /* (n_texts) by the number of the sequence; one without a batch; owned */
    size_t n_texts;
    struct metrics metrics;     /* over all of them, */
    struct positions positions; /* and acceptance by position; without rounds if there are two settings */
    struct round_sums sides[2]; /* of two settings, each one's, */
    struct paired paired;       /* and their comparison */
    char end[64];
    char policy[16];  /* the first setting's, at the end; "": that of the options */
    char choice[700]; /* why the session chose it (RECORDED_CHOICE); "": it was given */
    bool untraced;    /* its trace could not be written, or not to its end; the reason was printed */
};
void outcome_free(struct outcome *);
size_t outcome_tokens(const struct outcome *); /* of all texts */

/* {model, backend, policy, params, token_ids (of a batch: sequences), rounds, drafted, verified, accepted, emitted,
 * acceptance_rate, …} */
cJSON *outcome_json(const struct outcome *, const struct engine *, const struct session_options *);
/* The same for a server, without what only an engine has. */
cJSON *outcome_server_json(const struct outcome *, const struct run_info *);
void json_number(cJSON *to, const char *name, double value);      /* null if the value is not a number */
void json_estimate(cJSON *to, const char *name, struct estimate); /* the value, and its standard error as NAME_se */
void json_seed(cJSON *to, uint64_t seed);                         /* as text: a JSON number has 53 bits */
/* Prints an object that is not empty to a file, or stdout for "-", and deletes it. The first member in the file is the
 * version of the program, by which results_json_file recognises such a file. */
extern const struct file_kind results_json_file;
bool json_write(cJSON *, const char *path, struct err *);

double median(double *v, size_t n); /* the upper one of an even number; sorts v; n > 0 */

/* Loads the model, with a bar on stderr when it takes over half a second, and a line there if the engine has a note
 * (the scope shows that itself). */
bool generation_engine(const struct options *, struct engine **, struct err *);
/* Replaces the line of progress on a terminal's stderr: a bar and this text as ASCII, cut to the terminal's width. ""
 * removes it. */
void generation_progress(double share, const char *text);
/* Returns whether the model has a chat template that prompts do not go through, because --chat was not given. */
bool generation_chat_unused(const struct options *, const struct engine *);
/* Reads the bundled prompts for a race: for the program's own models those that they were trained for, and for other
 * models tasks of four categories. As prompts_read(). */
bool generation_tune_prompts(const struct options *, struct prompt_list *, struct err *);
/* Returns the session options; the policy is the first of options->policies. */
struct session_options generation_options(const struct options *);

/* Writes "exit_layer=3 gamma=5": names and values were checked and contain no quotes. Returns out. */
const char *generation_params(const struct knob_setting *, size_t n_set, char *out, size_t n);

/* Returns the prompts for one session; the caller frees the array, but not the texts. NULL: out of memory. */
struct prompt_text *generation_prompts(const struct prompt_list *, struct err *);

struct generation {
    struct live *live; /* an opened source, which the caller closes; NULL: a session with these options is opened */
    struct engine *engine;
    struct session_options session;
    const char *trace;          /* folder or NULL */
    struct trace_bounds bounds; /* … of it */
    bool trace_first;           /* fails if the trace cannot be begun */
    void (*token)(void *user, token_t,
                  enum token_source); /* every committed generated token of the first sequence; may be NULL */
    void (*left)(void *user, const struct outcome *); /* a sequence of a batch ended; may be NULL */
    /* Receives every event and may post controls. A source that stays ends by CONTROL_QUIT. May be NULL */
    void (*event)(void *user, const struct event *);
    void *user;
    bool progress; /* of a long prefill, on stderr */
};

/* Ctrl-C ends it early with end = "cancelled"; the outcome has the text so far. If a trace stops, a message is printed
 * and the run continues. */
bool generate(const struct generation *, struct outcome *, struct err *);

/* Makes Ctrl-C and SIGTERM set a flag, which ends generate(). */
void generation_catch_signals(void);
bool generation_interrupted(void);
const atomic_bool *generation_interruption(void); /* the flag, for computations without a session */

#endif
