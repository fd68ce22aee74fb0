/* Forecasts of what-if (docs/forecasts.md: What-if): the measures of the simulated rounds of a policy over a layer
 * record, with their uncertainty, and the gain of one setting over another on the same text. */
#pragma once

#include "engine/events/policy.h"
#include "engine/measure/estimate.h"
#include "engine/measure/layer_record.h"
#include "engine/measure/segments.h"

#define FORECAST_DRAWS 5 /* draws of the predictions after wrong drafts */

struct forecast {  /* NAN where not defined */
    float speedup; /* in time on this machine, or else by the weights that are read */
    bool in_time;  /* it is in time */
    float modelled, tokens_per_round, acceptance;
    float layers, heads; /* loads per token */
    /* Per token: drafts, rounds with drafts, accepted drafts, rounds with a rejection, tally.exit_layers. */
    float drafted, drafting, accepted, rejected, exit_layers;
    float us[COST_PHASES]; /* time per token by phase, with in_time */
    float autoregressive;  /* time per token of autoregressive decoding, with in_time */
    float se;              /* standard error of speedup, of the text, the draws and the cost model */
    uint32_t tokens;       /* number of simulated tokens; 0: there is no forecast */
    /* The parts of se that two forecasts of the same text do not share: */
    float draw[FORECAST_DRAWS]; /* speedup, of each draw */
    float block[RECORD_BLOCKS]; /* influence of each part of the text on the mean of speedup */
};

extern const struct forecast forecast_none; /* all NAN */
/* Simulates rounds of the policy with these knob values over the record. The forecast is in time if there is a cost
 * model (or NULL) with the costs of all steps. Returns false, without a forecast in *out, if the policy has no what-if,
 * memory runs out, or there are no rounds. Any thread may call it. */
bool forecast_make(const struct policy_ops *, const struct layer_record *, const double *values, double rho,
                   const struct cost_model *, struct forecast *out);
/* Returns the only value of the knob draft_vocab with a forecast: the policy drafts with layers, and the record's cells
 * are over this draft vocabulary. 0: all values have one. */
uint32_t forecast_base(const struct policy_ops *, const struct layer_record *);
/* Simulates the rounds of one draw, 0 to FORECAST_DRAWS - 1. Returns false as forecast_make() does. */
bool forecast_simulate(const struct policy_ops *, const struct layer_record *, const double *values, uint32_t draw,
                       struct record_loads *, struct tally *);
/* Returns the speedup in time if the target accepted every draft that the policy makes with these knob values over the
 * record: no text like it makes the setting faster. NAN: unknown, because there are no costs, no drafts, or drafts that
 * depend on the text's own words. */
double forecast_ceiling(const struct policy_ops *, const struct layer_record *, const double *values, double rho,
                        const struct cost_model *);
/* Returns the speedup of `other` minus that of `now`; both are of the same record, in time or not. The samples are
 * blocks of the text. */
struct estimate forecast_gain(const struct forecast *other, const struct forecast *now);
/* Is `other` better: by FORECAST_LEAST_GAIN at least, and with a 95% interval of the gain above 0? */
#define FORECAST_LEAST_GAIN 0.02
bool forecast_better(const struct forecast *other, const struct forecast *now);

/* Effects of changed settings on the same tokens (docs/methods.md: The ledger). Two segments of a run have different
 * texts, so their measures cannot be compared. Instead, forecasts are stored for the text of a segment: of its own
 * setting, and of the settings of the segments before it. The difference of two forecasts on one text does not depend
 * on the choice of text or on the machine. */

#define EFFECT_SETTINGS 12 /* of a text; the segment's own setting is first */
#define EFFECT_TOKENS   24 /* minimum of a text */

struct effect_text { /* the text of a segment */
    uint32_t number; /* number of the segment */
    uint32_t tokens; /* tokens of it that the forecasts simulate */
    uint32_t looked; /* segments inspected: this one, and those before it */
    uint32_t n;      /* 0: there are no forecasts */
    struct {
        uint32_t number; /* number of a segment with the setting */
        struct forecast of;
    } setting[EFFECT_SETTINGS];
};

struct effects {                       /* zeroed: of no segment */
    struct effect_text text[SEGMENTS]; /* segment number i is at i % SEGMENTS */
};

/* Returns the policy that can simulate a policy of the run; NULL: none. */
typedef const struct policy_ops *(*effects_ops)(const struct policy_info *, const struct run_info *);

/* Selects the rows of a record over the tokens at positions `from` to `to` (exclusive), borrowed from the record.
 * Returns false for fewer than EFFECT_TOKENS rows. */
bool effects_part(const struct layer_record *, uint32_t from, uint32_t to, struct layer_record *part);
/* Forecasts one more setting on the part, the segment's own first. Zero `text` before the first call. Returns false
 * after the last one. */
bool effects_forecast(struct effect_text *text, const struct segments *, const struct segment *of,
                      const struct run_info *, effects_ops, const struct layer_record *part);
/* Returns by how many per cent the modelled speedup of the setting of `a` is larger than that of `b`. Uses the
 * forecasts on the text of the later segment, or else of the earlier one, or the weights read if both generated the
 * same tokens. Returns NAN and DIFFERENCE_UNKNOWN if only measures of different texts are known. */
struct difference effects_difference(const struct effects * /* or NULL */, const struct segments *,
                                     const struct run_info *, const struct segment *a, const struct segment *b);
