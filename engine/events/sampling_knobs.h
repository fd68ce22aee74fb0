/* Sampling parameters as knobs that every session has, for all policies. They change between rounds as a policy's
 * knobs do, and are recorded by control events of their names, which no policy's knob may have. */
#ifndef ENGINE_EVENTS_SAMPLING_KNOBS_H
#define ENGINE_EVENTS_SAMPLING_KNOBS_H

#include "engine/events/policy.h"

enum { SAMPLING_TEMPERATURE, SAMPLING_TOP_K, SAMPLING_TOP_P, SAMPLING_SEED, SAMPLING_KNOBS };

extern const struct knob sampling_knobs[SAMPLING_KNOBS]; /* "temperature", "top_k", "top_p", "seed" */
/* Range and step of a slider: the usual values. Larger ones may be valid, too. */
struct sampling_span {
    double least, most, step;
};
extern const struct sampling_span sampling_spans[SAMPLING_KNOBS];

int sampling_knob_index(const char *name); /* -1: unknown. Names and symbols both match */
/* Returns a number of single precision as the nearest short decimal: 0.7, not 0.699999988. */
double sampling_knob_get(const struct sampling *, uint64_t seed, int knob);
/* Writes the value in the form of an option, with all digits of a seed. */
void sampling_knob_text(const struct sampling *, uint64_t seed, int knob, char *out, size_t n);
void sampling_knob_set(struct sampling *, uint64_t *seed, int knob, double value);

#endif
