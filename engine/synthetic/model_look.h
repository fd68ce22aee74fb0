/* What can be told of a model without running it, for lists of models. */
#ifndef ENGINE_SYNTHETIC_MODEL_LOOK_H
#define ENGINE_SYNTHETIC_MODEL_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/base/err.h"

/* All texts can be printed. */
struct model_look {
    bool runs;
    char why[400]; /* it doesn't, or hardly fits into memory; without the path in front */
    /* Of one that runs: */
    char name[64], arch[32], types[64], tokenizer[64];
    uint32_t layers, vocab, ctx_train;
    uint32_t ctx; /* the longest context that fits into memory, halved from its own; 0: not even a short one does */
    uint64_t bytes, parameters;
    bool chats; /* it has a chat template */
};

/* Opens it as a run would, so that what is said of it is so, and closes it again. available: bytes of memory that it has
 * to fit into. */
void model_look(struct model_look *, const char *path, uint64_t available);

#endif
