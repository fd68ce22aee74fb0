/* Untrained heads: their weights are random, and some of their predictions are wrong. */
#pragma once

#include "engine/model/trained/exit_heads.h"
#include "engine/session/engine.h"

/* Writes random heads for the model at `model_path` (…/NAME.gguf) to …/NAME.heads.safetensors, where the engine finds
 * them without an option. Writes the path of the heads into path. */
bool heads_rig_write_beside(const char *model_path, enum head_kind, uint64_t seed, char *path, size_t n, struct err *);
/* Gives the engine's draft model, if it has one, a random acceptance head, which replaces any other. The head is
 * confident about some candidates and not about others. */
bool heads_rig_accept(struct engine *, uint32_t blocks, uint64_t seed, struct err *);

/* Gives the engine a random EAGLE-3 head, a layer for multi-token prediction, and a block drafter with a Markov and a
 * confidence head, so that every policy runs. Their layers are the target's first ones, so some of their drafts are
 * accepted. Does nothing if the backend has no drafters. */
bool heads_rig_drafters(struct engine *, uint64_t seed, struct err *);
