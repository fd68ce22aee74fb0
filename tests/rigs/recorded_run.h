/* A run without a screen, its events kept in memory: what the oracles of the policies are computed from. */
#ifndef TESTS_RIGS_RECORDED_RUN_H
#define TESTS_RIGS_RECORDED_RUN_H

#include "engine/session/session.h"

struct recorded_run {
    struct event *events; /* (n) owned; texts and bytes in them are gone */
    size_t n, room;
    uint32_t prompt_tokens, layers;
};

/* A session from opening to its end. False, with a line in *err: it did not open, failed, or memory ran out. */
bool record_run(struct engine *, const struct session_options *, struct recorded_run *, struct err *);
void recorded_run_free(struct recorded_run *);

/* Value of a series in a round; NAN when the round has none. */
double recorded_value(const struct recorded_run *, uint32_t round, const char *key, int index);

#endif
