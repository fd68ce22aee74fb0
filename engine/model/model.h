/* A model: its description for a backend, its tokenizer, and what a person wants to know about it. engine/synthetic/
 * model_open.h opens one. */
#ifndef ENGINE_MODEL_MODEL_H
#define ENGINE_MODEL_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"

struct gguf;
struct hf_folder;
struct model_block;
struct synthetic_weights;
struct tokenizer;

struct model {
    char *path;
    char name[64], arch[32], types[64]; /* "fables-14m", "llama", "Q8_0, F32": printable text */
    uint64_t hash;                      /* FNV-1a over headers, metadata and a sample of the tensors' bytes */
    uint64_t file_bytes, parameters;
    uint64_t parameters_of[WEIGHT_TYPES]; /* how many of them are stored in each type */
    uint32_t tensors_of[WEIGHT_TYPES];
    char merged[512];          /* adapters: "adapter x 0.5: 28 matrices"; "": none */
    uint32_t merged_otherwise; /* matrices that are held in another type for that */
    const char *packing;       /* "GPTQ": as what a folder had packed it; or NULL */
    uint64_t
        unpacked_of[WEIGHT_TYPES]; /* how many of them are in memory of the model's own, unpacked from a folder's */
    uint32_t ctx_train;            /* 0: unknown, as in a vocabulary */
    bool tied;                     /* the head is the embedding */
    bool quantized;                /* to Q8_0 while it was opened */
    bool vocabulary_only;          /* no weights: desc has nothing but vocab, and nothing can be run */
    double rho;                    /* parameters of the head / parameters of a layer, of its experts those of one row */
    struct model_desc desc;        /* tensors point into the mapped file, or into memory of the model's own */
    struct tokenizer *tokenizer;
    struct gguf *file;                   /* owns the map; one of these, */
    struct hf_folder *folder;            /* the other is NULL */
    struct synthetic_weights *synthetic; /* `file` is a vocabulary in memory, the matrices are formulas; else NULL */
    struct model_block *blocks;
};

/* Bytes of keys and values for a context of n positions: F16, or F32 if exact. */
uint64_t model_kv_bytes(const struct model *, uint32_t ctx, bool exact);
/* Bytes of all weights as a backend holds them: in their own types, or in F32 if exact; if those that can be are to be
 * quantised first, also what that takes. An embedding that is not the head, too, stays in its file. */
uint64_t model_weight_bytes(const struct model *, bool exact, bool quantize);

/* Parameters that a row does not go through: of the experts that it does not go to. */
uint64_t model_idle_parameters(const struct model *);
/* Bytes that a step of one row reads of a layer's weights, in the mean, and that a head call reads: in their own types, or in F32. */
double model_layer_bytes(const struct model *, bool exact);
double model_head_bytes(const struct model *, bool exact);

/* Memory, aligned to 64 bytes and not set to anything, that is the model's and goes with it; NULL: there is no more. */
void *model_take(struct model *, size_t bytes);

/* Says for which model a file was made that is not for `m`: "another model, NAME", or, where the names are the same, why the weights
 * differ. Returns out. */
#define MODEL_NOT 160 /* bytes that it writes at most */
const char *model_not(const struct model *m, const char *made_for, char *out, size_t n);

/* Replaces every matrix in F32, F16 or BF16 whose rows 32 divides by Q8_0: per block a scale d = max|x| / 127 in F16 and
 * x / d rounded, halves away from zero, as ggml defines it. Sets `quantized` if there was one. Refuses weights that are not
 * finite. */
bool model_quantize(struct model *, struct err *);

void model_free_blocks(struct model *); /* what model_take() gave: a part of model_close() */

/* A hash that distinguishes models: FNV-1a over small data and over a sample of large tensors. */

#define HASH_START 0xcbf29ce484222325u

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n);
/* A mapped file: all of its header (bytes below data_start), pieces of its data evenly spaced, and its size. */
uint64_t hash_map(uint64_t hash, const unsigned char *map, uint64_t bytes, uint64_t data_start);

/* A model's final norm on the host, which is applied before the LM head and before an acceptance head. */

struct final_norm {
    uint32_t width;
    float eps;
    bool centred;  /* the mean is taken off first */
    float *weight; /* (width), owned; followed by the bias (width), zeros if there is none */
};

/* Copies the weights, whatever their type; to be freed with final_norm_free(). */
bool final_norm_open(struct final_norm *, const struct model_desc *, struct err *);
void final_norm_free(struct final_norm *);

/* out = h / rms(h) ∘ weight + bias, all (width), of h less its mean where the norm is centred; out may be h. Returns
 * 1 / rms(h). */
float final_norm_apply(const struct final_norm *, const float *h, float *out);

#endif
