/* Settings of a policy that can win a race (race.h): its defaults, and those with the fastest forecasts of what-if. */
#ifndef ENGINE_TUNE_CANDIDATES_H
#define ENGINE_TUNE_CANDIDATES_H

#include "engine/measure/layer_record.h"
#include "engine/tune/preset.h"

#define CANDIDATES_MOST 6 /* of a policy */

struct candidate {
    struct preset preset;     /* with all knobs */
    double forecast, ceiling; /* × plain decoding, means over the records (forecast_ceiling()); NAN: unknown */
    uint32_t draft, place;    /* the tuner's: the draft model; the place among the policy's settings with this one */
};

/* Writes up to CANDIDATES_MOST settings: the setting with the best forecast, the defaults, then
 * others by their forecast. Two of them differ by at least a tenth of the range of some knob. Values come from an
 * ascent, one knob after another, on the mean forecast over the records (of greedy text). Without a forecast, a policy
 * gets its defaults and then several draft lengths around the default, some of trees if it drafts trees
 * (policy_ops.length, breadth). `info` contains the declarations of the policy `ops`. Returns the number of
 * settings. */
uint32_t candidates_of(const struct policy_info *info, const struct policy_ops *ops, const struct layer_record *records,
                       uint32_t n, double rho, const struct cost_model *cost /* or NULL */,
                       struct candidate out[CANDIDATES_MOST]);
/* Returns the setting with these knob values; NULL: the defaults. */
struct preset candidate_preset(const struct policy_info *, const double *values);
/* Orders settings: the first one of each policy, then the second of each, and so on; of these the best one by forecast
 * first. Without a forecast, a setting counts as fast as plain decoding. */
void candidates_order(struct candidate *, uint32_t n);

#endif
