/* Trained heads improve the predictions of early layers. A head is applied between a layer's hidden state and the LM
 * head, or in place of the LM head. A set of heads belongs to one model; its file contains the model's hash. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blocks.h"
#include "base/file_replace.h"

struct model;

enum head_kind { HEAD_LENS, HEAD_AFFINE, HEAD_FULL };

struct head_weights { /* of one layer, F32; those that the kind does not have are NULL */
    float *a;         /* (width, width) affine: added is A·h + b */
    float *b;         /* (width) */
    float *weight;    /* (vocab, width) full: in place of the LM head */
};

struct exit_heads {
    struct blocks blocks; /* the memory of all the following */
    enum head_kind kind;  /* affine or full */
    uint32_t n_layers, width, vocab;
    uint64_t model_hash; /* of the model to which they belong */
    char model[64];      /* its name, for messages */
    uint64_t hash;       /* of the file that they were read from */
    /* The draft vocabulary that the heads were trained on: its size, and the hash of the counts (vocab) that ordered it
     * (engine/model/token_rank.h). 0: all tokens. An affine head is of use for any token. */
    uint32_t draft_vocab;
    uint64_t counts_hash;
    struct head_weights *layers; /* (n_layers + 1), indexed by layer 1..L-1; all NULL: none, as at layer L */
    uint32_t *trained;           /* (n_trained) the layers that have a head, ascending */
    size_t n_trained;
    float *values;              /* owns all of them, in the order of `trained` */
    size_t n_values, per_layer; /* number of all values, and of those of a layer */
};

/* Makes heads for n layers, which ascend from 1 to L-1, or for all of these (layers NULL): affine heads that change
 * nothing (A = 0, b = 0), or full heads that are zero until the caller copies the LM head. */
bool exit_heads_new(struct exit_heads **, enum head_kind, const struct model *, const uint32_t *layers, size_t n,
                    struct err *);
void exit_heads_free(struct exit_heads *);
/* The head of trained layer i. */
static inline const struct head_weights *
exit_heads_of(const struct exit_heads *h, size_t i)
{
    return &h->layers[h->trained[i]];
}

/* The file is in the safetensors format: layers.{l}.A and .b, or layers.{l}.weight, in F32, and metadata with the
 * model's name, the layers if not all have a head, and the draft vocabulary. Writing replaces an earlier file
 * completely or not at all. */
extern const struct file_kind exit_heads_file;
bool exit_heads_write(const struct exit_heads *, const char *path, struct err *);
/* Fails with one line if the file contains heads of another model, or no heads. */
bool exit_heads_read(struct exit_heads **, const char *path, const struct model *, struct err *);

const char *head_kind_name(enum head_kind);              /* "lens", "affine", "full" */
bool head_kind_from(const char *name, enum head_kind *); /* affine and full */
