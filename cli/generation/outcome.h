/* What came of one generation, and its JSON. */
#ifndef CLI_GENERATION_OUTCOME_H
#define CLI_GENERATION_OUTCOME_H

#include <cjson/cJSON.h>

#include "engine/base/file_replace.h"
#include "engine/events/metrics.h"
#include "engine/events/paired.h"
#include "engine/session/session.h"

struct outcome_text { /* of a sequence */
    token_t *tokens;  /* (n_tokens) generated ones; owned */
    size_t n_tokens, room;
    char end[64]; /* eos, tokens, context, cancelled, batch */
};

struct outcome {
    struct outcome_text *texts; /* (n_texts) by the sequence's number; one where there is no batch; owned */
    size_t n_texts;
    struct metrics metrics;     /* over all of them */
    struct round_sums sides[2]; /* of two settings, each one's, */
    struct paired paired;       /* and both held against each other */
    char end[64];
    bool untraced; /* its trace could not be written, or not to its end; that was said */
};
void outcome_free(struct outcome *);
size_t outcome_tokens(const struct outcome *); /* of all texts */

/* {model, backend, policy, params, token_ids (of a batch: sequences), rounds, drafted, verified, accepted, emitted, acceptance_rate, …} */
cJSON *outcome_json(const struct outcome *, const struct engine *, const struct session_options *);
void json_number(cJSON *to, const char *name, double value); /* null where it is none */
/* Prints an object that is not empty to a file, or stdout for "-". Its first member says which version of the program made it, by
 * which results_json_file recognises such a file. */
extern const struct file_kind results_json_file;
bool json_write(const cJSON *, const char *path, struct err *);

#endif
