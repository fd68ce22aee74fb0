/* Low-rank adapters (LoRA, Hu et al. 2021), merged into a model while it is opened: W + scale alpha / r B A, computed in F32.
 * A matrix that was F32, F16 or BF16 stays that, one in blocks becomes F16; with `exact` all become F32.
 *
 * An adapter is a folder as PEFT writes it (adapter_config.json, adapter_model.safetensors), its safetensors file, or a GGUF
 * file; of experts it has modules of each, parameters of all (target_parameters), or GGUF's stacks. Each goes with a folder or a
 * GGUF file of its model alike: where converters permuted the rows of queries and keys, so
 * are the adapter's. */
#ifndef ENGINE_LORA_LORA_H
#define ENGINE_LORA_LORA_H

#include "engine/model/model.h"

/* `asked`: "FILE" or "FILE:SCALE". Changes the model's tensors, hash and `merged`. Refused in one line: what is no such
 * adapter (DoRA, modules saved whole, biases), what is of another architecture or of other sizes, a scale that is no number. */
bool lora_merge(struct model *, const char *asked, bool exact, struct err *);

#endif
