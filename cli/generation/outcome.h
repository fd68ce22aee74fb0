/* What came of one generation, and its JSON. */
#ifndef CLI_GENERATION_OUTCOME_H
#define CLI_GENERATION_OUTCOME_H

#include <cjson/cJSON.h>

#include "engine/events/metrics.h"
#include "engine/session/session.h"

struct outcome {
    token_t *tokens; /* (n_tokens) generated ones; owned */
    size_t n_tokens;
    struct metrics metrics;
    char end[64]; /* eos, tokens, context, cancelled */
};
void outcome_free(struct outcome *);

/* {model, backend, policy, params, token_ids, rounds, drafted, verified, accepted, emitted, acceptance_rate, …} */
cJSON *outcome_json(const struct outcome *, const struct engine *, const struct session_options *);
void json_number(cJSON *to, const char *name, double value); /* null where it is none */
/* Prints to a file, or stdout for "-". */
bool json_write(const cJSON *, const char *path, struct err *);

#endif
