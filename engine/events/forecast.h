/* Forecasts of what-if (docs/methods.md: What-if): the measures of the simulated rounds of a policy over a layer record, with
 * their uncertainty, and the gain of one setting over another on the same text. */
#ifndef ENGINE_EVENTS_FORECAST_H
#define ENGINE_EVENTS_FORECAST_H

#include "engine/events/estimate.h"
#include "engine/events/layer_record.h"
#include "engine/events/policy.h"
#include "engine/events/segments.h"

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

/* Effects of changed settings on the same tokens (docs/methods.md: The ledger). Two segments of a run have different texts, so their
 * measures cannot be compared. The text of a segment is kept as forecasts instead: of its own setting, and of the settings of the
 * segments before it. The difference of two forecasts on one text has neither the text in it nor the machine. */

#define EFFECT_SETTINGS 12 /* of a text, the segment's own first */
#define EFFECT_TOKENS   24 /* a text has at least so many */

struct effect_text { /* the text of a segment */
    uint32_t number; /* the segment's */
    uint32_t tokens; /* of it, which the forecasts are of */
    uint32_t looked; /* segments that were looked at: this one, and those before it */
    uint32_t n;      /* 0: there are no forecasts */
    struct {
        uint32_t number; /* a segment that has the setting */
        struct forecast of;
    } setting[EFFECT_SETTINGS];
};

struct effects {                       /* zeroed: of no segment */
    struct effect_text text[SEGMENTS]; /* segment number i's at i % SEGMENTS */
};

/* The policy that can simulate what the run says of it; NULL: there is none. */
typedef const struct policy_ops *(*effects_ops)(const struct policy_info *, const struct run_info *);

/* The rows of a record over the tokens at positions from to `to` (not counted), borrowed from the record. False: it has fewer than
 * EFFECT_TOKENS of them. */
bool effects_part(const struct layer_record *, uint32_t from, uint32_t to, struct layer_record *part);
/* Forecasts one more setting on the part, the segment's own first; `text` is zeroed before the first one. False: that was the last. */
bool effects_forecast(struct effect_text *text, const struct segments *, const struct segment *of,
                      const struct run_info *, effects_ops, const struct layer_record *part);
/* By how much per cent the setting of `a` has a larger modelled speedup than that of `b`: by the forecasts on the text of the later
 * one or else of the other one, or where both generated the same tokens by the weights that they read. NAN and
 * DIFFERENCE_UNKNOWN: only their own, different texts are known. */
struct difference effects_difference(const struct effects * /* or NULL */, const struct segments *,
                                     const struct run_info *, const struct segment *a, const struct segment *b);

#endif
