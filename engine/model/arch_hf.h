/* What config.json says besides sizes: the form (arch_hf_form.c) and RoPE (arch_hf_rope.c), read by entries
 * (arch_hf_entries.c). For the files arch_hf*.c. */
#ifndef ENGINE_MODEL_ARCH_HF_H
#define ENGINE_MODEL_ARCH_HF_H

#include <cjson/cJSON.h>

#include "engine/model/arch.h"
#include "engine/model/hf_folder.h"
#include "engine/model/packed.h"

#define ARCH_HF_REMEDY "fetch the folder again"

/* An entry that is null counts as missing, as Python's None does. */
const cJSON *arch_hf_entry(const cJSON *object, const char *name);
enum arch_value arch_hf_kind(const cJSON *, double *out);
/* What RoPE is made of: rope_parameters since transformers 5, rope_scaling with rope_theta beside it before. Where layers
 * of different kinds have their own, that of those that see everything. */
const cJSON *arch_hf_rope(const cJSON *config);

/* Activation, scales, which layers have a window and which rotate. What this program can't compute with is refused. */
bool arch_hf_form(struct model *, const struct hf_folder *, const struct arch *, struct err *);
bool arch_hf_read_rope(struct model *, const struct hf_folder *, const struct arch *, struct err *);

#endif
