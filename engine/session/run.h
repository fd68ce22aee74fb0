/* A run: prompts, and what is generated after them by as many sequences at a time as there are lanes. */
#ifndef ENGINE_SESSION_RUN_H
#define ENGINE_SESSION_RUN_H

#include <stdlib.h>

#include "engine/session/prompt.h"

struct left { /* a sequence whose lane another one took */
    uint32_t number;
    token_t *tokens;     /* (n) that it emitted; owned */
    uint32_t n;          /* */
    bool compared;       /* with its autoregressive tokens, */
    uint32_t differs_at; /* of which that one is another, from 0; UINT32_MAX: none */
};

struct run {
    uint32_t number;        /* from 1 */
    const char *cause;      /* start, restart, prompt */
    struct prompt *prompts; /* (n_prompts) owned */
    uint32_t n_prompts;
    uint32_t sequences; /* in all: sequence i begins with prompts[i], or where there is one prompt, with that */
    uint32_t joined;    /* of them, those that have begun */
    struct left *left;  /* (n_left) in the order in which they did; owned */
    uint32_t n_left;
    uint32_t wanted;   /* tokens that each emits; UINT32_MAX: no bound */
    bool sampled;      /* with a temperature, now or before */
    uint64_t start_us; /* by clock_us(); events count from it */
};

static inline const struct prompt *
run_prompt(const struct run *r, uint32_t sequence)
{
    return &r->prompts[r->n_prompts > 1 ? sequence : 0];
}

static inline void
run_forget_left(struct run *r)
{
    for (uint32_t i = 0; i < r->n_left; i++)
        free(r->left[i].tokens);
    free(r->left);
    r->left = NULL;
    r->n_left = 0;
}

/* The prompt is the run's now, in place of all others. */
static inline void
run_take_prompt(struct run *r, struct prompt *p)
{
    for (uint32_t i = 0; i < r->n_prompts; i++)
        prompt_free(&r->prompts[i]);
    r->prompts[0] = *p;
    r->n_prompts = 1;
    *p = (struct prompt){0};
}

#endif
