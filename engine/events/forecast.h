/* Forecasts of what-if (docs/methods.md: What-if): the measures of the simulated rounds of a policy over a layer record, with
 * their uncertainty, and the gain of one setting over another on the same text. */
#ifndef ENGINE_EVENTS_FORECAST_H
#define ENGINE_EVENTS_FORECAST_H

#include "engine/events/estimate.h"
#include "engine/events/layer_record.h"
#include "engine/events/policy.h"

#define FORECAST_DRAWS 5 /* of the words after wrong drafts */

struct forecast { /* NAN where not defined */
    float modelled, tokens_per_round, acceptance;
    float layers, heads; /* loads a token */
    float se;            /* of modelled: of the text and of the draws */
    uint32_t tokens;     /* simulated; 0: there is no forecast */
    /* What se is made of, kept for comparing two forecasts of the same text: */
    float draw[FORECAST_DRAWS]; /* modelled, of each draw */
    float block[RECORD_BLOCKS]; /* by how much each block of the text pulls modelled away from its mean */
};

/* Simulates rounds of the policy with these knob values over the record. False: the policy has no what-if, memory ran out, or
 * there are no rounds; *out has no forecast then. Any thread. */
bool forecast_make(const struct policy_ops *, const struct layer_record *, const double *values, double rho,
                   struct forecast *out);
/* By how much `other` has a larger modelled speedup than `now`; both are of the same record. */
struct estimate forecast_gain(const struct forecast *other, const struct forecast *now);
/* The lower end of the interval that holds 95% of such gains: above 0 where `other` is better beyond the uncertainty. */
double forecast_gain_least(const struct forecast *other, const struct forecast *now);

#endif
