/* The architectures that this program runs, and how a model of one is put together from what a file holds.
 *
 * A model comes as a GGUF file (arch_gguf.c) or as a Hugging Face folder (arch_hf.c). They differ in what numbers and
 * tensors are called, not in which there are: a struct arch_source says what the names are and finds what they name, and
 * arch_read_numbers() and arch_read_tensors() ask for each, check it against the others, and fill the model's description. */
#ifndef ENGINE_ARCH_ARCH_H
#define ENGINE_ARCH_ARCH_H

#include "engine/base/slice.h"
#include "engine/model/model.h"

struct gguf;
struct hf_folder;
struct packed;

struct
    arch_rename { /* what a tensor of a layer is called, without its ending; of several the first that is there; ends with NULL */
    enum layer_tensor which;
    const char *name;
};

/* Tensors that others are rows of: q, k and v one under the other, or those of each key-value head with its queries; gate and
 * up. NULL: they are apart. */
struct arch_fused {
    const char *qkv, *gate_up;
    bool by_group;
};

/* A mixture of experts: how rows are routed, where the file doesn't say, and what config.json's and Hugging Face's names leave
 * open. Which layers have experts is seen from their routers. */
struct arch_experts {
    enum routing routing;
    bool renormalised, gguf_renormalised; /* config.json's, GGUF's, where the file says nothing of it */
    bool says;                            /* a config.json's norm_topk_prob counts */
    const char *each[3]; /* Hugging Face's gate, up and down of one expert, a number for "%u"; NULL: as Qwen has them */
    const char *gate_up[2], *down[2]; /* … of all in one tensor each, whole names; NULL: as transformers 5 has most */
    const char *gate_up_bias, *down_bias; /* or NULL */
    bool crosswise;                       /* those are (inputs, outputs), and gate and up take turns */
    const char
        *stacks[3]; /* gate, up and down of all in one tensor each, down's (inputs, outputs); NULL: they aren't */
    const char *shared[3]; /* the expert that all rows go to; NULL: as Qwen has it. Its gate and up may be one tensor */
};

enum arch_traits {
    ARCH_NORMS_LESS_ONE = 1 << 0,     /* Hugging Face's norms are stored without the 1 that is added to them */
    ARCH_NORMS_OF_ONES = 1 << 1,      /* norms have no weights */
    ARCH_EMBEDDING_BY_WIDTH = 1 << 2, /* the embedding is scaled by sqrt(width) */
    ARCH_TIED = 1 << 3,               /* head and embedding, where a config.json doesn't say */
    ARCH_WINDOWED = 1 << 4,           /* a config.json's sliding_window counts without use_sliding_window */
    ARCH_WINDOWS_TURN = 1 << 5,       /* layers that see everything don't rotate, if there are others */
    ARCH_LOGITS_DIVIDED = 1 << 6,     /* GGUF's logit_scale, as config.json's logits_scaling, divides */
    ARCH_LEARNED = 1 << 7,      /* positions are learned: a matrix of them is added to the embedding, nothing rotates */
    ARCH_COLUMNS = 1 << 8,      /* Hugging Face's matrices of layers lie transposed (GPT-2's Conv1D) */
    ARCH_MULTI_QUERY = 1 << 9,  /* one key-value head, where config.json's multi_query isn't false */
    ARCH_LOOKS_AHEAD = 1 << 10, /* further layers, which guess further tokens, are left alone */
    ARCH_YARN_IN_PART = 1 << 11,  /* YaRN's bounds aren't rounded; GGUF files don't say so */
    ARCH_WINDOWS_PLAIN = 1 << 12, /* layers with a window turn as if RoPE weren't stretched; GGUF files don't say so */
    ARCH_LEANS = 1 << 13,         /* positions are told by ALiBi: nothing rotates */
    ARCH_CLIPS = 1 << 14,         /* a config.json's clip_qkv counts */
    ARCH_EMBEDDING_NORM = 1 << 15,
    /* Layers with a window where a config.json has no list of them: those behind the first max_window_layers; or every other one
     * among them, from the first on (transformers has Qwen 2 MoE so). */
    ARCH_WINDOWS_LATE = 1 << 16,
    ARCH_WINDOWS_ODD = 1 << 17,
};

/* An architecture, as data. Zero is what Llama has. */
struct arch {
    const char *gguf;           /* general.architecture; NULL: GGUF files of it are not read */
    const char *hf;             /* config.json's model_type */
    enum rope_layout gguf_rope; /* ADJACENT where converters permute the rows of Q and K */
    enum rope_layout hf_rope;
    uint32_t needs, may;     /* optional tensors of a layer (1 << enum layer_tensor) that it has, that it may have, */
    uint32_t lacks;          /* and usual ones that it has not */
    uint32_t usual_head_dim; /* when a config.json doesn't say; 0: width / heads */
    uint32_t usual_window;   /* the same; 0: none */
    uint32_t usual_heads, usual_kv_heads, usual_vocab; /* the same; 0: it has to */
    double usual_base;                                 /* RoPE's; the same; 0: 10000 */
    uint32_t usual_ctx;                                /* the same; 0: 2048 */
    uint32_t ffn_by_width;                             /* the same: so many times the width; 0: it has to */
    unsigned traits;                                   /* enum arch_traits */
    uint32_t full_every; /* of layers with windows every nth sees everything, where the file doesn't say; 0: none */
    uint32_t unrotated_every;               /* every nth layer doesn't rotate, where the file doesn't say */
    double usual_eps;                       /* where a config.json doesn't say; 0: it has to */
    double usual_part;                      /* of a head that turns, where the file doesn't say; 0: all */
    struct model_form form;                 /* activation, and what else the file doesn't say */
    const struct arch_rename *renames;      /* or NULL */
    const struct arch_rename *gguf_renames; /* of GGUF's, or NULL */
    const struct arch_names *hf_names;      /* or NULL: as Llama's */
    struct arch_fused hf_fused, gguf_fused; /* "self_attn.qkv_proj" */
    const struct arch_experts *experts;     /* or NULL: there are none */
};

/* By general.architecture, or by model_type; NULL with a message that names it. */
const struct arch *arch_of_gguf(const char *path, struct slice name, struct err *);
const struct arch *arch_of_hf(const char *path, const char *model_type, struct err *);
/* Says of an architecture that isn't among them what it is (unsupported.c). */
void arch_unsupported(const char *path, struct slice name, struct err *);

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
    ARCH_NORM_EPS, /* LayerNorm's */
    ARCH_ATTENTION_CAP,
    ARCH_LOGIT_CAP,
    ARCH_EMBEDDING_SCALE,
    ARCH_RESIDUAL_SCALE,
    ARCH_ATTENTION_SCALE,
    ARCH_LOGIT_SCALE,
    ARCH_EXPERTS_USED, /* by a row */
    ARCH_EXPERT_FFN,
    ARCH_SHARED_FFN,     /* of the expert that all rows go to; */
    ARCH_SHARED_EXPERTS, /* or of how many it is made */
    ARCH_EXPERT_GROUPS,
    ARCH_GROUPS_USED,
    ARCH_EXPERT_SCALE,
    ARCH_LAYERS_AHEAD, /* among the layers, those that guess further tokens */
    ARCH_CLIP,
    ARCH_ALIBI,
    ARCH_NUMBERS
};

struct arch_names {
    const char *numbers[ARCH_NUMBERS];         /* NULL: the format has no name for it */
    const char *embedding, *final_norm, *head; /* tensors */
    const char *positions;                     /* of architectures that learn them */
    const char *embedding_norm;                /* of those that have one */
    const char *layer;                         /* "blk.": a layer's number, a point and the tensor's name follow */
    enum layer_naming naming;                  /* of a layer's tensors */
    const char *computable[9];                 /* parts of names of tables that needn't be read; may end with NULL */
    const char *where;                         /* "metadata": where numbers stand */
    const char *remedy;                        /* "convert the model again" */
};

/* Of folders of an architecture. */
struct arch_names arch_hf_names(const struct arch *);

enum arch_value { VALUE_MISSING, VALUE_WHOLE, VALUE_REAL, VALUE_OTHER };

struct arch_tensor {
    const unsigned char *data; /* NULL for a type whose size is not known */
    bool mapped;               /* as in struct tensor */
    const char *type_name;
    enum weight_type type; /* WEIGHT_TYPES: one that no backend computes with */
    uint64_t planes, rows,
        cols;     /* matrices one after the other, 0: one; a vector is one row; rows and cols 0: more dimensions */
    size_t index; /* among the source's tensors */
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

/* A whole number from `least` to `most` of that name; otherwise = UINT32_MAX: it has to be there. */
bool arch_read_whole(const struct arch_source *, enum arch_number, uint32_t otherwise, uint32_t least, uint32_t most,
                     uint32_t *out, struct err *);
/* A real number; where there is none, `otherwise`. */
bool arch_read_real(const struct arch_source *, enum arch_number, double otherwise, double *out, struct err *);
/* desc.form.experts, behind sizes; a model of experts is refused where the architecture has none. */
bool arch_read_experts(struct model *, const struct arch_source *, struct err *);
/* Sizes, RoPE's base (unscaled), epsilon, window. The model has its path already, desc.rope, and desc.vocab where the
 * tokenizer decides it; 0 asks the file. */
bool arch_read_numbers(struct model *, const struct arch_source *, struct err *);
/* Layers without tensors yet, in the architecture's usual form; behind arch_read_numbers(). */
bool arch_make_layers(struct model *, const struct arch_source *, struct err *);
/* Tensors, counts of parameters, rho. `tied`: the head is the embedding whatever else the file holds. `used` (n_tensors)
 * is set for each that was taken; one that is left over and would change what the model says is an error. */
bool arch_read_tensors(struct model *, const struct arch_source *, bool tied, bool *used, struct err *);
/* Sets desc.rope_scale for linear scaling by a factor; refuses one that makes no sense. */
bool arch_scale_linear(struct model *, double factor, struct err *);

/* YaRN (Peng et al. 2023): frequencies that turn more than `fast` times within the `old` positions of the first training stay,
 * those that turn less than `slow` times are interpolated by `factor`, those between in part; attention is sharpened by `gain`
 * (NAN: 1 + ln(factor) / 10). `whole`: the bounds between them are whole dimensions. */
struct arch_yarn {
    double factor, fast, slow, old, gain;
    bool whole;
};
bool arch_scale_yarn(struct model *, const struct arch_yarn *, struct err *);
/* desc.rope_factors to be filled, (rope_dims / 2); NULL: no memory. */
float *arch_divisors(struct model *, struct err *);
/* Which layers have a window, and which rotate: as the architecture has it. desc.layers is there, and writable. */
void arch_usual_layers(struct model *, const struct arch *, struct layer_desc *layers);
/* What a layer's window says of its rotation, once it is known which layers have one. */
void arch_rotations(struct model *, const struct arch *, struct layer_desc *layers);

enum { ARCH_XIELU_ALPHA_P, ARCH_XIELU_ALPHA_N, ARCH_XIELU_BETA, ARCH_XIELU_EPS, ARCH_XIELU_NUMBERS };
/* Of a layer, counted from 0: its numbers as files have them. desc.layers is there, and writable. */
bool arch_set_xielu(struct model *, uint32_t layer, const double stored[ARCH_XIELU_NUMBERS], struct err *);

/* ---- formats ---- */

/* Everything but name, hash and tokenizer, whose size is in desc.vocab. What a folder has packed is unpacked beforehand
 * (packed.h); NULL: nothing is. */
bool arch_read_gguf(struct model *, const struct gguf *, const struct arch *, struct err *);
bool arch_read_hf(struct model *, const struct hf_folder *, const struct packed *, struct err *);

#endif
