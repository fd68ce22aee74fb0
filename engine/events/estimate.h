/* Measures with their uncertainty. A measure is a ratio of sums over n samples, R = Σy / Σx: of tokens and seconds, of
 * tokens and rounds; a sample is a round, of all sequences where there are several, or a pass of a benchmark. Its
 * standard error is the ratio estimator's, by the delta method (Cochran 1977, Sampling Techniques, 3rd edition, chapter
 * 6, without the correction for finite populations):
 *
 *     se(R)² = Σ (y − R·x)² / (n·(n − 1)·x̄²),   x̄ = Σx / n
 *
 * Samples count as independent; what drifts over many of them (a machine that heats up) is not in it. */
#ifndef ENGINE_EVENTS_ESTIMATE_H
#define ENGINE_EVENTS_ESTIMATE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/events/event.h"

struct estimate {     /* NAN where not defined */
    double value, se; /* se: needs two samples */
    uint64_t n;       /* samples */
};

struct ratio_sums { /* zeroed: no samples */
    uint64_t n;
    double y, x, yy, xy, xx;
};
void ratio_add(struct ratio_sums *, double y, double x);
struct estimate ratio_estimate(const struct ratio_sums *);

/* a / b, measured apart: se² / value² adds up. Its n is the smaller one. */
struct estimate estimate_quotient(struct estimate a, struct estimate b);
struct estimate estimate_times(struct estimate, double factor);

/* The difference of two that were measured apart. It is more than noise beyond two of its standard errors, and where
 * samples are few beyond as many as Student's t has for 95% (Welch's degrees of freedom). */
enum difference_verdict { DIFFERENCE_UNKNOWN, DIFFERENCE_NOISE, DIFFERENCE_MORE, DIFFERENCE_LESS };
struct difference {
    double value, se; /* a − b; NAN where not defined */
    enum difference_verdict verdict;
};
struct difference estimate_difference(struct estimate a, struct estimate b);
/* Standard errors that hold 95% on both sides: 12.7 with 1 degree of freedom, 2 with 60 and more. */
double estimate_reach(double degrees);

/* A ratio of two things that were measured side by side, held against 1: a sample has both, as a pass of a benchmark or a segment
 * of a text. The 95% interval is the logarithm's, estimate_reach(n - 1) standard errors to both sides, so that a ratio and
 * its inverse get the same verdict. The verdict is the interval's: more where all of it is above 1. */
struct comparison {
    double value, low, high; /* NAN where not defined; low and high: needs two samples */
    uint64_t n;
    enum difference_verdict verdict;
};
struct comparison estimate_compare(struct estimate ratio);
/* "20% faster (12 to 29%)", of the one that is faster; "no clear difference"; "" where the verdict is unknown. Returns out. */
const char *comparison_text(struct comparison, char *out, size_t n);

/* Two settings that generate the same text in turns, compared segment by segment. Both sequences have the same tokens (greedy
 * decoding is lossless) and run beside each other, so what a text costs and what slows the machine down is the same for both
 * within a segment. A sample is a segment: tokens between two places where a round of either setting ends, at least
 * PAIRED_TOKENS of them. Segments are whole rounds of both, so their times share nothing and count as independent. */

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
