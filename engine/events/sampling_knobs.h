/* How tokens are drawn, as knobs that every session has, whatever its policy: turned between rounds like a policy's, and
 * told by control events of their names, which no policy's knob may take. */
#ifndef ENGINE_EVENTS_SAMPLING_KNOBS_H
#define ENGINE_EVENTS_SAMPLING_KNOBS_H

#include "engine/events/policy.h"

enum { SAMPLING_TEMPERATURE, SAMPLING_TOP_K, SAMPLING_TOP_P, SAMPLING_SEED, SAMPLING_KNOBS };

extern const struct knob sampling_knobs[SAMPLING_KNOBS]; /* "temperature", "top_k", "top_p", "seed" */
/* What a slider of each spans, and its step: the usual values of what may also be more. */
struct sampling_span {
    double least, most, step;
};
extern const struct sampling_span sampling_spans[SAMPLING_KNOBS];

int sampling_knob_index(const char *name); /* -1: there is none. Names and symbols both match */
/* A number of single precision as the shortest decimal that means it: 0.7, not 0.699999988. */
double sampling_knob_get(const struct sampling *, uint64_t seed, int knob);
/* As an option has it: a seed to its last digit. */
void sampling_knob_text(const struct sampling *, uint64_t seed, int knob, char *out, size_t n);
void sampling_knob_set(struct sampling *, uint64_t *seed, int knob, double value);

#endif
