/* What a profile of Speculative Verification is made from (engine/model/sv_profile.h): plain speculative decoding of sample
 * prompts, with a companion model that reads along. Of every round each draft is observed up to the first rejection, that one
 * with it.
 *
 * Greedy decoding (temperature 0): drafts are the draft model's first choices, A is 1 where the target's is the same, and s
 * and a are of the distributions at temperature 1, or both would be 0 or 1. */
#ifndef ENGINE_TRAINING_PROFILE_DATA_H
#define ENGINE_TRAINING_PROFILE_DATA_H

#include "engine/model/sv_profile.h"
#include "engine/session/engine.h"

struct profile_data_options {
    uint32_t prompt, response; /* tokens of a prompt at most, and of a response */
    uint32_t drafts;           /* of a round */
    struct sampling sampling;
    uint64_t seed;
};

struct profile_data;

/* The engine, which has a draft model and a companion, is borrowed. */
bool profile_data_open(struct profile_data **, const struct engine *, const struct profile_data_options *,
                       const atomic_bool *cancel, struct err *);
void profile_data_close(struct profile_data *);

struct profile_rounds { /* what was seen, added up */
    uint64_t rounds, drafted, accepted, emitted;
};

/* One prompt of n <= options.prompt tokens, `index` naming its random numbers. out: room for response + drafts observations;
 * *n_out of them. */
bool profile_data_prompt(struct profile_data *, uint64_t index, const token_t *prompt, size_t n,
                         struct sv_observation *out, size_t *n_out, struct profile_rounds *, struct err *);

#endif
