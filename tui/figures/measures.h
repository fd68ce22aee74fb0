/* The measures of engine/events/metrics.h by the names that the columns of `bench --csv` have, so that traces and benchmarks
 * can stand in one figure. */
#ifndef TUI_FIGURES_MEASURES_H
#define TUI_FIGURES_MEASURES_H

#include "engine/events/metrics.h"

struct named_measure {
    const char *name;  /* "tokens_per_round" */
    const char *label; /* "tokens/round" */
    int better;        /* 1: more is better, -1: less is; 0: neither */
    bool share;        /* lies in [0, 1] */
    size_t at;         /* in struct measures */
};
extern const struct named_measure named_measures[]; /* ends with a name of NULL */

const struct named_measure *measure_named(const char *name); /* NULL: there is none */
double measure_value(const struct named_measure *, const struct measures *);
/* "tok_per_s, speedup, …" Returns out. */
const char *measure_names(char *out, size_t size);

#endif
