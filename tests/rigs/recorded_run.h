/* Runs a session without a screen and keeps its events in memory. The oracles of the policies are computed from
 * them. */
#pragma once

#include "engine/session/session.h"

struct recorded_run {
    struct event *events; /* (n) owned; the texts and bytes that they pointed to are freed */
    size_t n, room;
    uint32_t prompt_tokens, layers;
};

/* Runs a session from its opening to its end. Returns false and writes a line to *err if it does not open, fails, or
 * memory runs out. */
bool record_run(struct engine *, const struct session_options *, struct recorded_run *, struct err *);
void recorded_run_free(struct recorded_run *);

/* Returns the value of a series in a round, or NAN if the round has none. */
double recorded_value(const struct recorded_run *, uint32_t round, const char *key, int index);
