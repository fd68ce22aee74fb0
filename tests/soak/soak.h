/* Soak test of losslessness, for any length of time. Cases are drawn at random: each is a model on a backend and some
 * runs on it. Greedy tokens must equal those of autoregressive decoding, bit for bit; sampled tokens must equal those
 * of the same run repeated on another number of threads or in a batch. A case is a function of a seed and a number, so
 * that a failure can be repeated. */
#pragma once

#include "tests/rigs/session_rig.h"

#define SOAK_PROMPTS 6

/* ---- the model of a case (soak_models.c) ---- */

struct soak_model {
    char path[160], draft[160], heads[176]; /* heads: "": no heads were written for the model */
    char name[80];                          /* for messages */
    bool made;                              /* path and draft are temporary files */
    bool synth, quantize, exact;
    bool slow;                 /* runs are short */
    const char *backend, *isa; /* isa NULL: the backend's default */
};

/* Draws a model. Can fail for reasons other than losslessness, such as a full disk. */
bool soak_model_draw(struct soak_model *, bool cuda, uint64_t *random, struct err *);
void soak_model_remove(const struct soak_model *); /* removes its temporary files */
bool soak_model_engine(const struct soak_model *, uint32_t threads, struct engine **, struct err *);

/* ---- a run (soak_play.c) ---- */

struct soak_texts {
    char *prompt[SOAK_PROMPTS]; /* owned */
    size_t n;
    uint32_t tokens; /* requested of each run; references have twice as many, unless the context ends earlier */
    token_t *greedy[SOAK_PROMPTS]; /* (n_greedy) autoregressive; owned */
    size_t n_greedy[SOAK_PROMPTS];
};

enum soak_pace { SOAK_ALONE, SOAK_STEPS, SOAK_FREE }; /* knobs do not change; change between steps; at any time */

struct soak_play {
    const struct soak_texts *texts;
    enum soak_pace pace;
    bool greedy;     /* tokens are those of texts->greedy */
    bool top_one;    /* the same, with tokens drawn from a single candidate */
    bool ignore_eos; /* as in the session's options */
    uint32_t batch;
    uint32_t actions; /* after a run's end: extensions, restarts, other prompts, a versus, a baseline */
    uint64_t random;

    /* used by soak_play_watch() only */
    struct session_rig_result *out; /* the rig's results */
    const struct tokenizer *tokenizer;
    uint32_t policy[2], wanted;
    size_t prompt, next_prompt, compared[BATCH_MOST];
    bool versus, next_versus, coming, extended; /* coming: a requested run that has not begun */
    uint64_t tokens, turns, runs;
    char wrong[400]; /* the first difference, or "" */
};

/* The hook of session_rig_generate(), `user` is the play. */
void soak_play_watch(void *user, struct live *, const struct event *);

/* ---- a case (soak_case.c) ---- */

struct soak_count {
    uint64_t cases, runs, tokens, repeated, turns; /* tokens compared with autoregressive ones; with a second run */
};

struct soak {
    uint64_t seed;
    bool cuda, spoil; /* spoil: the reference is changed in one place, and the test must find the difference */
    struct soak_count count;
    char about[400]; /* the current case and run, for the message of a failure */
};

/* Returns false and writes the difference or the failure to *err. */
bool soak_case(struct soak *, uint64_t number, struct err *);

/* ---- random choices ---- */

static inline uint32_t
soak_below(uint64_t *random, uint32_t n)
{
    return (uint32_t)(splitmix64(random) % n);
}

static inline bool
soak_chance(uint64_t *random, uint32_t percent)
{
    return soak_below(random, 100) < percent;
}
