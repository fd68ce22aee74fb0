/* What the training commands share: the check of --out, the models, the device that multiplies, the order of rows, and the
 * progress bar. */
#ifndef CLI_TRAIN_TRAIN_H
#define CLI_TRAIN_TRAIN_H

#include "cli/options/options.h"
#include "engine/base/file_replace.h"
#include "engine/training/blas.h"

/* Refuses at once what would fail after hours: `out` is missing, or it exists and is no regular file of this kind.
 * command: "heads". */
bool train_can_write(const char *command, const char *out, const struct file_kind *, struct err *);

/* Opens the model with an auxiliary model for each role in `needs` (NEEDS()): the one that was given, which may be the
 * target's own first layers, or the file beside the target. */
bool train_engine(const struct options *, unsigned needs, struct engine **, struct err *);

/* Returns the products of the engine's device, or NULL where it has none; prints a line if they cannot be opened. */
struct blas *train_blas(const struct engine *);

/* Fisher and Yates; *random is a SplitMix64 state. */
void train_shuffle(size_t *order, size_t n, uint64_t *random);

/* Draws "training  [#####.....]  52%  TEXT  18 s" on a terminal's stderr; elsewhere prints it as a line if `line`. */
void train_bar(const char *what, double done, bool line, const char *text, uint64_t start_us);

#endif
