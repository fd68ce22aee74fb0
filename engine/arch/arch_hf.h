/* Taking a tensor out of a file: found by name, checked in shape and type, whole or as rows of one that holds others too. */
#ifndef ENGINE_ARCH_ARCH_HF_H
#define ENGINE_ARCH_ARCH_HF_H

#include <cjson/cJSON.h>

#include "engine/arch/arch.h"
#include "engine/arch/packed.h"
#include "engine/files/hf_folder.h"
#include "kernels/experts.h"

#define ARCH_NAME_SIZE 96

struct arch_taking {
    struct model *model;
    const struct arch_source *source;
    bool *used; /* (n_tensors) */
    struct err *err;
};

/* Rows of a tensor that holds others, too; n = 0: all of it. */
struct arch_slice {
    uint32_t first, n, all; /* rows, or elements of a vector; `all`: how many the tensor has */
    uint32_t each;   /* 0; or rows of each group's part: then every (all / groups) rows begin with another group's */
    uint32_t groups; /* heads of keys and values, with their queries */
    bool columns;    /* it lies transposed: what are rows here are its columns */
};

#define ARCH_STEMS 4
/* What a layer's tensor may be called, without the layer and the ending, and which rows of that it is; how many names. */
size_t arch_stems(const struct arch *, enum layer_naming, const struct model_desc *, enum layer_tensor,
                  const char *names[ARCH_STEMS], struct arch_slice parts[ARCH_STEMS]);

/* Is the tensor, so many matrices of rows by cols, of a type that backends compute with? */
bool arch_fits(const struct arch_taking *, const char *name, const struct arch_tensor *, uint64_t planes, uint64_t rows,
               uint64_t cols);
/* Where a file doesn't align a tensor even to its elements, a copy that is; NULL: no memory. */
const void *arch_aligned(const struct arch_taking *, const struct arch_tensor *, size_t elements);
/* Counts what was taken. */
void arch_count(const struct arch_taking *, const struct tensor *);
/* "model.layers.3." and the layer's tensor as this architecture calls it. Layers from 0. */
const char *arch_layer_name(const struct arch_source *, uint32_t layer, enum layer_tensor, char out[ARCH_NAME_SIZE]);

/* A tensor, or a slice of one (NULL: all of it): rows by cols is what becomes of it. Stays in the file where it can. */
bool arch_take_slice(const struct arch_taking *, const char *name, uint32_t rows, uint32_t cols,
                     const struct arch_slice *part, struct tensor *out);
bool arch_take_tensor(const struct arch_taking *, const char *name, uint32_t rows, uint32_t cols, struct tensor *out);
/* A vector, which becomes F32; `add` is added to every number. */
bool arch_take_vector(const struct arch_taking *, const char *name, uint32_t n, const struct arch_slice *part,
                      float add, struct tensor *out);
/* A norm without weights is one of ones. */
bool arch_make_ones(const struct arch_taking *, uint32_t n, struct tensor *out);

/* What folders call an expert's matrix, that of the one that all rows go to (and which rows of it), and the module that has those
 * of all, in a layer. */
const char *arch_expert_name(const struct arch *, uint32_t e, enum expert_tensor, char out[LAYER_NAME_SIZE]);
const char *arch_shared_name(const struct arch *, const struct model_desc *, enum expert_tensor, struct arch_slice *);
void arch_experts_module(const struct arch *, char out[ARCH_NAME_SIZE]);

/* Of a folder: the numbers of every layer's xIELU, where the model's activation is that. */
bool arch_take_xielu(const struct arch_taking *);

/* What config.json says besides sizes: the form and RoPE (arch_hf_form.c), read by entries
 * (arch_hf_config.c). For the files arch_hf*.c. */

#define ARCH_HF_REMEDY "fetch the folder again"

/* An entry that is null counts as missing, as Python's None does. "a.b": b of the object a. */
const cJSON *arch_hf_entry(const cJSON *object, const char *name);
enum arch_value arch_hf_kind(const cJSON *, double *out);

/* ---- config.json as transformers understands it (arch_hf_config.c) ---- */

#define ARCH_HF_ROPE_LOCAL "rope_parameters of windows"

/* A copy of a folder's config.json that has the entries which this model_type's configuration has, with the usual values where
 * they are missing, and RoPE in one form: what it is made of in `rope_parameters`, whether it was called so (since transformers 5) or
 * rope_scaling; where layers with a window turn otherwise, theirs under ARCH_HF_ROPE_LOCAL. The caller deletes it; NULL: refused. */
cJSON *arch_hf_understood(const struct hf_folder *, const char *model_type, struct err *);
/* An architecture's entries as words; NULL: it is not told which they are, and all count. */
const char *arch_hf_usual(const char *model_type);
/* Biases and norms of layers that the configuration's switches turn off are none that the architecture has. */
void arch_hf_switch(const cJSON *config, const char *words, struct arch *);

/* ---- what it says ---- */

/* Activation, scales, which layers have a window and which rotate. What this program can't compute with is refused. */
bool arch_hf_form(struct model *, const struct hf_folder *, const struct arch *, struct err *);
bool arch_hf_read_rope(struct model *, const struct hf_folder *, const struct arch *, struct err *);

#endif
