/* Translates a preset to a command of another engine, with the options that make it decode as the preset's policy
 * does. A second form of the command measures that engine at acceptance rates that were recorded here. The
 * commands are members of struct policy_ops; docs/engines.md explains them. */
#ifndef ENGINE_TUNE_ENGINE_FLAGS_H
#define ENGINE_TUNE_ENGINE_FLAGS_H

#include "engine/tune/preset.h"

extern const char *const engine_names[ENGINES];    /* "llama.cpp", … */
extern const char *const engine_versions[ENGINES]; /* "0.5.0", …: the version that the options' names were read from */

/* Paths or names of models; borrowed. NULL: the command contains the word TARGET or DRAFT. In place of a GGUF file,
 * engines other than llama.cpp have the word HF_FOLDER or HF_DRAFT_FOLDER. Target "": only the options that follow the
 * target are written, without those of sampling, to be added to a command that has a target. */
struct engine_models {
    const char *target, *draft;
};

/* Returns the meaning of HF_FOLDER and HF_DRAFT_FOLDER if the command contains one of them: one line, constant; else
 * NULL. */
const char *engine_folder_note(const char *command);

/* Writes the preset, of this policy, as a shell command (transformers: lines of Python), or "no equivalent: REASON". A
 * knob that the preset does not set is its name in capitals. The seed is left out, because it would not reproduce the
 * text.
 *
 * With n > 0 the command lets the engine accept drafts at random, so that it measures its cost at these rates:
 * unconditional[i] (n) is the share of the rounds with drafts in which drafts 1..i + 1 were accepted. The command has
 * as many rates as the policy drafts tokens: missing ones are 0, and a rate is at most the one before it.
 *
 * Returns the length of the text without its terminating zero. If the text needs more than `room` bytes, out is ""
 * (room 0: nothing is written). Returns 0 if memory runs out. */
size_t engine_flags(enum other_engine, const struct policy_ops *, const struct preset *, const struct engine_models *,
                    const double *unconditional, uint32_t n, char *out, size_t room);

#endif
