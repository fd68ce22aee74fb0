/* From values to places: linear scales, round ticks, and labels that say them. */
#ifndef TUI_FIGURES_SCALE_H
#define TUI_FIGURES_SCALE_H

#include <stdbool.h>
#include <stddef.h>

#define SCALE_TICKS 24

struct scale {
    double low, high; /* values */
    double from, to;  /* where they lie, in points */
};

double scale_at(const struct scale *, double value);

/* Of a range of values. NAN and infinite ones don't count. */
struct range {
    double low, high; /* low > high: of no value yet */
};
#define RANGE_NONE ((struct range){1, 0})
void range_add(struct range *, double value);
/* What an axis shows of it: shares all of [0, 1], and a little air; others from 0 where that is near; never nothing. */
struct range range_shown(struct range, bool share);

/* Round numbers (1, 2 or 5 times a power of ten apart; `whole`: whole numbers alone) within [low, high], at most `most` and at
 * most SCALE_TICKS. Returns how many; *step is how far apart they are. */
int scale_ticks(double low, double high, int most, bool whole, double ticks[SCALE_TICKS], double *step);
/* With the decimals that tell ticks apart which are `step` apart. Returns out. */
char *scale_label(double value, double step, char *out, size_t size);
/* In three digits or so: "0.123", "12.3", "1234"; "–" for NAN. Returns out. */
char *value_label(double value, char *out, size_t size);

#endif
