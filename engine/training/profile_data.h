/* What a profile of Speculative Verification is made from (engine/model/trained/sv_profile.h): plain speculative
 * decoding of sample prompts, with a companion model that reads along. Of every round each draft is observed up to the
 * first rejection, that one with it.
 *
 * Greedy decoding (temperature 0): drafts are the draft model's first choices, A is 1 where the target's is the same,
 * and s and a are of the distributions at temperature 1, or both would be 0 or 1. */
#pragma once

#include "engine/model/trained/sv_profile.h"
#include "engine/training/reader.h"

struct profile_data_options {
    uint32_t prompt, response; /* tokens of a prompt at most, and of a response */
    uint32_t drafts;           /* of a round */
    struct sampling sampling;
    uint64_t seed;
    uint32_t sequences; /* prompts at a time, at most; 1 to READER_SEQUENCES */
};

struct profile_data;

/* The engine, which has a draft model and a companion, is borrowed. */
bool profile_data_open(struct profile_data **, const struct engine *, const struct profile_data_options *,
                       const atomic_bool *cancel, struct err *);
void profile_data_close(struct profile_data *);

struct profile_rounds { /* sums over all rounds so far */
    uint64_t rounds, drafted, accepted, emitted;
};

struct profile_prompt {
    uint64_t index; /* names its random numbers */
    const token_t *tokens;
    size_t n; /* 1 to options.prompt */
    /* What comes out: n_seen observations, into the caller's (response + drafts), and what the rounds came to. */
    struct sv_observation *seen;
    size_t n_seen;
    struct profile_rounds rounds;
};

/* Reads up to options.sequences prompts in shared passes. Each gives the counts that it would give alone. */
bool profile_data_prompts(struct profile_data *, struct profile_prompt *, size_t n, struct err *);
