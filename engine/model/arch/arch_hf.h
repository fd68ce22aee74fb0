/* Readers of config.json: its entries (arch_hf_config.c), and the model's form and RoPE (arch_hf_form.c). */
#pragma once

#include <cjson/cJSON.h>

#include "engine/model/arch/arch.h"
#include "engine/model/files/hf_folder.h"

#define ARCH_HF_REMEDY "fetch the folder again"

/* Returns an entry of a JSON object; NULL if it is missing or null. "a.b" is the entry b of the object a. */
const cJSON *arch_hf_entry(const cJSON *object, const char *name);
enum arch_value arch_hf_kind(const cJSON *, double *out);

/* ---- config.json as transformers understands it (arch_hf_config.c) ---- */

#define ARCH_HF_ROPE_LOCAL "rope_parameters of windows"

/* Returns a normalised copy of a folder's config.json: without the entries that transformers ignores for this
 * architecture, and with its defaults for missing entries. RoPE's parameters are in `rope_parameters`, also if the file
 * has the older rope_scaling; if layers with a window rotate differently, their parameters are in ARCH_HF_ROPE_LOCAL.
 * The caller deletes the copy. Returns NULL, with an error, if the configuration is not supported. */
cJSON *arch_hf_understood(const struct hf_folder *, const struct arch *, struct err *);
/* Reads the architecture's default for a number of config.json. */
enum arch_value arch_hf_default(const struct arch *, const char *name, double *out);
/* Removes from `arch` the biases and norms of layers that the configuration turns off. */
void arch_hf_switch(const cJSON *config, struct arch *);

/* What lines of the table change in config.json (arch.adjust). */
bool arch_hf_gemma4(const struct hf_folder *, cJSON *, struct err *);
bool arch_hf_mamba(const struct hf_folder *, cJSON *, struct err *);
bool arch_hf_lfm2(const struct hf_folder *, cJSON *, struct err *);
bool arch_hf_olmo_hybrid(const struct hf_folder *, cJSON *, struct err *);

/* ---- the model's form ---- */

/* Reads the activation, the scales, and which layers have a window and which rotate. Fails if a feature is not
 * supported. */
bool arch_hf_form(struct model *, const struct hf_folder *, const struct arch *, struct err *);
/* Sets the widths of the layers' MLPs. Call it after arch_read_kinds(). */
void arch_hf_widen(struct model *, const struct hf_folder *);
bool arch_hf_read_rope(struct model *, const struct hf_folder *, const struct arch *, struct err *);
