/* Tiny engines to train on, in F32 on one thread, and texts read from their beginning. What fails, fails the test. */
#ifndef TESTS_RIGS_TRAINING_RIG_H
#define TESTS_RIGS_TRAINING_RIG_H

#include "engine/training/reader.h"
#include "tests/golden/tinymodel.h"

/* draft, companion: NULL where there is none; or the target's own layers, "self:2". */
struct engine *training_rig_engine(const struct tinymodel *target, const struct tinymodel *draft,
                                   const struct tinymodel *companion);
struct engine *training_rig_own_layers(const struct tinymodel *, const char *draft, const char *companion);

/* After the text's n tokens, read from the beginning at full depth: what one of the engine's models says, logits (vocab) and
 * hidden state (width) at the last layer that is its; either may be NULL. */
void training_rig_read(const struct engine *, enum reads, const token_t *text, size_t n, float *logits, float *hidden);

#endif
