/* Reads an adapter's file, in PEFT's or GGUF's format, as pairs of low-rank matrices by the name of the target
 * tensor. */
#pragma once

#include "engine/model/arch/arch.h"
#include "engine/model/arch/arch_tensors.h"

struct safetensors;
struct cJSON;

struct lora_file {
    char path[512];
    enum layer_naming naming;
    struct safetensors *tensors; /* PEFT: the weights */
    struct cJSON *config;        /* PEFT: adapter_config.json */
    struct gguf *gguf;           /* GGUF: the file; NULL for PEFT */
    bool *used;                  /* (n_tensors) tensors that a pair contained */
    size_t n_tensors;
    double alpha;
    uint32_t rank; /* rank of all pairs; 0: it differs between pairs */
    bool root;     /* the factor is alpha / sqrt(r) (rsLoRA) */
    bool unscaled; /* no alpha: the factor is 1 */
    uint64_t hash;
};

struct lora_pair {
    struct arch_tensor a, b; /* (r, cols), (rows, r) */
};

/* Opens an adapter. Fails if it needs more than low-rank pairs, or is a GGUF file for another architecture. */
bool lora_file_open(struct lora_file *, const char *path, const struct arch *, struct err *);
void lora_file_close(struct lora_file *);
/* Finds the pair for a tensor and marks its matrices as used. `stem` is the tensor's name without ".weight". Each of
 * the two consists of `planes` matrices, with `of` times the adapter's rank: a stack of n pairs has n planes, and a
 * parameter of n experts is one plane, (n * r, cols) and (rows, r * n). Sets *there to false if the adapter has no pair
 * for the tensor. Fails if only one of the two exists, or if rank or type are wrong. */
bool lora_file_pair(struct lora_file *, const char *stem, uint64_t planes, uint64_t of, struct lora_pair *, bool *there,
                    struct err *);
/* Returns the factor of B A for a rank. */
double lora_file_factor(const struct lora_file *, uint32_t rank);
/* Returns the name of an unused tensor, written to `shown`; NULL if all are used. */
const char *lora_file_leftover(const struct lora_file *, char *shown, size_t n);
