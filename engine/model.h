/* A model file opened: its description for a backend, its tokenizer, and what a person wants to know about it. */
#ifndef ENGINE_MODEL_H
#define ENGINE_MODEL_H

#include "kernels/backend.h"

struct tokenizer;

struct model {
    char *path;
    char name[64], arch[32], types[64]; /* "fables-13m", "llama", "Q8_0, F32": printable text */
    uint64_t hash;                      /* FNV-1a over header, metadata and a sample of the tensor bytes */
    uint64_t file_bytes, parameters;
    uint32_t ctx_train;
    double rho;             /* parameters of the head / parameters of a layer */
    struct model_desc desc; /* tensors point into the mapped file */
    struct tokenizer *tokenizer;
    void *source; /* the reader that owns the map */
};

/* Checks every shape against the others. Anything unsupported is one line that names it. */
bool model_open(struct model **, const char *path, struct err *);
void model_close(struct model *);

/* Bytes of KV, hidden ring and weights for a context of n positions. */
uint64_t model_kv_bytes(const struct model *, uint32_t ctx, bool exact);

#endif
