/* Settings of a policy that can win a race (race.h): its defaults, and those with the fastest forecasts of what-if. */
#ifndef ENGINE_EVENTS_CANDIDATES_H
#define ENGINE_EVENTS_CANDIDATES_H

#include "engine/events/layer_record.h"
#include "engine/events/preset.h"

#define CANDIDATES_MOST 6 /* of a policy */

/* Writes up to CANDIDATES_MOST presets, each with all knobs: the setting with the best forecast, the defaults, then
 * others by their forecast. Two of them differ by at least a tenth of the range of some knob. Values come from an
 * ascent, one knob after another, on the mean forecast over the records (of greedy text). Without a forecast, a policy
 * gets its defaults and then several draft lengths around the default, some of trees if it drafts trees
 * (policy_ops.length, breadth). `info` contains the declarations of the policy `ops`. Returns the number of presets. */
uint32_t candidates_of(const struct policy_info *info, const struct policy_ops *ops, const struct layer_record *records,
                       uint32_t n, double rho, const struct cost_model *cost /* or NULL */,
                       struct preset out[CANDIDATES_MOST]);

#endif
