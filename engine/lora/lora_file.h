/* An adapter's file, whichever format: pairs of matrices by the name of what they add to. */
#ifndef ENGINE_LORA_LORA_FILE_H
#define ENGINE_LORA_LORA_FILE_H

#include "engine/arch/arch.h"
#include "engine/arch/arch_hf.h"

struct safetensors;
struct cJSON;

struct lora_file {
    char path[512];
    enum layer_naming naming;
    struct safetensors *tensors; /* PEFT's, */
    struct cJSON *config;        /* … and its adapter_config.json; or */
    struct gguf *gguf;           /* GGUF's */
    bool *used;                  /* (n_tensors) */
    size_t n_tensors;
    double alpha;
    uint32_t rank; /* that all have; 0: each its own */
    bool root;     /* alpha / sqrt(r) (rsLoRA) */
    bool unscaled; /* no alpha: B A as it is */
    uint64_t hash;
};

struct lora_pair {
    struct arch_tensor a, b; /* (r, cols), (rows, r) */
};

/* Refuses what is more than such pairs, or of an architecture other than the model's. */
bool lora_file_open(struct lora_file *, const char *path, const struct arch *, struct err *);
void lora_file_close(struct lora_file *);
/* Marks both as used. *there is false where the adapter has none for it; false: one of the two alone. `stem`: a tensor's name
 * without ".weight". */
bool lora_file_pair(struct lora_file *, const char *stem, struct lora_pair *, bool *there, struct err *);
/* The same of n matrices each, one after the other; and of n in one, (n * r, cols) and (rows, r * n). */
bool lora_file_stack(struct lora_file *, const char *stem, uint32_t n, struct lora_pair *, bool *there, struct err *);
bool lora_file_parameter(struct lora_file *, const char *stem, uint32_t n, struct lora_pair *, bool *there,
                         struct err *);
/* What B A is multiplied by, for a rank. */
double lora_file_factor(const struct lora_file *, uint32_t rank);
/* The name of one that nothing has used; NULL: all are. */
const char *lora_file_leftover(const struct lora_file *, char *shown, size_t n);

#endif
