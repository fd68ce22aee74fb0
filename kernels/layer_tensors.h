/* The list of a layer's tensors. It generates their description (struct layer_desc) and is used by the file readers,
 * the quantiser, the backends' checks and loaders, synthetic models and test models. To add a norm or bias: add a line
 * here, a flag for the architectures that have it (engine/model/arch/architectures.c), and its computation in the
 * forward passes of the backends, which also declare support for it, and of the tests (tests/rigs/naive_model.c).
 *
 *   kind(NAME, field, need, rows, cols, GGUF's name, Hugging Face's name)
 *
 * kind  MATRIX: rows outputs of cols inputs each; NORM (factors) and BIAS (summands): one row in F32 need  NEEDED;
 * USUAL: in Llama, absent in some architectures; OPTIONAL: in some architectures (struct arch) rows, cols are
 * expressions of `d`, a struct model_desc, and `n`, the struct layer_sizes of the layer. Names lack the suffix that the
 * kind determines (layer_tensor_name()), except complete names, which begin with "=". The order determines the files
 * and random numbers of synthetic models. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/form.h"

#define LAYER_IN(d)    ((d)->width * (model_pairs(d) ? 2 : 1))   /* inputs of q, k and v */
#define LAYER_QG(d, n) ((n).q * ((d)->form.output_gate ? 2 : 1)) /* queries, and their gates */
/* Widths of the query and key norms. */
#define LAYER_QN(d, n)   ((d)->form.whole_norms ? (n).q : (n).head_dim)
#define LAYER_KN(d, n)   ((d)->form.whole_norms ? (n).kv : (n).head_dim)
#define LAYER_EXPERTS(d) ((d)->form.experts.n)
/* Heads, values and channels of recurrent layers, and the widths of b and of the norm. */
#define LAYER_RH(d) ((d)->form.recurrent.value_heads)
#define LAYER_RV(d) recurrent_values(&(d)->form.recurrent)
#define LAYER_RC(d) recurrent_channels(&(d)->form.recurrent)
#define LAYER_RB(d) ((d)->form.recurrent.kind == RECURRENCE_CONV ? LAYER_RV(d) : LAYER_RH(d))
#define LAYER_RN(d) ((d)->form.recurrent.kind == RECURRENCE_MAMBA ? LAYER_RV(d) : (d)->form.recurrent.value_dim)

/* clang-format off */
#define FOR_LAYER_TENSORS(MATRIX, NORM, BIAS)                                                                         \
    NORM(  ATTN_NORM,   attn_norm,   USUAL,    1,           d->width,    "attn_norm",       "input_layernorm")          \
    MATRIX(WQ,          wq,          NEEDED,   LAYER_QG(d, n), LAYER_IN(d),  "attn_q",          "self_attn.q_proj")         \
    MATRIX(WK,          wk,          USUAL,    n.kv, LAYER_IN(d),  "attn_k",          "self_attn.k_proj")         \
    MATRIX(WV,          wv,          USUAL,    n.kv, LAYER_IN(d),  "attn_v",          "self_attn.v_proj")         \
    BIAS(  BQ,          bq,          OPTIONAL, 1,           n.q,  "attn_q",          "self_attn.q_proj")         \
    BIAS(  BK,          bk,          OPTIONAL, 1,           n.kv, "attn_k",          "self_attn.k_proj")         \
    BIAS(  BV,          bv,          OPTIONAL, 1,           n.kv, "attn_v",          "self_attn.v_proj")         \
    NORM(  Q_NORM,      q_norm,      OPTIONAL, 1,           LAYER_QN(d, n), "attn_q_norm",     "self_attn.q_norm")         \
    NORM(  K_NORM,      k_norm,      OPTIONAL, 1,           LAYER_KN(d, n), "attn_k_norm",     "self_attn.k_norm")         \
    MATRIX(WO,          wo,          NEEDED,   d->width,    n.q,  "attn_output",     "self_attn.o_proj")         \
    NORM(  FFN_NORM,    ffn_norm,    USUAL,    1,           d->width,    "ffn_norm",        "post_attention_layernorm") \
    MATRIX(GATE,        gate,        USUAL,    n.ffn,      d->width,    "ffn_gate",        "mlp.gate_proj")            \
    MATRIX(UP,          up,          NEEDED,   n.ffn,      d->width,    "ffn_up",          "mlp.up_proj")              \
    MATRIX(DOWN,        down,        NEEDED,   d->width,    n.ffn,      "ffn_down",        "mlp.down_proj")            \
    BIAS(  ATTN_NORM_B, attn_norm_b, OPTIONAL, 1,           d->width,    "attn_norm",       "input_layernorm")          \
    BIAS(  BO,          bo,          OPTIONAL, 1,           d->width,    "attn_output",     "self_attn.o_proj")         \
    NORM(  ATTN_POST,   attn_post,   OPTIONAL, 1,           d->width,    "post_attention_norm", "post_attention_norm")  \
    BIAS(  FFN_NORM_B,  ffn_norm_b,  OPTIONAL, 1,           d->width,    "ffn_norm",        "post_attention_layernorm") \
    BIAS(  BGATE,       bgate,       OPTIONAL, 1,           n.ffn,      "ffn_gate",        "mlp.gate_proj")            \
    BIAS(  BUP,         bup,         OPTIONAL, 1,           n.ffn,      "ffn_up",          "mlp.up_proj")              \
    BIAS(  BDOWN,       bdown,       OPTIONAL, 1,           d->width,    "ffn_down",        "mlp.down_proj")            \
    NORM(  FFN_POST,    ffn_post,    OPTIONAL, 1,           d->width,    "post_ffw_norm",   "post_feedforward_layernorm") \
    BIAS(  SINKS,       sinks,       OPTIONAL, 1,           d->heads,    "=attn_sinks.weight", "=self_attn.sinks")      \
    MATRIX(ROUTER,      router,      OPTIONAL, LAYER_EXPERTS(d), d->width, "ffn_gate_inp",  "mlp.gate")                 \
    BIAS(  BROUTER,     brouter,     OPTIONAL, 1,           LAYER_EXPERTS(d), "ffn_gate_inp", "mlp.gate")               \
    BIAS(  CORRECTION,  correction,  OPTIONAL, 1,           LAYER_EXPERTS(d), "exp_probs_b", "=mlp.gate.e_score_correction_bias") \
    NORM(  SHARED_MIX,  shared_mix,  OPTIONAL, 1,           d->width,    "ffn_gate_inp_shexp", "mlp.shared_expert_gate") \
    NORM(  ROUTER_NORM, router_norm, OPTIONAL, 1,           d->width,    "=ffn_gate_inp.scale", "=router.scale")        \
    NORM(  EXPERTS_NORM, experts_norm, OPTIONAL, 1,         d->width,    "pre_ffw_norm_2", "pre_feedforward_layernorm_2")  \
    NORM(  EXPERTS_POST, experts_post, OPTIONAL, 1,         d->width,    "post_ffw_norm_2", "post_feedforward_layernorm_2") \
    NORM(  MLP_POST,    mlp_post,    OPTIONAL, 1,           d->width,    "post_ffw_norm_1", "post_feedforward_layernorm_1") \
    BIAS(  EXPERT_SCALE, expert_scale, OPTIONAL, 1,         LAYER_EXPERTS(d), "=ffn_down_exps.scale", "=router.per_expert_scale") \
    MATRIX(INPUT,       input,       OPTIONAL, d->form.per_layer, d->width, "per_layer_model_proj", "per_layer_model_projection") \
    MATRIX(INPUT_GATE,  input_gate,  OPTIONAL, d->form.per_layer, d->width, "inp_gate", "per_layer_input_gate")       \
    MATRIX(INPUT_OUT,   input_out,   OPTIONAL, d->width,    d->form.per_layer, "proj",  "per_layer_projection")       \
    NORM(  INPUT_POST,  input_post,  OPTIONAL, 1,           d->width,    "post_norm",   "post_per_layer_input_norm")  \
    BIAS(  OUT_SCALE,   out_scale,   OPTIONAL, 1,           1,           "=layer_output_scale.weight", "=layer_scalar")                         \
    MATRIX(RECURRENT_QKV, recurrent_qkv, OPTIONAL, LAYER_RC(d), d->width, "attn_qkv",       "linear_attn.in_proj_qkv")  \
    MATRIX(RECURRENT_Z, recurrent_z, OPTIONAL, LAYER_RV(d), d->width,    "attn_gate",       "linear_attn.in_proj_z")    \
    MATRIX(RECURRENT_B, recurrent_b, OPTIONAL, LAYER_RB(d), d->width,    "ssm_beta",        "linear_attn.in_proj_b")    \
    MATRIX(RECURRENT_A, recurrent_a, OPTIONAL, LAYER_RH(d), d->width,    "ssm_alpha",       "linear_attn.in_proj_a")    \
    NORM(  RECURRENT_CONV, recurrent_conv, OPTIONAL, 1, LAYER_RC(d) * d->form.recurrent.taps, "ssm_conv1d", "linear_attn.conv1d") \
    BIAS(  RECURRENT_CONV_B, recurrent_conv_b, OPTIONAL, 1, LAYER_RC(d), "ssm_conv1d",      "linear_attn.conv1d")       \
    BIAS(  RECURRENT_STEP, recurrent_step, OPTIONAL, 1,     LAYER_RH(d), "=ssm_dt.bias",    "=linear_attn.dt_bias")     \
    BIAS(  RECURRENT_DECAY, recurrent_decay, OPTIONAL, 1,   LAYER_RH(d), "=ssm_a",          "=linear_attn.A_log")       \
    BIAS(  RECURRENT_SKIP, recurrent_skip, OPTIONAL, 1,     LAYER_RH(d), "=ssm_d",          "=linear_attn.D")           \
    NORM(  RECURRENT_NORM, recurrent_norm, OPTIONAL, 1,     LAYER_RN(d), "ssm_norm",        "linear_attn.norm")         \
    MATRIX(RECURRENT_OUT, recurrent_out, OPTIONAL, d->width, LAYER_RV(d), "ssm_out",        "linear_attn.out_proj")
/* clang-format on */

enum layer_tensor {
#define NUMBER(NAME, ...) LAYER_##NAME,
    FOR_LAYER_TENSORS(NUMBER, NUMBER, NUMBER)
#undef NUMBER
        LAYER_TENSORS
};

enum layer_tensor_kind { LAYER_MATRIX, LAYER_NORM, LAYER_BIAS };
enum layer_tensor_need { LAYER_NEEDED, LAYER_USUAL, LAYER_OPTIONAL };
enum layer_naming { LAYER_NAMED_GGUF, LAYER_NAMED_HF, LAYER_NAMINGS };

/* A set of tensors: bits 1 << enum layer_tensor. */
typedef uint64_t layer_set_t;
/* Groups of optional tensors that occur together. */
#define LAYER_QKV_BIAS (1ull << LAYER_BQ | 1ull << LAYER_BK | 1ull << LAYER_BV)
#define LAYER_QK_NORM  (1ull << LAYER_Q_NORM | 1ull << LAYER_K_NORM)
/* Groups of usual tensors. */
#define LAYER_PRE_NORMS (1ull << LAYER_ATTN_NORM | 1ull << LAYER_FFN_NORM)
#define LAYER_GATED     (1ull << LAYER_GATE)
/* Optional vectors that accompany usual tensors. */
#define LAYER_NORM_BIAS      (1ull << LAYER_ATTN_NORM_B | 1ull << LAYER_FFN_NORM_B)
#define LAYER_MLP_BIAS       (1ull << LAYER_BUP | 1ull << LAYER_BDOWN)
#define LAYER_GATED_MLP_BIAS (LAYER_MLP_BIAS | 1ull << LAYER_BGATE)
#define LAYER_POST_NORMS     (1ull << LAYER_ATTN_POST | 1ull << LAYER_FFN_POST)
/* The MLP, absent in a layer with experts, or beside them (Gemma 4). */
#define LAYER_MLP (1ull << LAYER_GATE | 1ull << LAYER_UP | 1ull << LAYER_DOWN)
/* Additional tensors of a layer with experts (kernels/experts.h). */
#define LAYER_ROUTING                                                                                                  \
    (1ull << LAYER_ROUTER | 1ull << LAYER_BROUTER | 1ull << LAYER_CORRECTION | 1ull << LAYER_SHARED_MIX | LAYER_BESIDE)
/* The same for experts beside an MLP. ROUTER_NORM is the norm of the router's input; EXPERT_SCALE are factors of the
 * experts' weights. */
#define LAYER_BESIDE                                                                                                   \
    (1ull << LAYER_ROUTER_NORM | 1ull << LAYER_EXPERTS_NORM | 1ull << LAYER_EXPERTS_POST | 1ull << LAYER_MLP_POST |    \
     1ull << LAYER_EXPERT_SCALE)
/* Per-layer inputs: INPUT is the layer's part of the model's projection of the embedding. */
#define LAYER_INPUTS                                                                                                   \
    (1ull << LAYER_INPUT | 1ull << LAYER_INPUT_GATE | 1ull << LAYER_INPUT_OUT | 1ull << LAYER_INPUT_POST)
/* The keys and values, which a layer that reads those of another one lacks. */
#define LAYER_KEYS_VALUES                                                                                              \
    (1ull << LAYER_WK | 1ull << LAYER_WV | 1ull << LAYER_BK | 1ull << LAYER_BV | 1ull << LAYER_K_NORM)

/* Tensors that only layers of one kind have (enum layer_kind). The convolution's are (channels, taps), and a head's
 * decay is e^(recurrent_decay softplus(a + recurrent_step)), so recurrent_decay is negative. */
#define LAYER_OF_ATTENTION                                                                                             \
    (LAYER_QKV_BIAS | LAYER_QK_NORM | 1ull << LAYER_WQ | 1ull << LAYER_WK | 1ull << LAYER_WV | 1ull << LAYER_WO |      \
     1ull << LAYER_BO | 1ull << LAYER_SINKS)
#define LAYER_OF_CONV                                                                                                  \
    (1ull << LAYER_RECURRENT_QKV | 1ull << LAYER_RECURRENT_Z | 1ull << LAYER_RECURRENT_B |                             \
     1ull << LAYER_RECURRENT_CONV | 1ull << LAYER_RECURRENT_OUT)
#define LAYER_OF_DELTA                                                                                                 \
    (LAYER_OF_CONV | 1ull << LAYER_RECURRENT_A | 1ull << LAYER_RECURRENT_STEP | 1ull << LAYER_RECURRENT_DECAY |        \
     1ull << LAYER_RECURRENT_NORM)
#define LAYER_OF_MAMBA                                                                                                 \
    ((LAYER_OF_DELTA & ~(1ull << LAYER_RECURRENT_B)) | 1ull << LAYER_RECURRENT_CONV_B | 1ull << LAYER_RECURRENT_SKIP)
#define LAYER_OF_RECURRENT (LAYER_OF_DELTA | LAYER_OF_MAMBA)

struct layer_tensor_info {
    enum layer_tensor_kind kind;
    enum layer_tensor_need need;
    const char *names[LAYER_NAMINGS];
};

extern const struct layer_tensor_info layer_tensors[LAYER_TENSORS];

struct model_desc;

/* Returns the tensors that layers of other kinds have and a layer of this form lacks. */
layer_set_t layer_others(const struct model_form *, const struct layer_form *);
/* Returns what a model's recurrent layers are, in the plural: "gated delta nets". */
const char *layer_recurrences(const struct recurrent_form *);

#define LAYER_NAME_SIZE 56
/* Writes the complete name, e.g. "attn_q.weight" or "attn_q.bias". */
const char *layer_tensor_name(char out[LAYER_NAME_SIZE], enum layer_tensor, enum layer_naming);
/* The same for an architecture's own name. */
const char *layer_tensor_whole_name(char out[LAYER_NAME_SIZE], const char *name, enum layer_tensor_kind);
/* Returns the shape in layer 1..L; a vector has one row. If d->layers is NULL, the layer has the model's numbers. */
void layer_tensor_shape(const struct model_desc *, uint32_t layer, enum layer_tensor, uint32_t *rows, uint32_t *cols);

/* Checks that a model's numbers and tensors are consistent; every backend calls it before loading. Required tensors
 * must be present, with the right shape and a type whose blocks fill their rows; vectors must be unquantised.
 * `optional` is the set of the optional tensors that the backend supports; a model with others
 * is refused. Returns false with an error on failure. */
bool model_desc_fits(const struct model_desc *, layer_set_t optional, struct err *);
