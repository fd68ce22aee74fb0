/* Engines in F32 on one thread, for comparison with formulas. The functions read texts from their beginning and record
 * runs. An error fails the test. */
#pragma once

#include "engine/training/reader.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/recorded_run.h"

struct engine *exact_rig_open(const char *path, const char *draft, const char *companion);
/* draft and companion may be NULL for none, or name the target's own layers, as "self:2". */
struct engine *exact_rig_tiny(const struct tinymodel *target, const struct tinymodel *draft,
                              const struct tinymodel *companion);
/* Opens an engine with a target, a draft model of the target's first layers, a companion of one more layer, and a
 * synthetic profile. */
struct engine *exact_rig_verification(void);
struct engine *exact_rig_own_layers(const struct tinymodel *, const char *draft, const char *companion);

/* Reads the text's n tokens from its beginning at full depth with one of the engine's models. Writes the logits (vocab)
 * and the hidden state (width) of that model's last layer; either may be NULL. */
void exact_rig_read(const struct engine *, enum reads, const token_t *text, size_t n, float *logits, float *hidden);

/* Returns options of a greedy session that can choose all policies of the registry and does not end before `tokens`. */
struct session_options exact_rig_session(const char *policy, const char *prompt, uint32_t tokens);
struct recorded_run exact_rig_record(struct engine *, const struct session_options *);
