/* Two settings that generate the same text in turns, compared segment by segment. Both sequences have the same tokens (greedy
 * decoding is lossless) and run beside each other, so what a text costs and what slows the machine down is the same for both
 * within a segment. A sample is a segment: tokens between two places where a round of either setting ends, at least
 * PAIRED_TOKENS of them. Segments are whole rounds of both, so their times share nothing and count as independent. */
#ifndef ENGINE_EVENTS_PAIRED_H
#define ENGINE_EVENTS_PAIRED_H

#include "engine/events/estimate.h"
#include "engine/events/event.h"

#define PAIRED_TOKENS 8  /* a segment has at least so many tokens */
#define PAIRED_MOST   16 /* where no rounds end together within so many, the longer round is divided in proportion */

struct paired {                /* zeroed: nothing */
    bool partial;              /* the segment began before a setting changed */
    struct ratio_sums seconds; /* of the first setting over those of the second: a sample is a segment */
    struct {
        double tokens, seconds;           /* since the last segment's end */
        double last_tokens, last_seconds; /* of the newest round */
    } side[2];
    double from, to; /* tokens before the newest segment and at its end, counted from the first round that was added */
    double y, x;     /* the newest segment's sample */
};

/* Adds a round of a setting (0, 1); rounds must come as they ran, each of the setting that has emitted fewer tokens. Returns true
 * if it completes a segment that counts. */
bool paired_add(struct paired *, uint32_t side, const struct round_event *);
/* Forgets all segments: a setting has changed. The one in which it changed counts for neither. */
void paired_restart(struct paired *);
/* The second setting's speed over the first one's. */
struct comparison paired_comparison(const struct paired *);

#endif
