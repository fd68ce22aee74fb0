/* Weights that a folder keeps packed: FP8 with scales, GPTQ's and AWQ's integers, those of compressed-tensors, bitsandbytes'
 * 4 bits, experts in MXFP4. They are unpacked when the model is opened, each to the smallest type that there is and that holds
 * it: what a block of 32 with an F16 scale says exactly becomes Q4_0 (up to 3 bits, and 4 with the zero at 8) or Q8_0 (8 bits,
 * zero at 128), 4 bits with other zeros Q4_1, whose offset is rounded to F16, and anything else F16. With `exact` what would be
 * rounded becomes Q8_0 (4 bits in such blocks) or F32 instead. Roundings are those of F16 (2^-11 of the largest value of a group
 * at most); what F16 can't hold becomes F32. MXFP4 stays what it is; of a stack of experts whose gate and up take turns all rows
 * of gate come first then. */
#ifndef ENGINE_ARCH_PACKED_H
#define ENGINE_ARCH_PACKED_H

#include "engine/arch/arch.h"
#include "engine/files/hf_folder.h"

struct packed_weight {
    char *name; /* "….weight" or "….gate_up_proj", as if it were there */
    struct arch_tensor tensor;
};

struct packed {
    struct packed_weight *weights; /* (n_weights) sorted by name */
    size_t n_weights;
    bool *pieces; /* (of the folder's tensors) what they were made of besides what tensor.index says */
};

struct packed_options {
    bool exact;    /* round nothing */
    bool glance;   /* what it becomes is wanted, the weights themselves aren't: their memory isn't written */
    uint64_t room; /* bytes that it may take */
};

/* Unpacks what config.json says is packed, into memory of the model's; *out = NULL: nothing is. Refuses other ways of packing,
 * shapes that don't fit and numbers that are none, in one line. */
bool packed_open(struct packed **out, struct model *, const struct hf_folder *, const struct packed_options *,
                 struct err *);
void packed_close(struct packed *);
/* NULL: no packed weight of that name. */
const struct arch_tensor *packed_find(const struct packed *, const char *name);

/* Ways of packing: packed_integers.c, and packed_floats.c, which also contains what they share. */

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
