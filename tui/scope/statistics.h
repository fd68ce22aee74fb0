/* What is counted of drafts, for panels and figures alike: intervals of shares, and confidence against acceptance. Lies below the
 * scope and knows nothing of it. */
#ifndef TUI_SCOPE_STATISTICS_H
#define TUI_SCOPE_STATISTICS_H

#include <stdint.h>

/* Wilson's interval of 95% of a share of `of` trials that came out well `n` times. Without trials: 0 and 1. */
void share_interval(uint64_t n, uint64_t of, double *low, double *high);

/* Confidence against what came of it, in bins of equal width over [0, 1]. */
#define CALIBRATION_BINS 10

struct calibration {
    uint64_t n[CALIBRATION_BINS], right[CALIBRATION_BINS];
    double confidence[CALIBRATION_BINS]; /* sums */
    uint64_t all;
};

int calibration_bin(double confidence); /* -1: not within [0, 1] */
/* Confidences outside [0, 1] don't count. */
void calibration_add(struct calibration *, double confidence, int right);
/* Expected calibration error: sum over bins of n / all * |right / n - mean confidence|. NAN: nothing was added. */
double calibration_error(const struct calibration *);

#endif
