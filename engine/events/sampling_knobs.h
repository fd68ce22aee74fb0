/* How tokens are drawn, as knobs that every session has, whatever its policy: turned between rounds like a policy's, and
 * told by control events of their names, which no policy's knob may take. */
#ifndef ENGINE_EVENTS_SAMPLING_KNOBS_H
#define ENGINE_EVENTS_SAMPLING_KNOBS_H

#include "engine/events/policy.h"

enum { SAMPLING_TEMPERATURE, SAMPLING_TOP_K, SAMPLING_TOP_P, SAMPLING_SEED, SAMPLING_KNOBS };

extern const struct knob sampling_knobs[SAMPLING_KNOBS]; /* "temperature", "top_k", "top_p", "seed" */

int sampling_knob_index(const char *name); /* -1: there is none. Names and symbols both match */
double sampling_knob_get(const struct sampling *, uint64_t seed, int knob);
void sampling_knob_set(struct sampling *, uint64_t *seed, int knob, double value);

#endif
