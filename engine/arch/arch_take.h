/* Taking a tensor out of a file: found by name, checked in shape and type, whole or as rows of one that holds others too. */
#ifndef ENGINE_ARCH_ARCH_TAKE_H
#define ENGINE_ARCH_ARCH_TAKE_H

#include "engine/arch/arch.h"
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

/* Does the layer, from 0, have experts? And those of such a layer (arch_experts.c). */
bool arch_is_sparse(const struct arch_taking *, uint32_t layer);
bool arch_take_experts(const struct arch_taking *, uint32_t layer, struct layer_desc *);

/* What folders call an expert's matrix, that of the one that all rows go to (and which rows of it), and the module that has those
 * of all, in a layer. */
const char *arch_expert_name(const struct arch *, uint32_t e, enum expert_tensor, char out[LAYER_NAME_SIZE]);
const char *arch_shared_name(const struct arch *, const struct model_desc *, enum expert_tensor, struct arch_slice *);
void arch_experts_module(const struct arch *, char out[ARCH_NAME_SIZE]);

/* Of a folder: the numbers of every layer's xIELU, where the model's activation is that. */
bool arch_take_xielu(const struct arch_taking *);

#endif
