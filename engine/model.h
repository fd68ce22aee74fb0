/* A model file opened: its description for a backend, its tokenizer, and what a person wants to know about it. */
#ifndef ENGINE_MODEL_H
#define ENGINE_MODEL_H

#include "kernels/backend.h"

struct gguf;
struct tokenizer;

struct model {
    char *path;
    char name[64], arch[32], types[64]; /* "fables-13m", "llama", "Q8_0, F32": printable text */
    uint64_t hash;                      /* FNV-1a over header, metadata and a sample of the tensor bytes */
    uint64_t file_bytes, parameters;
    uint64_t parameters_of[WEIGHT_TYPES]; /* how many of them are stored in each type */
    uint32_t tensors_of[WEIGHT_TYPES];
    uint32_t ctx_train;
    bool tied;              /* the head is the embedding */
    double rho;             /* parameters of the head / parameters of a layer */
    struct model_desc desc; /* tensors point into the mapped file */
    struct tokenizer *tokenizer;
    struct gguf *file; /* owns the map */
};

/* Checks every shape against the others. Anything unsupported is one line that names it. */
bool model_open(struct model **, const char *path, struct err *);
/* The same on a parsed file, which becomes the model's, and is closed when this fails. */
bool model_read(struct model **, struct gguf *, struct err *);
void model_close(struct model *); /* not before every backend's weights made from it are unloaded */

/* Bytes of keys and values for a context of n positions: F16, or F32 if exact. */
uint64_t model_kv_bytes(const struct model *, uint32_t ctx, bool exact);

#endif
