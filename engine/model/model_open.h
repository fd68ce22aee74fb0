/* Opens a model from a GGUF file, a Hugging Face folder or synthetic weights. Only this module depends on all
 * formats. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/model/model.h"
#include "engine/model/tokenizer/tokenizer.h"

struct model_options {
    bool quantize;           /* matrices in F32, F16 and BF16 become Q8_0, in memory of the model's own */
    bool vocabulary;         /* a file or folder without weights is accepted */
    bool glance;             /* the model is described, not run: packed weights are not unpacked */
    const char *const *lora; /* adapters to be merged, (n_lora): "FILE[:SCALE]" */
    size_t n_lora;
    /* Bytes of memory that the model must fit into (0: not checked), with a context of `ctx` tokens (0: the model's
     * own) for each of `sequences` (0: one); `taken` of them are in use by other models. */
    uint64_t available, taken;
    uint32_t ctx, sequences;
    bool exact;
    /* An EAGLE-3 head is opened as a drafter for this model, which must outlive it; NULL: it is refused. A drafter has
     * no tokenizer. */
    const struct model *target;
};

/* Checks every shape against the others. Fails with one line that names the unsupported feature. */
bool model_open(struct model **, const char *path, struct err *);
bool model_open_with(struct model **, const char *path, const struct model_options *, struct err *);
/* Opens a model without a file (engine/model/synthetic/synthetic.h): "SHAPE[:TYPE],k,acceptance". file_bytes is that of
 * its header. */
bool model_open_synthetic(struct model **, const char *spec, const struct model_options *, struct err *);
/* Opens the target's layer for multi-token prediction (model.ahead) as a drafter for it. */
bool model_open_ahead(struct model **, const struct model *target, const struct model_options *, struct err *);
/* Opens a parsed file, which the model then owns; it is closed on failure. */
bool model_read(struct model **, struct gguf *, struct err *);
/* Returns the number of positions of all contexts together. */
uint32_t model_positions(const struct model *, uint32_t ctx, uint32_t sequences);
void model_close(struct model *); /* after all backends' weights of it were unloaded */

/* Writes the name of the first tensor in the model's file that has a value which is no finite number, for an error
 * message; `size` should be 80 or more. Reads the whole file. Returns false if there is none. */
bool model_broken_tensor(const struct model *, char *name, size_t size);

/* The description of a model in lists of models. Its texts are printable. */
struct model_summary {
    bool runs;
    char why[400]; /* why it does not run, or hardly fits into memory; without the path */
    /* valid if it runs: */
    char name[64], arch[32], types[64], tokenizer[64];
    uint32_t layers, vocab, ctx_train;
    uint32_t ctx; /* the longest context that fits into memory, halved from its own; 0: not even a short one does */
    uint64_t bytes, parameters;
    bool chats; /* it has a chat template */
};

/* Opens the model as a run does, fills in its description and closes it. available: bytes of memory that it has to fit
 * into. */
void model_summary(struct model_summary *, const char *path, uint64_t available);

/* Opens the tokenizer of a Hugging Face folder: tokenizer.json, or else tokenizer.model. */
bool folder_tokenizer_open(struct tokenizer **, const char *folder, struct err *);
