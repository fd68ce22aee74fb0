/* How sure a benchmark is of its speeds: passes are the samples. What drifts drifts for all lanes, so lanes are compared
 * pass by pass: of two, R = Σ (time of the other, per token) / Σ (time, per token) by the ratio estimator. */
#ifndef CLI_BENCH_BENCH_PASSES_H
#define CLI_BENCH_BENCH_PASSES_H

#include "cli/bench/bench.h"

struct estimate bench_tokens_per_s(const struct bench *, const struct lane *);
/* Speed of a lane over that of another, of the passes that both ran. */
struct estimate bench_ratio(const struct bench *, const struct lane *, const struct lane *other);
/* The first is faster by more than noise. */
bool bench_is_ahead(const struct bench *, const struct lane *, const struct lane *other);
/* ", beyond noise", ", within noise of gamma=3, gamma=4": the lane among its policy's others; with one pass nothing is known. */
const char *bench_standing(const struct bench *, const struct lane *, char *out, size_t n);

#endif
