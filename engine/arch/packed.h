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

#endif
