/* An adapter being merged: lora.c says into which matrices, lora_experts.c into which of experts, lora_pair.c computes. */
#ifndef ENGINE_LORA_LORA_INTERNAL_H
#define ENGINE_LORA_LORA_INTERNAL_H

#include "engine/arch/arch_take.h"
#include "engine/lora/lora_file.h"

struct merging {
    struct model *model;
    const struct arch *arch;
    struct lora_file file;
    double scale;
    bool exact;
    uint32_t n, changed; /* matrices that are merged, that are held otherwise than before */
    struct err *err;
};

/* One matrix, and where among B's rows its own are. */
struct merge_target {
    struct tensor *tensor;
    const struct arch_slice *part;
    uint32_t turned; /* dimensions of heads whose pairs lie otherwise in the adapter; 0: none do */
};

/* Adds a pair to it; `stem` is for messages. */
bool lora_merge_pair(struct merging *, const struct merge_target *, const struct lora_pair *, const char *stem);
/* (rows, cols), memory of the caller; NULL: there is none. */
float *lora_in_f32(const struct arch_tensor *);
/* What the adapter adds to a layer's experts, the layer counted from 0; nothing where it has none. */
bool lora_merge_experts(struct merging *, uint32_t layer);

#endif
