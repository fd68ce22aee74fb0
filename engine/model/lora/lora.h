/* Merges low-rank adapters (LoRA, Hu et al. 2021) into a model when it is opened: W + scale alpha / r B A, in F32.
 * F32, F16 and BF16 matrices keep their type, and quantised ones become F16. With `exact` all merged ones become F32.
 *
 * An adapter is a PEFT folder (adapter_config.json, adapter_model.safetensors), a PEFT safetensors file, or a GGUF
 * file. Adapters of experts may be modules of each expert, PEFT's target_parameters, or GGUF's stacks. Every kind
 * works with a folder and with a GGUF file of the model: if converters permuted the rows of Q and K, the adapter's are
 * mapped. */
#pragma once

#include "engine/model/model.h"

/* Merges an adapter into the model; `asked` is "FILE" or "FILE:SCALE". Changes the model's tensors, hash and `merged`.
 * Fails if the file is not a plain LoRA adapter (DoRA, modules saved whole, biases), if the architecture or the sizes
 * differ from the model's, or if the scale is invalid. */
bool lora_merge(struct model *, const char *asked, bool exact, struct err *);
