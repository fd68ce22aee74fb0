/* Writes an EAGLE-3 head (eagle_head.h): a GGUF file of the architecture `eagle3`, as llama.cpp reads it, or a folder
 * of SpecForge's form (LlamaForCausalLMEagle3), which vLLM lists. engine/model/arch/arch_drafter.c opens
 * both. The embedding is the target's, so it is not stored. */
#pragma once

#include "engine/training/eagle_head.h"

/* Fails if the head could not be written to `path`, which ends with ".gguf" or is a folder: it exists and is something
 * else, or its folder cannot be written. Changes no file but a new folder. */
bool eagle_file_possible(const char *path, struct err *);

/* Writes the head for a target. Files are replaced atomically. A GGUF file has Q8_0 matrices where their columns are
 * whole blocks, and F32 otherwise; a folder has F32. If the target is a GGUF file, the head's file contains a copy of
 * its tokenizer, which llama.cpp needs. */
bool eagle_file_write(const struct eagle_head *, const struct model *target, const char *path, struct err *);
