/* Reads tensors of a model's file: finds them by name, checks shape and type, and returns a whole tensor or the rows of
 * a fused one. arch.c reads single tensors, arch_tensors.c layers and models, arch_drafter.c drafters. */
#pragma once

#include "engine/model/arch/arch.h"
#include "kernels/experts.h"

#define ARCH_NAME_SIZE 128

struct arch_taking {
    struct model *model;
    const struct arch_source *source;
    bool *used; /* (n_tensors) */
    struct err *err;
};

/* Sets an error that begins with the file's name, and returns false. */
#define arch_refuse(t, ...) (arch_fill((t)->err, (t)->source->path, __VA_ARGS__), err_false())
__attribute__((format(printf, 3, 4))) void arch_fill(struct err *, const char *path, const char *format, ...);

/* Rows of each group of a fused tensor: `each` rows from `first` on. */
struct arch_span {
    uint32_t first, each;
};

/* The rows of a fused tensor that belong to one tensor. n = 0: all rows. */
struct arch_slice {
    uint32_t first, n, all;   /* rows, or elements of a vector; `all` is the fused tensor's number */
    uint32_t each;            /* 0, or rows per group; a new group begins every (all / groups) rows */
    uint32_t groups;          /* number of key-value heads, each with its queries */
    struct arch_span then[2]; /* further rows of each group; they follow the rows above of all groups */
    bool columns;             /* the stored tensor is transposed: these rows are its columns */
};

#define ARCH_STEMS 4
/* Lists the possible names of a layer's tensor, without the layer and the ending, and the rows of the named tensor that
 * belong to it. Returns the number of names. */
size_t arch_stems(const struct arch *, enum layer_naming, const struct model_desc *, enum layer_tensor,
                  char names[ARCH_STEMS][LAYER_NAME_SIZE], struct arch_slice parts[ARCH_STEMS]);

/* Returns true if the tensor consists of `planes` matrices of (rows, cols) and has a type that backends compute with;
 * otherwise sets an error. */
bool arch_fits(const struct arch_taking *, const char *name, const struct arch_tensor *, uint64_t planes, uint64_t rows,
               uint64_t cols);
/* Returns the tensor's data, or an aligned copy if the file does not align it to its elements; NULL if out of
 * memory. */
const void *arch_aligned(const struct arch_taking *, const struct arch_tensor *, size_t elements);
/* Adds a tensor to the model's counts of parameters. */
void arch_count(const struct arch_taking *, const struct tensor *);
/* Writes the full name of a layer's tensor, such as "model.layers.3.self_attn.q_proj.weight". Layers count from 0. */
const char *arch_layer_name(const struct arch_source *, uint32_t layer, enum layer_tensor, char out[ARCH_NAME_SIZE]);

/* Reads a tensor or a slice of one (NULL: all of it); the result has the shape (rows, cols). It points into the file if
 * possible; otherwise it is a copy. */
bool arch_take_slice(const struct arch_taking *, const char *name, uint32_t rows, uint32_t cols,
                     const struct arch_slice *part, struct tensor *out);
bool arch_take_tensor(const struct arch_taking *, const char *name, uint32_t rows, uint32_t cols, struct tensor *out);
/* Reads a vector and converts it to F32; adds `add` to every element. */
bool arch_take_vector(const struct arch_taking *, const char *name, uint32_t n, const struct arch_slice *part,
                      float add, struct tensor *out);
/* Reads a norm outside the layers. */
bool arch_take_norm(const struct arch_taking *, const char *name, uint32_t n, struct tensor *out);
/* Makes a norm's weights of ones, for norms without weights. */
bool arch_make_ones(const struct arch_taking *, uint32_t n, struct tensor *out);

/* Reads all tensors of a layer, counted from 0. */
bool arch_take_layer(const struct arch_taking *, uint32_t layer, struct layer_desc *out);
/* Returns true for the names of tensors of layers for multi-token prediction, which come after the last layer. */
bool arch_looks_ahead(const struct arch_taking *, const char *name, size_t len);
/* Writes the name of the next unused tensor from *i on, and moves *i past it; false: there is none. Tables that can be
 * computed, which some converters keep, are passed over. */
bool arch_next_unused(const struct arch_taking *, size_t *i, const char **name, size_t *len);
/* Fails if an unused tensor remains, as it would change the model's output. */
bool arch_refuse_leftovers(const struct arch_taking *);

/* ---- feature drafters (arch_drafter.c) ---- */

#define ARCH_BLOCK_MOST 64u /* rows of a block */

/* What config.json or the metadata of an EAGLE-3 head or of a block drafter contains besides the numbers of its
 * layers. */
struct arch_head {
    bool is_block;                          /* a block drafter */
    uint32_t layers, layer[MODEL_FEATURES]; /* layers of the target; 0: the usual three */
    uint32_t target_width;                  /* 0: the head's own */
    bool norms_features, norms_each;        /* over all features, over those of each layer */
    bool input_normed, output_normed;       /* as in struct drafter_desc */
    bool absolute;                          /* d2t contains ids, not their distances */
    const char *norm, *feature_norm;        /* names of tensors */
    /* Of a block drafter: as in struct drafter_desc; a mask of UINT32_MAX is missing. */
    uint32_t block, mask;
    bool causal, from_anchor;
    const char *markov, *confidence; /* names of tensors, without "w1.weight" and ".weight" */
    bool tied;                       /* without a head of its own, its own embedding is the head */
};
/* The form of block drafters: Qwen 3's layers, and entries of config.json that have other names in their folders. */
extern const struct arch arch_block;
/* Reads the tensors of a drafter whose numbers have been read, and checks that it fits its target. */
bool arch_take_head(const struct arch_taking *, const struct arch_head *, const struct model *target);
/* The part of arch_read_tensors() that reads the model itself, without layers for multi-token prediction
 * (model.ahead). */
bool arch_take_model(struct model *, const struct arch_source *, bool tied, bool *used, struct err *);

/* Names in a folder, within a layer: of an expert's matrix; of the shared expert's matrix, with its rows in that
 * tensor; and of the module that contains all experts. */
const char *arch_expert_name(const struct arch *, uint32_t e, enum expert_tensor, char out[LAYER_NAME_SIZE]);
const char *arch_shared_name(const struct arch *, const struct model_desc *, enum expert_tensor, struct arch_slice *);
void arch_experts_module(const struct arch *, char out[ARCH_NAME_SIZE]);

/* Reads every layer's xIELU parameters from a folder's tensors, if the activation is xIELU. */
bool arch_take_xielu(const struct arch_taking *);
