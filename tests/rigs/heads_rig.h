/* Heads that nobody trained: random ones, good enough to be wrong in their own way. */
#ifndef TESTS_RIGS_HEADS_RIG_H
#define TESTS_RIGS_HEADS_RIG_H

#include "engine/model/trained/exit_heads.h"
#include "engine/session/engine.h"

/* Writes random heads for the model at `model_path` (…/NAME.gguf) beside it, where they are found by themselves:
 * …/NAME.heads.safetensors, into path. */
bool heads_rig_write_beside(const char *model_path, enum head_kind, uint64_t seed, char *path, size_t n, struct err *);
/* Gives the engine's draft model, if it has one, a random acceptance head, in place of whichever it had: sure of some
 * candidates and not of others. */
bool heads_rig_accept(struct engine *, uint32_t blocks, uint64_t seed, struct err *);

/* Gives the engine an EAGLE-3 head and a layer for multi-token prediction that are made up, so that every policy runs;
 * the layer is the target's first one, so some of its drafts are accepted. Does nothing if the backend has no
 * drafters. */
bool heads_rig_drafters(struct engine *, uint64_t seed, struct err *);

#endif
