/* How fast a model loads, reads a prompt and decodes one token at a time: the three figures by which engines are
 * compared, without speculation. */
#ifndef CLI_BENCH_BENCH_SPEED_H
#define CLI_BENCH_BENCH_SPEED_H

#include "cli/options/options.h"
#include "engine/session/engine.h"

/* Prints a table, or JSON to options->json: medians of options->repeat passes, prompt and decoding in turn.
 * options->tokens are decoded greedily from an empty context; load_s is what engine_open() took, in seconds. */
bool bench_speed(struct engine *, const struct options *, double load_s, struct err *);

#endif
