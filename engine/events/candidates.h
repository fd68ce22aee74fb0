/* Settings of a policy that can win a race (race.h): its defaults, and those with the fastest forecasts of what-if. */
#ifndef ENGINE_EVENTS_CANDIDATES_H
#define ENGINE_EVENTS_CANDIDATES_H

#include "engine/events/layer_record.h"
#include "engine/events/preset.h"

#define CANDIDATES_MOST 6 /* of a policy */

/* Writes up to CANDIDATES_MOST presets, the defaults first, each with all knobs; two of them differ by at least a
 * tenth of the range of some knob. Values come from an ascent, one knob after another, on the mean forecast over the
 * records (of greedy text). A policy without what-if gets several values of its knob `k` instead, if it has one.
 * Returns the number of presets. */
uint32_t candidates_of(const struct policy *, const struct layer_record *records, uint32_t n, double rho,
                       const struct cost_model * /* or NULL */, struct preset out[CANDIDATES_MOST]);

#endif
