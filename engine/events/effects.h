/* Effects of changed settings on the same tokens (docs/methods.md: The ledger). Two segments of a run have different texts, so their
 * measures cannot be compared. The text of a segment is kept as forecasts instead: of its own setting, and of the settings of the
 * segments before it. The difference of two forecasts on one text has neither the text in it nor the machine. */
#ifndef ENGINE_EVENTS_EFFECTS_H
#define ENGINE_EVENTS_EFFECTS_H

#include "engine/events/forecast.h"
#include "engine/events/segments.h"

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
