/* Tiny engines to train on, in F32 on one thread, and texts read from their beginning. What fails, fails the test. */
#ifndef TESTS_RIGS_TRAINING_RIG_H
#define TESTS_RIGS_TRAINING_RIG_H

#include "engine/session/engine.h"
#include "tests/golden/tinymodel.h"

struct engine *training_rig_engine(const struct tinymodel *);

/* After the text's n tokens, in a context of its own: what layer `layer` (0: the last) says, logits (vocab) and hidden state
 * (width); either may be NULL. */
void training_rig_read(const struct engine *, uint32_t layer, const token_t *text, size_t n, float *logits,
                       float *hidden);

#endif
