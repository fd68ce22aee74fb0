/* The supported architectures, and the reader that builds a model's description from a file.
 *
 * A model is a GGUF file (arch_gguf.c) or a Hugging Face folder (arch_hf.c). The two formats contain the same numbers
 * and tensors under different names. A struct arch_source contains the names and the look-up functions of a format.
 * arch_read_numbers() and arch_read_tensors() look up each value, check it against the others and store it. */
#pragma once

#include "base/slice.h"
#include "engine/model/model.h"

struct cJSON;
struct gguf;
struct hf_folder;
struct packed;

/* Names of fused tensors. `qkvz` and `ba` are those of a gated delta net: for each key head the rows of q, k, its v and
 * its z, and of its b and its a. `qkv` contains the rows of Q, then K, then V; with `by_group` each key-value head's
 * rows follow the rows of its queries. `gate_up` contains gate, then up. `recurrent` contains all that a recurrent
 * layer makes of its input: in a short convolution b, z and the channels, in Mamba-2 z, the channels and a. NULL: the
 * tensors are separate. */
struct arch_fused {
    const char *qkv, *gate_up;
    bool by_group;
    const char *qkvz, *ba, *recurrent;
};

/* A mixture of experts: the defaults for routing, and Hugging Face's names for the experts' tensors. A layer has
 * experts if it has a router tensor. */
struct arch_experts {
    enum routing routing;
    bool renormalised, gguf_renormalised; /* defaults for config.json and for GGUF */
    bool declares;                        /* config.json's norm_topk_prob is used */
    const char *each[3];                  /* gate, up and down of one expert, "%u" is its number; NULL: Qwen's names */
    const char *gate_up[2], *down[2];     /* full names of the stacks; NULL: transformers 5's */
    const char *gate_up_bias, *down_bias; /* or NULL */
    bool crosswise;                       /* the stacks are (inputs, outputs); gate and up alternate */
    const char *stacks[3];                /* one stack each, down's is (inputs, outputs); or NULL */
    const char *shared[3];                /* the shared expert; NULL: Qwen's names. Its gate and up may be one tensor */
};

enum arch_flags {
    ARCH_NORMS_LESS_ONE = 1 << 0,     /* Hugging Face's norms are stored less 1, which is added to them */
    ARCH_NORMS_OF_ONES = 1 << 1,      /* norms have no weights */
    ARCH_EMBEDDING_BY_WIDTH = 1 << 2, /* the embedding is scaled by sqrt(width) */
    ARCH_TIED = 1 << 3,               /* default for config.json: the head is the embedding */
    ARCH_WINDOWED = 1 << 4,           /* config.json's sliding_window applies without use_sliding_window */
    ARCH_WINDOWS_ROTATE = 1 << 5,     /* if there are windows, layers without one don't rotate */
    ARCH_LOGITS_DIVIDED = 1 << 6,     /* GGUF's logit_scale and config.json's logits_scaling are divisors */
    ARCH_LEARNED = 1 << 7,            /* positions are learned and added to the embedding; no RoPE */
    ARCH_COLUMNS = 1 << 8,            /* Hugging Face's matrices of layers are transposed (GPT-2's Conv1D) */
    ARCH_MULTI_QUERY = 1 << 9,        /* one key-value head, unless config.json's multi_query is false */
    ARCH_LOOKS_AHEAD = 1 << 10,       /* layers for multi-token prediction follow the others, for policy mtp */
    ARCH_YARN_IN_PART = 1 << 11,      /* YaRN's bounds aren't rounded; not in GGUF's metadata */
    ARCH_WINDOWS_PLAIN = 1 << 12,     /* layers with a window use RoPE without scaling; not in GGUF's metadata */
    ARCH_USES_ALIBI = 1 << 13,        /* positions by ALiBi; no RoPE */
    ARCH_CLIPS = 1 << 14,             /* config.json's clip_qkv is used */
    ARCH_EMBEDDING_NORM = 1 << 15,
    /* Which layers have a window if config.json has no list. LATE: the layers after the first max_window_layers. ODD:
     * every second layer of the first max_window_layers, from layer 0 on (Qwen 2 MoE in transformers). */
    ARCH_WINDOWS_LATE = 1 << 16,
    ARCH_WINDOWS_ODD = 1 << 17,
    /* Layers with and without a window have shapes of their own, the last layers may read keys and values of earlier
     * ones, and there may be per-layer inputs (Gemma 4). */
    ARCH_KINDS = 1 << 18,
    ARCH_FULL_FIRST = 1 << 19,      /* with full_every: the first layer has no window, and every nth after it */
    ARCH_RECURRENT_TILED = 1 << 20, /* in GGUF files every (key heads)th value head of a delta net shares a key head */
    ARCH_NO_MLP = 1 << 21,          /* all layers have experts, so files may lack the MLP's width */
    ARCH_NORMS_BY_KIND = 1 << 22,   /* recurrent layers have norms before sublayers, attention after them */
    ARCH_ADJACENT = 1 << 23,        /* the elements of a RoPE pair are adjacent */
    ARCH_GGUF_ADJACENT = 1 << 24,   /* only in GGUF files, as converters permute the rows of Q and K */
};

/* An architecture, as data: a line of the table in architectures.c, which explains the words of its strings. A member
 * of zero means the same as in Llama. Defaults are those of both formats; `config` has those of config.json alone. */
struct arch {
    const char *gguf;   /* general.architecture; NULL: its GGUF files are not supported */
    const char *hf;     /* config.json's model_type */
    const char *config; /* entries of config.json, and their defaults */
    /* Changes a copy of config.json, with these defaults, where they cannot express what transformers does. Or NULL. */
    bool (*adjust)(const struct hf_folder *, struct cJSON *config, struct err *);
    layer_set_t needs, may;            /* optional tensors of a layer: required, allowed */
    layer_set_t lacks;                 /* usual tensors of a layer that the architecture lacks */
    double rotated_part;               /* default for the rotated part of a head; 0: all */
    uint32_t ffn_by_width;             /* default for config.json, as a multiple of the width; 0: required */
    uint32_t full_every;               /* default: every nth layer has no window; 0: all have it */
    uint32_t attention_every;          /* default: every nth layer is attention, the others are recurrent; 0: all are */
    uint32_t unrotated_every;          /* default: every nth layer doesn't rotate; 0: all rotate */
    unsigned flags;                    /* enum arch_flags */
    struct model_form form;            /* activation and other defaults */
    const char *hf_names, *gguf_names; /* names of tensors, or NULL */
    struct arch_fused hf_fused, gguf_fused; /* "self_attn.qkv_proj" */
    const struct arch_experts *experts;     /* or NULL: the architecture has no experts */
};

extern const struct arch architectures[];
extern const size_t n_architectures;

/* Returns the architecture for a general.architecture or a model_type; NULL, with an error that names it, if it is not
 * supported. */
const struct arch *arch_of_gguf(const char *path, struct slice name, struct err *);
const struct arch *arch_of_hf(const char *path, const char *model_type, struct err *);
/* Sets an error that names an unsupported architecture. */
void arch_unsupported(const char *path, struct slice name, struct err *);
/* Writes the nth own name, from 0, of a tensor with this name in GGUF files. Returns false if there are fewer. */
bool arch_own_name(const struct arch *, enum layer_naming, const char *name, size_t nth, char out[LAYER_NAME_SIZE]);
enum rope_layout arch_rope(const struct arch *, enum layer_naming);

/* ---- names and values of a format ---- */

/* The numbers of a model: their name here, in GGUF's metadata after the architecture's, and in config.json. config.json
 * has several names, of which the first that exists is used (DBRX and MPT have nested objects). "": the format lacks
 * the number. */
/* clang-format off */
#define FOR_ARCH_NUMBERS(X) \
    X(LAYERS, "block_count", "num_hidden_layers n_layer n_layers") \
    X(CTX, "context_length", "max_position_embeddings n_positions max_seq_len seq_length") \
    X(WIDTH, "embedding_length", "hidden_size n_embd n_embed d_model") \
    X(FFN, "feed_forward_length", "intermediate_size n_inner ffn_hidden_size ffn_config.ffn_hidden_size") \
    X(VOCAB, "vocab_size", "vocab_size") \
    X(HEADS, "attention.head_count", "num_attention_heads n_head n_heads") \
    X(KV_HEADS, "attention.head_count_kv", "num_key_value_heads num_kv_heads n_head_kv attn_config.kv_n_heads") \
    X(HEAD_DIM, "attention.key_length", "head_dim") \
    X(VALUE_DIM, "attention.value_length", "") \
    X(ROPE_DIMS, "rope.dimension_count", "") \
    X(ROPE_BASE, "rope.freq_base", "rope_theta rotary_emb_base attn_config.rope_theta") \
    X(RMS_EPS, "attention.layer_norm_rms_epsilon", "rms_norm_eps") \
    X(WINDOW, "attention.sliding_window", "") \
    X(EXPERTS, "expert_count", "num_experts num_local_experts n_routed_experts moe_num_experts " \
      "ffn_config.moe_num_experts") \
    X(NORM_EPS, "attention.layer_norm_epsilon", "layer_norm_eps norm_epsilon norm_eps layer_norm_epsilon") \
    X(ATTENTION_CAP, "attn_logit_softcapping", "attn_logit_softcapping") \
    X(LOGIT_CAP, "final_logit_softcapping", "final_logit_softcapping") \
    X(EMBEDDING_SCALE, "embedding_scale", "embedding_multiplier") \
    X(RESIDUAL_SCALE, "residual_scale", "residual_multiplier") \
    X(ATTENTION_SCALE, "attention.scale", "attention_multiplier attn_config.softmax_scale") \
    X(LOGIT_SCALE, "logit_scale", "logit_scale logits_scaling") \
    X(EXPERTS_USED, "expert_used_count", "num_experts_per_tok moe_k top_k_experts ffn_config.moe_top_k") \
    X(EXPERT_FFN, "expert_feed_forward_length", "moe_intermediate_size") \
    X(SHARED_FFN, "expert_shared_feed_forward_length", "shared_expert_intermediate_size shared_intermediate_size") \
    X(SHARED_EXPERTS, "expert_shared_count", "n_shared_experts moe_num_shared_experts") /* of which the shared one consists */ \
    X(EXPERT_GROUPS, "expert_group_count", "n_group") \
    X(GROUPS_USED, "expert_group_used_count", "topk_group") \
    X(EXPERT_SCALE, "expert_weights_scale", "routed_scaling_factor") \
    X(LAYERS_AHEAD, "nextn_predict_layers", "") /* layers for multi-token prediction, included in LAYERS */ \
    X(CLIP, "attention.clamp_kqv", "clip_qkv attn_config.clip_qkv") \
    X(ALIBI, "attention.max_alibi_bias", "attn_config.alibi_bias_max") \
    X(GLOBAL_HEAD_DIM, "", "global_head_dim") /* ARCH_KINDS: of layers without a window, */ \
    X(GLOBAL_KV_HEADS, "", "num_global_key_value_heads") \
    X(LOCAL_HEAD_DIM, "attention.key_length_swa", "") /* or of layers with one */ \
    X(LOCAL_ROPE_DIMS, "rope.dimension_count_swa", "") \
    X(KV_SHARED, "attention.shared_kv_layers", "num_kv_shared_layers") /* last layers without keys and values */ \
    X(PER_LAYER, "embedding_length_per_layer_input", "hidden_size_per_layer_input") /* width of per-layer inputs */ \
    X(RECURRENT_KEY_HEADS, "ssm.group_count", "linear_num_key_heads mamba_n_groups") \
    X(RECURRENT_VALUE_HEADS, "ssm.time_step_rank", "linear_num_value_heads mamba_n_heads") \
    X(RECURRENT_KEY_DIM, "ssm.state_size", "linear_key_head_dim mamba_d_state") \
    X(RECURRENT_VALUE_DIM, "", "linear_value_head_dim mamba_d_head") /* of a value head, */ \
    X(RECURRENT_VALUES, "ssm.inner_size", "") /* or of all together */ \
    X(RECURRENT_TAPS, "ssm.conv_kernel", "linear_conv_kernel_dim mamba_d_conv") \
    X(CONV_TAPS, "shortconv.l_cache", "conv_L_cache") /* of short convolutions */
/* clang-format on */

enum arch_number {
#define NUMBER(NAME, ...) ARCH_##NAME,
    FOR_ARCH_NUMBERS(NUMBER)
#undef NUMBER
        ARCH_NUMBERS
};

extern const char *const arch_numbers[ARCH_NUMBERS][LAYER_NAMINGS];

struct arch_names {
    const char *numbers[ARCH_NUMBERS]; /* NULL: the format lacks the number */
    /* Tensors. The positions exist only with ARCH_LEARNED, and the embedding's norm with ARCH_EMBEDDING_NORM. */
    char embedding[LAYER_NAME_SIZE], final_norm[LAYER_NAME_SIZE], head[LAYER_NAME_SIZE];
    char positions[LAYER_NAME_SIZE], embedding_norm[LAYER_NAME_SIZE];
    char layer[LAYER_NAME_SIZE]; /* "blk.": a layer's number, a point and the tensor's name follow */
    enum layer_naming naming;    /* of a layer's tensors */
    const char *computable[12];  /* parts of names of tensors that are ignored; may end with NULL */
    const char *where;           /* "metadata": the place of the numbers, for messages */
    const char *remedy;          /* "convert the model again", for messages */
};

/* Returns the names in an architecture's Hugging Face folders. */
struct arch_names arch_hf_names(const struct arch *);
/* Replaces usual names of tensors by the architecture's own. */
void arch_own_names(const struct arch *, struct arch_names *);

enum arch_value { VALUE_MISSING, VALUE_WHOLE, VALUE_REAL, VALUE_OTHER };

struct arch_tensor {
    const unsigned char *data; /* NULL if the type's size is unknown */
    bool mapped;               /* as in struct tensor */
    const char *type_name;
    enum weight_type type;       /* WEIGHT_TYPES if no backend computes with it */
    uint64_t planes, rows, cols; /* planes = 0: one matrix; a vector is one row; rows = cols = 0: too many dimensions */
    size_t index;                /* index in the source's tensors */
};

struct arch_source {
    const char *path;   /* for messages */
    const char *prefix; /* of the names of numbers, without the point: "llama"; or NULL */
    const struct arch *arch;
    const struct arch_names *names;
    const void *file;
    size_t n_tensors;
    /* `name` is the number's name in the file, in config.json the first of its names. */
    enum arch_value (*number)(const struct arch_source *, enum arch_number, const char *name, double *out);
    bool (*tensor)(const struct arch_source *, const char *name, struct arch_tensor *out); /* false if missing */
    void (*tensor_name)(const struct arch_source *, size_t index, const char **name, size_t *len);
};

/* Reads a whole number from `least` to `most`. Stores `otherwise` if it is missing; with otherwise = UINT32_MAX a
 * missing number is an error. */
bool arch_read_whole(const struct arch_source *, enum arch_number, uint32_t otherwise, uint32_t least, uint32_t most,
                     uint32_t *out, struct err *);
/* Reads a real number. Stores `otherwise` if it is missing. Fails if it is not finite. */
bool arch_read_real(const struct arch_source *, enum arch_number, double otherwise, double *out, struct err *);
/* Reads desc.form.experts. Call it after arch_read_numbers(). Fails if the model has experts and the architecture has
 * none. */
bool arch_read_experts(struct model *, const struct arch_source *, struct err *);
/* Reads desc.form.recurrent, if the model has recurrent layers. Call it when the layers' kinds are known. */
bool arch_read_recurrent(struct model *, const struct arch_source *, struct err *);
/* Reads sizes, RoPE's base (unscaled), epsilon and the window. The caller has set the model's path, desc.rope, and
 * desc.vocab to the tokenizer's size, or to 0 to read it from the file. */
bool arch_read_numbers(struct model *, const struct arch_source *, struct err *);
/* Allocates the layers, without tensors, with the architecture's defaults. Call it after arch_read_numbers(). */
bool arch_make_layers(struct model *, const struct arch_source *, struct err *);
/* Reads the tensors, counts the parameters and computes rho. With `tied` the head is the embedding even if the file
 * contains a head. Sets used[i], (n_tensors), for each tensor that it reads. Fails if an unused tensor would change the
 * model's output. */
bool arch_read_tensors(struct model *, const struct arch_source *, bool tied, bool *used, struct err *);
/* Sets desc.rope_scale for linear scaling. Fails if the factor is outside 1e-3 to 1e6. */
bool arch_scale_linear(struct model *, double factor, struct err *);

/* YaRN (Peng et al. 2023). Frequencies with more than `fast` rotations within the `old` positions of the first training
 * are unchanged. Frequencies with less than `slow` rotations are interpolated by `factor`, and frequencies in between
 * partly. Attention is scaled by `gain` (NAN: 1 + ln(factor) / 10). `whole`: the bounds are rounded to whole
 * dimensions. */
struct arch_yarn {
    double factor, fast, slow, old, gain;
    bool whole;
};
bool arch_scale_yarn(struct model *, const struct arch_yarn *, struct err *);
/* Allocates desc.rope_factors, (rope_dims / 2), which the caller fills; NULL, with an error, if out of memory. */
float *arch_divisors(struct model *, struct err *);
/* Sets the architecture's defaults for which layers have a window and which rotate. `layers` is desc.layers. */
void arch_usual_layers(struct model *, const struct arch *, struct layer_desc *layers);
/* Sets the layers' rotations that depend on their windows. Call it when the windows are set. */
void arch_rotations(struct model *, const struct arch *, struct layer_desc *layers);
/* With ARCH_KINDS: reads the shapes of the layers and whose keys and values they read. Call it after
 * arch_rotations(). */
bool arch_read_kinds(struct model *, const struct arch_source *, struct layer_desc *layers, struct err *);

enum { ARCH_XIELU_ALPHA_P, ARCH_XIELU_ALPHA_N, ARCH_XIELU_BETA, ARCH_XIELU_EPS, ARCH_XIELU_NUMBERS };
/* Sets xIELU's parameters of a layer, counted from 0, from the numbers as stored in files. desc.layers must be
 * allocated. Fails if a number is not within 1e6. */
bool arch_set_xielu(struct model *, uint32_t layer, const double stored[ARCH_XIELU_NUMBERS], struct err *);

/* ---- formats ---- */

/* Read everything but the model's name, hash and tokenizer; the vocabulary's size is in desc.vocab. `packed` contains a
 * folder's unpacked weights (packed.h), or is NULL. */
bool arch_read_gguf(struct model *, const struct gguf *, const struct arch *, struct err *);
bool arch_read_hf(struct model *, const struct hf_folder *, const struct packed *, struct err *);
/* The same for an EAGLE-3 head or a block drafter, which is checked against its target. */
bool arch_read_gguf_head(struct model *, const struct gguf *, const struct model *target, struct err *);
bool arch_read_hf_head(struct model *, const struct hf_folder *, const struct model *target, struct err *);
/* Return "eagle3" if a file or folder contains an EAGLE-3 head, "dflash" if it contains a block drafter, else NULL. */
const char *arch_gguf_head(const struct gguf *);
const char *arch_hf_head(const struct hf_folder *);
