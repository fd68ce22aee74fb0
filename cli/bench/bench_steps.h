/* What a round is made of, timed: rows verified together relative to one, a probe relative to a layer. */
#ifndef CLI_BENCH_BENCH_STEPS_H
#define CLI_BENCH_BENCH_STEPS_H

#include "cli/options/options.h"
#include "engine/session/engine.h"

/* Prints a table, or JSON to options->json. All figures are medians of interleaved repetitions in one run. */
bool bench_steps(struct engine *, const struct options *, struct err *);

#endif
