/* What config.json says besides sizes: the form (arch_hf_form.c) and RoPE (arch_hf_rope.c), read by entries
 * (arch_hf_entries.c). For the files arch_hf*.c. */
#ifndef ENGINE_ARCH_ARCH_HF_H
#define ENGINE_ARCH_ARCH_HF_H

#include <cjson/cJSON.h>

#include "engine/arch/arch.h"
#include "engine/arch/packed.h"
#include "engine/files/hf_folder.h"

#define ARCH_HF_REMEDY "fetch the folder again"

/* An entry that is null counts as missing, as Python's None does. "a.b": b of the object a. */
const cJSON *arch_hf_entry(const cJSON *object, const char *name);
enum arch_value arch_hf_kind(const cJSON *, double *out);

/* ---- config.json as transformers understands it (arch_hf_understood.c, arch_hf_usual.c) ---- */

#define ARCH_HF_ROPE_LOCAL "rope_parameters of windows"

/* A copy of a folder's config.json that has the entries which this model_type's configuration has, with the usual values where
 * they are missing, and RoPE in one form: what it is made of in `rope_parameters`, whether it was called so (since transformers 5) or
 * rope_scaling; where layers with a window turn otherwise, theirs under ARCH_HF_ROPE_LOCAL. The caller deletes it; NULL: refused. */
cJSON *arch_hf_understood(const struct hf_folder *, const char *model_type, struct err *);
/* An architecture's entries as words; NULL: it is not told which they are, and all count. */
const char *arch_hf_usual(const char *model_type);
bool arch_hf_has(const char *words, const char *name);
/* Biases and norms of layers that the configuration's switches turn off are none that the architecture has. */
void arch_hf_switch(const cJSON *config, const char *words, struct arch *);
/* Deletes what doesn't count, adds what is missing; false: no memory. */
bool arch_hf_fill(cJSON *config, const char *words);

/* ---- what it says ---- */

/* Activation, scales, which layers have a window and which rotate. What this program can't compute with is refused. */
bool arch_hf_form(struct model *, const struct hf_folder *, const struct arch *, struct err *);
bool arch_hf_read_rope(struct model *, const struct hf_folder *, const struct arch *, struct err *);

#endif
