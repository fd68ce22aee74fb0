/* Traces of runs on tiny models, to be set beside each other. */
#ifndef TESTS_RIGS_SAVED_RUNS_H
#define TESTS_RIGS_SAVED_RUNS_H

#include "tests/rigs/session_fixture.h"

struct saved_runs {
    struct engine *engine, *other;
    char folder[256];
    char both[300];  /* specbound, and layerskip with γ = 3 beside it, 60 tokens each */
    char bound[300]; /* specbound, whose τ is turned to 0.3 after the fourth round, 40 tokens of the same prompt; */
    char skip[300];  /* layerskip with γ = 4, 60 tokens; that from another prompt, and of another model */
    char prompt[300], model[300];
};

/* A group's set-up and tear-down: *state is a struct saved_runs. */
int saved_runs_open(void **state);
int saved_runs_close(void **state);

#endif
