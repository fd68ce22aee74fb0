/* What a `versus` control says: the second setting of a run. */
#ifndef ENGINE_EVENTS_VERSUS_TEXT_H
#define ENGINE_EVENTS_VERSUS_TEXT_H

#include "engine/events/run_info.h"

/* "layerskip exit_layer=4": the policy's index, and its knobs among `values` (n_policies * POLICY_KNOBS), which were the first
 * setting's. What it knows nothing of it passes over; n_policies: an unknown policy. */
uint32_t versus_read(const struct run_info *, const char *text, double *values);

/* The same written: the policy and all in which its knobs differ from the first setting's. Both are that
 * policy's own (POLICY_KNOBS). */
#define VERSUS_TEXT_MOST (16 + POLICY_KNOBS * 56 + 16) /* with " head=MODE" behind it */
void versus_print(const struct policy_info *, const double *first, const double *second, char out[VERSUS_TEXT_MOST]);

#endif
