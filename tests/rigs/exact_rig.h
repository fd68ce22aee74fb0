/* Engines in F32 on one thread, for comparison with formulas: texts read from their beginning, runs recorded. What
 * fails, fails the test. */
#ifndef TESTS_RIGS_EXACT_RIG_H
#define TESTS_RIGS_EXACT_RIG_H

#include "engine/training/reader.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/recorded_run.h"

struct engine *exact_rig_open(const char *path, const char *draft, const char *companion);
/* draft, companion: NULL where there is none; or the target's own layers, "self:2". */
struct engine *exact_rig_tiny(const struct tinymodel *target, const struct tinymodel *draft,
                              const struct tinymodel *companion);
/* Three models of their own, a draft of the target's first layers and a companion of one more, and a profile that is
 * made up. */
struct engine *exact_rig_verification(void);
struct engine *exact_rig_own_layers(const struct tinymodel *, const char *draft, const char *companion);

/* After the text's n tokens, read from the beginning at full depth: what one of the engine's models says, logits
 * (vocab) and hidden state (width) at the last layer that is its; either may be NULL. */
void exact_rig_read(const struct engine *, enum reads, const token_t *text, size_t n, float *logits, float *hidden);

/* Greedy, all policies of the registry to choose from, no end before `tokens`. */
struct session_options exact_rig_session(const char *policy, const char *prompt, uint32_t tokens);
struct recorded_run exact_rig_record(struct engine *, const struct session_options *);

#endif
