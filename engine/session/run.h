/* A run: a prompt and the tokens that were made after it. */
#ifndef ENGINE_SESSION_RUN_H
#define ENGINE_SESSION_RUN_H

#include "engine/session/prompt.h"

struct run {
    uint32_t number;        /* from 1 */
    const char *cause;      /* start, restart, prompt */
    struct prompt prompt;   /* of this run; of the next one once that is asked for */
    token_t *tokens;        /* (ctx + 2) the prompt's and the emitted ones; the last is pending, once one is emitted */
    uint32_t n_tokens;      /* … at most ctx + 1 */
    uint32_t prompt_tokens; /* the first of them */
    uint32_t wanted;        /* tokens to emit; UINT32_MAX: no bound */
    uint64_t start_us;      /* by clock_us(); events count from it */
};

static inline uint32_t
run_emitted(const struct run *r)
{
    return r->n_tokens - r->prompt_tokens;
}

#endif
