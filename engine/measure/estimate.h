/* Measures with their uncertainty. A measure is a ratio of sums over n samples, R = Σy / Σx: of tokens and seconds, or
 * of tokens and rounds. A sample is a round (of all sequences, if there are several) or a pass of a benchmark. Its
 * standard error is the ratio estimator's, by the delta method (Cochran 1977, Sampling Techniques, 3rd edition,
 * chapter 6, without the correction for finite populations):
 *
 *     se(R)² = Σ (y − R·x)² / (n·(n − 1)·x̄²),   x̄ = Σx / n
 *
 * Samples count as independent. A drift over many samples (a machine that heats up) is not part of the error. */
#pragma once

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

/* a / b of two independent measures: se² / value² adds up. Its n is the smaller one. */
struct estimate estimate_quotient(struct estimate a, struct estimate b);
struct estimate estimate_times(struct estimate, double factor);

/* The difference of two independent measures. It is more than noise if it is larger than two of its standard errors,
 * or for few samples larger than Student's t at 95% (Welch's degrees of freedom). */
enum difference_verdict { DIFFERENCE_UNKNOWN, DIFFERENCE_NOISE, DIFFERENCE_MORE, DIFFERENCE_LESS };
struct difference {
    double value, se; /* a − b; NAN where not defined */
    enum difference_verdict verdict;
};
struct difference estimate_difference(struct estimate a, struct estimate b);
/* Returns the half width of a two-sided 95% interval, in standard errors: 12.7 with 1 degree of freedom, 2 with 60 and
 * more. */
double estimate_reach(double degrees);
/* Returns the quantile of Student's t for a two-sided level. */
double estimate_quantile(double level, double degrees);

/* A ratio of two quantities measured side by side, compared with 1: each sample (a pass of a benchmark, a segment of a
 * text) contains both. The 95% interval is that of the logarithm, estimate_reach(n - 1) standard errors to both sides,
 * so that a ratio and its inverse get the same verdict. The verdict is DIFFERENCE_MORE if the whole interval is above
 * 1, DIFFERENCE_LESS if it is below. */
struct comparison {
    double value, low, high; /* NAN where not defined; low and high need two samples */
    uint64_t n;
    enum difference_verdict verdict;
};
struct comparison estimate_compare(struct estimate ratio);
/* The same as one of `all` comparisons, whose intervals hold together at 95% (Bonferroni). */
struct comparison estimate_compare_of(struct estimate ratio, uint32_t all);
/* Writes "20% faster (12 to 29%)", "no clear difference: -1 to +13%", or "" if the verdict is unknown. Returns out. */
const char *comparison_text(struct comparison, char *out, size_t n);

/* Settings that run one after the other in several passes, as in a benchmark or a sweep. They are compared pass by
 * pass, so that a machine that becomes slower or faster from pass to pass changes all alike: R = Σ (time of the other,
 * per token) / Σ (time, per token), by the ratio estimator. */
struct pass {         /* of a setting */
    double tokens, s; /* emitted; drafting and verifying */
};
/* Returns the speed of a setting over that of another, from the passes that both ran. */
struct estimate passes_ratio(const struct pass *, const struct pass *other, uint32_t n);
struct estimate passes_speed(const struct pass *, uint32_t n); /* tokens/s */

/* Two settings that generate the same text in turns, compared segment by segment. Both sequences have the same tokens
 * (greedy decoding is lossless) and run side by side, so the difficulty of the text and the load of the machine are
 * the same for both within a segment. A sample is a segment: at least PAIRED_TOKENS tokens between two positions where
 * a round of both settings ends. Segments are whole rounds of both, so their times do not overlap and count as
 * independent. */

#define PAIRED_TOKENS 8 /* minimum of a segment */
/* if no rounds end together within this many tokens, the longer round is divided in proportion */
#define PAIRED_MOST 16

struct paired {                /* zeroed: no segments */
    bool partial;              /* the segment began before a setting changed */
    struct ratio_sums seconds; /* seconds of the first setting over those of the second; a sample is a segment */
    struct {
        double tokens, seconds;           /* since the last segment's end */
        double last_tokens, last_seconds; /* of the newest round */
    } side[2];
    /* tokens before and at the end of the newest segment, counted from the first round that was added */
    double from, to;
    double y, x; /* the newest segment's sample */
};

/* Adds a round of a setting (0, 1). Add rounds in the order in which they ran, each of the setting that has emitted
 * fewer tokens. Returns true if the round completes a segment that counts. */
bool paired_add(struct paired *, uint32_t side, const struct round_event *);
/* Discards all segments after a change of a setting. The segment that contains the change is not counted. */
void paired_restart(struct paired *);
/* Returns the second setting's speed over the first one's. */
struct comparison paired_comparison(const struct paired *);

/* Rounds compared with slices of autoregressive decoding that run between them. A sample is a slice and the rounds
 * since the one before: the time that autoregressive decoding, as fast as in the slice, takes for the rounds' tokens,
 * over the rounds' own time. So a machine that becomes slower or faster changes both alike. */

#define SLICES_LEAST 3 /* minimum of samples */

struct sliced {                /* zeroed: no slices */
    struct ratio_sums speedup; /* autoregressive seconds over the rounds' seconds */
    double tokens, seconds;    /* of the rounds since the last slice */
};

void sliced_round(struct sliced *, double tokens, double seconds);
void sliced_slice(struct sliced *, double tokens_per_s);
/* Returns the rounds' speed over autoregressive decoding's; NAN: fewer than SLICES_LEAST samples. */
struct estimate sliced_speedup(const struct sliced *);
