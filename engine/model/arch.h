/* The architectures that this program runs, and how a model of one is put together from what a file holds.
 *
 * A model comes as a GGUF file (arch_gguf.c) or as a Hugging Face folder (arch_hf.c). They differ in what numbers and
 * tensors are called, not in which there are: a struct arch_source says what the names are and finds what they name, and
 * arch_read_numbers() and arch_read_tensors() ask for each, check it against the others, and fill the model's description. */
#ifndef ENGINE_MODEL_ARCH_H
#define ENGINE_MODEL_ARCH_H

#include "engine/base/slice.h"
#include "engine/model/model.h"

struct gguf;
struct hf_folder;

struct arch {
    const char *gguf;           /* general.architecture */
    const char *hf;             /* config.json's model_type */
    enum rope_layout gguf_rope; /* ADJACENT where converters permute the rows of Q and K; Hugging Face's are HALVES */
    uint32_t needs, may;        /* optional tensors of a layer (1 << enum layer_tensor) that it has, that it may have */
    uint32_t usual_head_dim;    /* when a config.json doesn't say; 0: width / heads */
};

/* By general.architecture, or by model_type; NULL with a message that names it. */
const struct arch *arch_of_gguf(const char *path, struct slice name, struct err *);
const struct arch *arch_of_hf(const char *path, const char *model_type, struct err *);

/* ---- what a format says ---- */

enum arch_number {
    ARCH_LAYERS,
    ARCH_CTX,
    ARCH_WIDTH,
    ARCH_FFN,
    ARCH_VOCAB,
    ARCH_HEADS,
    ARCH_KV_HEADS,
    ARCH_HEAD_DIM,
    ARCH_VALUE_DIM,
    ARCH_ROPE_DIMS,
    ARCH_ROPE_BASE,
    ARCH_RMS_EPS,
    ARCH_WINDOW,
    ARCH_EXPERTS,
    ARCH_NUMBERS
};

struct arch_names {
    const char *numbers[ARCH_NUMBERS];         /* NULL: the format has no name for it */
    const char *embedding, *final_norm, *head; /* tensors */
    const char *layer;                         /* "blk.": a layer's number, a point and the tensor's name follow */
    enum layer_naming naming;                  /* of a layer's tensors */
    const char *computable[3];                 /* parts of names of tables that needn't be read; may end with NULL */
    const char *where;                         /* "metadata": where numbers stand */
    const char *remedy;                        /* "convert the model again" */
};

enum arch_value { VALUE_MISSING, VALUE_WHOLE, VALUE_REAL, VALUE_OTHER };

struct arch_tensor {
    const unsigned char *data; /* NULL for a type whose size is not known */
    const char *type_name;
    enum weight_type type; /* WEIGHT_TYPES: one that no backend computes with */
    uint64_t rows, cols;   /* a vector is one row; both 0: more than two dimensions */
    size_t index;          /* among the source's tensors */
};

struct arch_source {
    const char *path;   /* for messages */
    const char *prefix; /* of the names of numbers: "llama" and a point; or NULL */
    const struct arch *arch;
    const struct arch_names *names;
    const void *file;
    size_t n_tensors;
    enum arch_value (*number)(const struct arch_source *, const char *name, double *out);
    bool (*tensor)(const struct arch_source *, const char *name, struct arch_tensor *out); /* false: there is none */
    void (*tensor_name)(const struct arch_source *, size_t index, const char **name, size_t *len);
};

/* Sizes, RoPE's base (unscaled), epsilon, window. The model has its path already, desc.rope, and desc.vocab where the
 * tokenizer decides it; 0 asks the file. */
bool arch_read_numbers(struct model *, const struct arch_source *, struct err *);
/* Tensors, counts of parameters, rho. `tied`: the head is the embedding whatever else the file holds. `used` (n_tensors)
 * is set for each that was taken; one that is left over and would change what the model says is an error. */
bool arch_read_tensors(struct model *, const struct arch_source *, bool tied, bool *used, struct err *);
/* Sets desc.rope_scale for linear scaling by a factor; refuses one that makes no sense. */
bool arch_scale_linear(struct model *, double factor, struct err *);

/* ---- formats ---- */

/* Everything but name, hash and tokenizer, whose size is in desc.vocab. */
bool arch_read_gguf(struct model *, const struct gguf *, const struct arch *, struct err *);
bool arch_read_hf(struct model *, const struct hf_folder *, struct err *);

#endif
