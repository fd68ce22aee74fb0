/* The measures of engine/events/metrics.h by the names that the columns of `bench --csv` have, so that traces and benchmarks
 * can stand in one figure. */
#ifndef TUI_FIGURES_MEASURES_H
#define TUI_FIGURES_MEASURES_H

#include "engine/events/metrics.h"

#include <stdbool.h>
#include <stddef.h>

struct named_measure {
    const char *name;  /* "tokens_per_round" */
    const char *label; /* "tokens/round" */
    int better;        /* 1: more is better, -1: less is; 0: neither */
    bool timed;        /* the clock is in it, else it is made of counts alone */
    size_t at;         /* in struct measures, */
    size_t estimated;  /* and in struct estimates; MEASURE_OF_TWO: it isn't one run's alone */
};
#define MEASURE_OF_TWO SIZE_MAX
extern const struct named_measure named_measures[]; /* ends with a name of NULL */

const struct named_measure *measure_named(const char *name); /* NULL: there is none */
double measure_value(const struct named_measure *, const struct measures *);
/* The same with its standard error; the speedup over the baseline, if that was measured (else NAN). */
struct estimate measure_estimate(const struct named_measure *, const struct estimates *, struct estimate baseline);
/* "tok_per_s, speedup, …" Returns out. */
const char *measure_names(char *out, size_t size);

#endif
