/* Lossless, for as long as one likes: cases drawn at random, each a model on a backend and some runs on it, whose greedy
 * tokens are held to those of autoregressive decoding, bit for bit, and whose sampled ones to those of the same run again, on
 * another number of threads or in a batch. A case is a function of a seed and a number, so that what fails can be repeated. */
#ifndef TESTS_SOAK_SOAK_H
#define TESTS_SOAK_SOAK_H

#include "tests/rigs/session_rig.h"

#define SOAK_PROMPTS 6

/* ---- what a case is about (soak_models.c) ---- */

struct soak_model {
    char path[160], draft[160], heads[176]; /* heads: "": none were written beside it */
    char name[80];                          /* for who is told of it */
    bool made;                              /* path and draft are temporary files */
    bool synth, quantize, exact;
    bool slow;                 /* runs are short */
    const char *backend, *isa; /* isa NULL: the backend has its own */
    uint32_t prompt_rows;
};

/* May fail for what has nothing to do with losslessness: a disk that is full. */
bool soak_model_draw(struct soak_model *, bool cuda, uint64_t *random, struct err *);
void soak_model_remove(const struct soak_model *); /* its temporary files */
bool soak_model_engine(const struct soak_model *, uint32_t threads, struct engine **, struct err *);

/* ---- a run (soak_play.c) ---- */

struct soak_texts {
    char *prompt[SOAK_PROMPTS]; /* owned */
    size_t n;
    uint32_t tokens;               /* that runs are asked for; references have twice as many, or end with the context */
    token_t *greedy[SOAK_PROMPTS]; /* (n_greedy) autoregressive; owned */
    size_t n_greedy[SOAK_PROMPTS];
};

enum soak_pace { SOAK_ALONE, SOAK_STEPS, SOAK_FREE }; /* nobody turns anything; between steps; whenever */

struct soak_play {
    const struct soak_texts *texts;
    enum soak_pace pace;
    bool greedy;     /* tokens are those of texts->greedy */
    bool top_one;    /* … although drawn: among one */
    bool ignore_eos; /* as in the session's options */
    uint32_t batch;
    uint32_t actions; /* after a run's end: extensions, restarts, other prompts, a versus, a baseline */
    uint64_t random;

    /* soak_play_watch()'s own */
    struct session_rig_result *out; /* where the rig collects */
    const struct tokenizer *tokenizer;
    uint32_t policy[2], wanted;
    size_t prompt, next_prompt, compared[BATCH_MOST];
    bool versus, next_versus, coming, extended; /* coming: a run that was asked for and has not begun */
    uint64_t tokens, turns, runs;
    char wrong[400]; /* the first difference, or "" */
};

/* The hook of session_rig_generate(), `user` is the play. */
void soak_play_watch(void *user, struct session *, const struct event *);

/* ---- a case (soak_case.c) ---- */

struct soak_count {
    uint64_t cases, runs, tokens, repeated, turns; /* tokens compared with autoregressive ones, with a run's again */
};

struct soak {
    uint64_t seed;
    bool cuda, spoil; /* spoil: the reference is changed in one place, so that a difference must be found */
    struct soak_count count;
    char about[400]; /* the case and the run at hand, for who is told that it failed */
};

/* False: *err is the difference, or what failed. */
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

#endif
