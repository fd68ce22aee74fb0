/* Packed weights of Hugging Face folders: FP8 with scales, integers of GPTQ, AWQ and compressed-tensors, bitsandbytes'
 * 4 bits, and experts in MXFP4. They are unpacked when the model is opened, each to the smallest type that fits.
 *
 * Integers whose blocks of 32 have one F16 scale become Q4_0 (up to 3 bits, or 4 bits with the zero at 8) or Q8_0 (8
 * bits with the zero at 128). 4 bits with other zeros become Q4_1, whose offset is rounded to F16. Everything else
 * becomes F16. With `exact`, weights that would be rounded become Q8_0 (4 bits in such blocks) or F32. Rounding to F16
 * changes a weight by at most 2^-11 of the largest value of its group. Values outside F16's range become F32. MXFP4 is
 * not converted, but in a stack of experts with alternating rows of gate and up all rows of gate are moved to the
 * front. */
#pragma once

#include "engine/model/arch/arch.h"
#include "engine/model/files/hf_folder.h"

struct packed_weight {
    char *name; /* "….weight" or "….gate_up_proj", the name that the unpacked tensor would have */
    struct arch_tensor tensor;
};

struct packed {
    struct packed_weight *weights; /* (n_weights) sorted by name */
    size_t n_weights;
    bool *pieces; /* (folder's n_tensors) true: belongs to a packed weight, but is not its codes */
};

struct packed_options {
    bool exact;    /* unpack without rounding */
    bool glance;   /* only types and sizes are needed: the weights' memory is not written */
    uint64_t room; /* most bytes that the unpacked weights may take */
};

/* Unpacks the packed weights of a folder into the model's memory, as config.json's quantization_config describes. Sets
 * *out to NULL if no weights are packed. Fails on unsupported packings, mismatched shapes and scales that are not
 * finite, and if the weights need more than `room`. */
bool packed_open(struct packed **out, struct model *, const struct hf_folder *, const struct packed_options *,
                 struct err *);
void packed_close(struct packed *);
/* Returns the unpacked weight of this name; NULL if there is none. */
const struct arch_tensor *packed_find(const struct packed *, const char *name);

/* The packings are in packed_integers.c and packed_floats.c, which also contains the shared functions. */

enum packing {
    PACKING_NONE,
    PACKING_FP8,
    PACKING_GPTQ,
    PACKING_AWQ,
    PACKING_AWQ_ROWS, /* AWQ's layout "gemv", for matrix-vector products */
    PACKING_COMPRESSED,
    PACKING_BYTES,
    PACKING_MXFP4,
    PACKING_BNB4
};

struct packing_setting { /* from config.json's quantization_config */
    enum packing kind;
    uint32_t bits;
    uint32_t group;                  /* inputs that share a scale; 0: all inputs of a row */
    uint32_t block_rows, block_cols; /* FP8: size of a block that shares a scale; 0: not specified */
    bool zeros_as_they_are;          /* GPTQ's second version; the first stores them less 1 */
    bool zeros_in_the_middle;        /* ignore stored zeros, use 1 << (bits - 1) */
};

/* One packed weight: its tensors in the folder and the type that it becomes. */
struct packed_job {
    const struct model *model;
    const struct hf_folder *folder;
    const struct packing_setting *setting;
    const char *stem; /* "model.layers.0.mlp.up_proj" */
    int stem_len;
    bool exact;
    const struct safetensor *codes, *scales, *zeros, *order; /* zeros and order may be NULL */
    uint32_t rows, cols; /* of the weight; in a stack the rows of all matrices together */
    uint32_t planes;     /* number of matrices in a stack; 0: not a stack */
    enum weight_type type;
    struct err *err;
};

/* Find a weight's tensors, check that they fit each other, and choose the type. */
bool packed_fp8_plan(struct packed_job *);
bool packed_integers_plan(struct packed_job *);
bool packed_mxfp4_plan(struct packed_job *);
bool packed_bnb4_plan(struct packed_job *);
/* Unpack into `out`, (rows, cols) of the chosen type. */
bool packed_fp8_unpack(const struct packed_job *, unsigned char *out);
bool packed_integers_unpack(const struct packed_job *, unsigned char *out);
bool packed_mxfp4_unpack(const struct packed_job *, unsigned char *out);
bool packed_bnb4_unpack(const struct packed_job *, unsigned char *out);

/* Sets an error that begins with the folder and the weight's name. Returns false. */
bool packed_refuse(const struct packed_job *, const char *why);
/* Returns another tensor of the weight, such as "weight_scale" or "_scales"; NULL if there is none. */
const struct safetensor *packed_piece(const struct packed_job *, const char *ending);
/* Converts n elements of an unquantised tensor to F32, from element `first`. */
void packed_reals(const struct safetensor *, size_t first, size_t n, float *out);
