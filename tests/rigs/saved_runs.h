/* Traces of runs on tiny models, which tests compare with each other. */
#pragma once

#include "tests/rigs/session_fixture.h"

struct saved_runs {
    struct engine *engine, *other;
    char folder[256];
    char both[300];  /* specbound and layerskip with γ = 3 in a versus, 60 tokens each */
    char bound[300]; /* specbound, 40 tokens of the same prompt; τ changes to 0.3 after the fourth round */
    char skip[300];  /* layerskip with γ = 4, 60 tokens; below: for another prompt, on another model */
    char prompt[300], model[300];
};

/* Set-up and tear-down of a group: *state is a struct saved_runs. */
int saved_runs_open(void **state);
int saved_runs_close(void **state);
