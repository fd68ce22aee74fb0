/* A model: its description for a backend, its tokenizer, and facts for display. engine/model/model_open.h opens
 * one. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/blocks.h"
#include "kernels/backend.h"

struct gguf;
struct hf_folder;
struct synthetic_weights;
struct tokenizer;

#define MODEL_FEATURES 8 /* most layers that a drafter reads */

/* A layer for multi-token prediction in a model's own file: a drafter without a name. Its experts belong to the
 * model. */
struct model_ahead {
    struct layer_desc layer;
    struct drafter_desc form;
    struct tensor embedding, final_norm, head; /* its own, or the model's */
    uint64_t parameters, parameters_of[WEIGHT_TYPES];
    uint32_t tensors_of[WEIGHT_TYPES];
};

struct model {
    char *path;
    char name[64], arch[32], types[64]; /* "fables-14m", "llama", "Q8_0, F32": printable text */
    uint64_t hash;                      /* FNV-1a over headers, metadata and a sample of the tensors' bytes */
    uint64_t file_bytes, parameters;
    uint64_t parameters_of[WEIGHT_TYPES]; /* how many of them are stored in each type */
    uint32_t tensors_of[WEIGHT_TYPES];
    char merged[512];                   /* adapters: "adapter x 0.5: 28 matrices"; "": none */
    uint32_t merged_otherwise;          /* matrices that merging stored in another type */
    const char *packing;                /* "GPTQ": the packing of the folder's weights; or NULL */
    uint64_t unpacked_of[WEIGHT_TYPES]; /* number of parameters unpacked into memory, by type */
    uint32_t ctx_train;                 /* 0: unknown, as in a vocabulary */
    bool tied;                          /* the head is the embedding */
    bool quantized;                     /* to Q8_0 while it was opened */
    bool vocabulary_only;               /* no weights: desc has only vocab, and the model cannot run */
    double rho; /* parameters of the head / parameters of a layer, of its experts those of one row */
    /* Of a feature drafter (desc.drafter): the layers of its target whose outputs it reads, from 0, the embedding. A
     * tensor that it shares with its target is part of parameters_of, and not of parameters. */
    uint32_t n_features, features[MODEL_FEATURES];
    const struct model_ahead *ahead; /* the model's own drafter; or NULL */
    char ahead_refused[400];         /* why the layer for multi-token prediction in its file is not used, or "" */
    struct model_desc desc;          /* tensors point into the mapped file, or into memory of the model's own */
    struct tokenizer *tokenizer;
    struct gguf *file;                   /* owns the map; one of these, */
    struct hf_folder *folder;            /* the other is NULL */
    struct synthetic_weights *synthetic; /* `file` is a vocabulary in memory, the matrices are formulas; else NULL */
    struct blocks blocks;                /* memory that is freed with the model */
};

uint32_t model_recurrent_layers(const struct model *);
/* Returns the bytes of so many states of recurrent layers, and of the inputs of so many rows' updates; 0 without such
 * layers. */
uint64_t model_state_bytes(const struct model *, uint32_t states, uint32_t rows);
/* Bytes of keys and values for a context of n positions: F16, or F32 if exact. */
uint64_t model_kv_bytes(const struct model *, uint32_t ctx, bool exact);
/* Bytes of all weights in a backend: in their types, or in F32 if exact; with `quantize` also the quantised copies. An
 * embedding that is not the head stays in its file. */
uint64_t model_weight_bytes(const struct model *, bool exact, bool quantize);

/* Parameters that a row does not use: those of the experts that it is not routed to. */
uint64_t model_idle_parameters(const struct model *);
/* Bytes that a step of one row reads of a layer's weights, on average, and that a head call reads: in their types, or
 * in F32 if exact. */
double model_layer_bytes(const struct model *, bool exact);
double model_head_bytes(const struct model *, bool exact);
/* Bytes that feeding rows of a drafter reads (context_feed()), in a block drafter also for keys and values; 0: it is
 * none. */
double model_feed_bytes(const struct model *, bool features, bool exact);
/* Bytes that a call which adds the bias of a block drafter's Markov head reads; 0: there is none. */
double model_markov_bytes(const struct model *, bool exact);
/* Applies the confidence head of a block drafter to a row's hidden state after the final norm, the first `width` numbers
 * of x, which has room for all that the head reads. `before`: the token before the row's draft. */
double model_confidence(const struct drafter_desc *, uint32_t width, float *x, token_t before);
/* The rows whose features a target keeps until the drafter reads them, and the most bytes that they take at ctx
 * positions, of all sequences. */
uint32_t model_features_window(const struct model *drafter, const struct model *target);
uint64_t model_features_bytes(const struct model *drafter, const struct model *target, uint32_t ctx);

/* Replaces the data of one of the model's tensors by data of this type in the model's memory. */
void model_replace(struct model *, struct tensor *, const void *data, enum weight_type);

/* Writes for which model a file was made that does not fit `m`: "another model, NAME", or why the weights differ if the
 * names are equal. Returns out. */
#define MODEL_NOT 160 /* size of `out` */
const char *model_not(const struct model *m, const char *made_for, char *out, size_t n);

/* Converts every matrix in F32, F16 or BF16 with a multiple of 32 columns to Q8_0: per block a scale d = max|x| / 127
 * in F16 and x / d rounded, halves away from zero, as in ggml. Sets `quantized` if it converted any. Fails if a weight
 * is not finite. */
bool model_quantize(struct model *, struct err *);
/* The same for one block, of 2 + MODEL_Q8_BLOCK bytes; returns false if a weight is infinite or NaN. */
#define MODEL_Q8_BLOCK 32u
bool model_quantize_block(const float x[MODEL_Q8_BLOCK], unsigned char *out);

/* A hash that distinguishes models: FNV-1a over small data and over a sample of large tensors. */

#define HASH_START 0xcbf29ce484222325u

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n);
/* Hashes a mapped file: its header (bytes below data_start), evenly spaced pieces of its data, and its size. */
uint64_t hash_map(uint64_t hash, const unsigned char *map, uint64_t bytes, uint64_t data_start);

/* A model's final norm on the host, which is applied before the LM head and before an acceptance head. */

struct final_norm {
    uint32_t width;
    float eps;
    bool layer_norm; /* the mean is subtracted first */
    float *weight;   /* (width), owned; followed by the bias (width), zeros if there is none */
};

/* Copies the weights, of any type; the caller calls final_norm_free(). */
bool final_norm_open(struct final_norm *, const struct model_desc *, struct err *);
void final_norm_free(struct final_norm *);

/* out = h / rms(h) ∘ weight + bias, all (width), with h less its mean with LayerNorm; out may be h. Returns
 * 1 / rms(h). */
float final_norm_apply(const struct final_norm *, const float *h, float *out);
