/* Ways of packing, each a file: packed_fp8.c, packed_integers.c, packed_mxfp4.c, packed_bnb4.c; what they share is in packed_pieces.c. */
#ifndef ENGINE_ARCH_PACKED_INTERNAL_H
#define ENGINE_ARCH_PACKED_INTERNAL_H

#include "engine/arch/packed.h"

#ifdef _OPENMP
#define PACKED_PARALLEL _Pragma("omp parallel for schedule(static)")
#else
#define PACKED_PARALLEL
#endif

enum packing {
    PACKING_NONE,
    PACKING_FP8,
    PACKING_GPTQ,
    PACKING_AWQ,
    PACKING_AWQ_ROWS, /* its layout for products with vectors: "gemv" */
    PACKING_COMPRESSED,
    PACKING_BYTES,
    PACKING_MXFP4,
    PACKING_BNB4
};

struct packing_setting { /* as config.json's quantization_config has it */
    enum packing kind;
    uint32_t bits;
    uint32_t group;                  /* inputs that share a scale; 0: all */
    uint32_t block_rows, block_cols; /* FP8: of a block that shares one; 0: it isn't said */
    bool zeros_as_they_are;          /* GPTQ's second version; the first stores them less 1 */
    bool zeros_in_the_middle;        /* whatever is stored: 1 << (bits - 1) */
};

/* What is unpacked, and how: a weight's pieces and the type that it becomes. */
struct packed_job {
    const struct model *model;
    const struct hf_folder *folder;
    const struct packing_setting *setting;
    const char *stem; /* "model.layers.0.mlp.up_proj" */
    int stem_len;
    bool exact;
    const struct safetensor *codes, *scales, *zeros, *order; /* zeros and order may be NULL */
    uint32_t rows, cols;                                     /* of the weight; of a stack all rows of all */
    uint32_t planes;                                         /* of a stack: how many; 0: it is none */
    enum weight_type type;
    struct err *err;
};

/* Which pieces there are, whether they fit each other, and what type they become. */
bool packed_fp8_plan(struct packed_job *);
bool packed_integers_plan(struct packed_job *);
bool packed_mxfp4_plan(struct packed_job *);
bool packed_bnb4_plan(struct packed_job *);
/* Into `out`, (rows, cols) of the type. */
bool packed_fp8_unpack(const struct packed_job *, unsigned char *out);
bool packed_integers_unpack(const struct packed_job *, unsigned char *out);
bool packed_mxfp4_unpack(const struct packed_job *, unsigned char *out);
bool packed_bnb4_unpack(const struct packed_job *, unsigned char *out);

/* A line that begins with the folder's name and the weight's. */
bool packed_refuse(const struct packed_job *, const char *why);
/* A piece beside the codes, "weight_scale" or "_scales"; NULL: there is none. */
const struct safetensor *packed_piece(const struct packed_job *, const char *ending);
/* n plain numbers of a tensor, from element `first`. */
void packed_reals(const struct safetensor *, size_t first, size_t n, float *out);

#endif
