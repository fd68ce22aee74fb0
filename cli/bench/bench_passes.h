/* How sure a benchmark is of its speeds: passes are the samples. What drifts drifts for all lanes, so lanes are compared
 * pass by pass: of two, R = Σ (time of the other, per token) / Σ (time, per token) by the ratio estimator. */
#ifndef CLI_BENCH_BENCH_PASSES_H
#define CLI_BENCH_BENCH_PASSES_H

#include "cli/bench/bench.h"

struct estimate bench_tokens_per_s(const struct bench *, const struct lane *);
/* Speed of a lane over that of another, of the passes that both ran. */
struct estimate bench_ratio(const struct bench *, const struct lane *, const struct lane *other);
/* The 95% interval of the first one's speed over the other's lies above 1. */
bool bench_is_ahead(const struct bench *, const struct lane *, const struct lane *other);
/* Compares a lane with its policy's others: "; faster than each other point", "; no clear difference from gamma=3, gamma=4",
 * "; one pass has no interval"; "" where there are no others. */
const char *bench_standing(const struct bench *, const struct lane *, char *out, size_t n);

#endif
