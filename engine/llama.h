/* What a Llama is made of, found in a GGUF file: hyperparameters under "llama.", tensors by their GGUF names. */
#ifndef ENGINE_LLAMA_H
#define ENGINE_LLAMA_H

#include "engine/gguf.h"
#include "engine/model.h"

/* The number of tokens in the tokenizer's vocabulary, which the embedding must have as rows, is in desc.vocab already.
 * Fills the rest of desc (its layers are the model's to free), ctx_train, tied, rho and the counts of parameters. */
bool llama_read(struct model *, const struct gguf *, enum rope_layout, struct err *);

#endif
