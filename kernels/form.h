/* Differences between architectures other than sizes and tensors: the form of a model and of a layer. Llama's form is
 * all zero. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/half.h"

enum activation {
    ACT_SILU,         /* x / (1 + e^-x) */
    ACT_GELU_TANH,    /* x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    ACT_GELU,         /* x / 2 (1 + erf(x / sqrt 2)) */
    ACT_RELU_SQUARED, /* max(x, 0)^2 */
    ACT_XIELU, /* alpha_p x^2 + beta x above 0, alpha_n (e^min(x, eps) - 1 - x) + beta x below; parameters per layer */
    ACT_SWIGLU_CLAMPED /* gated only: min(x, 7) / (1 + e^-(1.702 x)) times 1 + max(-7, min(up, 7)) (gpt-oss) */
};

/* How a row's experts are chosen and how their outputs are weighted. With logits z = router x + bias, the scores s are
 * softmax(z) or sigmoid(z). A correction is added to the scores for the choice only. With groups of neighbouring
 * experts, the groups with the largest sums of their two best scores are chosen first, then experts among them. Among
 * equals the lower index is chosen.
 * SparseMixer (Liu et al. 2023, as in PhiMoE) takes one expert after the other: the best one left, with logit m, is
 * weighted by a softmax over all experts i left that satisfy m - z_i <= 2 jitter max(|z_i|, m). It uses no correction,
 * groups or renormalisation. */
enum routing { ROUTE_SOFTMAX, ROUTE_SIGMOID, ROUTE_SPARSEMIXER, ROUTINGS };

struct experts_form {
    uint32_t n;                   /* experts per layer with experts; 0: the model has none */
    uint32_t used;                /* experts per row */
    uint32_t ffn;                 /* hidden size of each */
    uint32_t shared_ffn;          /* hidden size of the shared expert; 0: there is none */
    uint32_t groups, groups_used; /* 0 or 1: no grouping */
    enum routing routing;
    bool renormalised; /* the chosen experts' scores are divided by their sum */
    float scale;       /* factor of the weights after that; 0: 1 */
    float jitter;      /* for SparseMixer */
};

/* Attention with linear biases (Press et al. 2022): the slope by which a score of head h grows from one key to the
 * next. */
struct alibi {
    float most;   /* -log2 of the last slope; 0: no biases */
    float scale;  /* factor of biases; 0: 1 */
    bool in_bf16; /* slopes, and slope times position, are rounded to BF16 (Falcon) */
};

#define RECURRENT_TAPS_MOST 8

/* What a recurrent layer computes (docs/methods.md 4). A short convolution has no states and no key heads: its value
 * heads are parts of the stream. */
enum recurrence {
    RECURRENCE_DELTA, /* gated delta net (Yang, Kautz and Hatamizadeh 2025) */
    RECURRENCE_MAMBA, /* Mamba-2 (Dao and Gu 2024): B is k, C is q, and x is v */
    RECURRENCE_CONV,  /* gated short convolution (LFM2) */
    RECURRENCES
};

/* Heads of recurrent layers. The convolution's channels are those of all q, then k, then v; in Mamba-2 of all v, then
 * k, then q. */
struct recurrent_form {
    uint32_t key_heads, value_heads; /* value_heads is a multiple of key_heads; 0: the model has no such layers */
    uint32_t key_dim, value_dim;
    uint32_t taps; /* rows that the convolution covers, the row itself included: 2 to RECURRENT_TAPS_MOST */
    bool tiled;    /* value head h reads key head h mod key_heads; else neighbouring value heads share a key head */
    enum recurrence kind;
    float step_least, step_most; /* bounds of Mamba-2's step; step_most 0: none */
    float beta;                  /* factor of a delta net's beta; 0: 1 */
    float norm_eps;              /* epsilon of a delta net's norm; 0: the model's */
};

/* The MLP is down(act(gate x) * up x), or down(act(up x)) in a layer without a gate. A sublayer whose preceding norm is
 * absent reads the stream itself; in a parallel form the MLP then reads the same input as attention. */
struct model_form {
    enum activation activation;
    bool layer_norm;  /* norms subtract the mean first and may have a bias (LayerNorm) */
    bool whole_norms; /* query and key norms are over all heads together (OLMo 2) */
    bool late_norms;  /* query and key norms are applied after rotation (Hunyuan) */
    bool value_norms; /* values are divided by their root mean square, head by head (Gemma 4) */
    bool parallel;    /* attention and MLP both read the layer's input; both outputs are added to it */
    /* factors of the embedding, of sublayer outputs, of logits; 0: 1 */
    float embedding_scale, residual_scale, logit_scale;
    float attention_scale;          /* factor of scores; 0: 1 / sqrt(head_dim) */
    float attention_cap, logit_cap; /* x becomes cap tanh(x / cap); 0: unchanged */
    /* Queries, keys and values are clamped to [-clip, clip] after norms of whole rows and before rotation; 0:
     * unchanged. */
    float clip;
    struct alibi alibi;
    float local_base;    /* RoPE's base in layers with local rotation, unscaled (Gemma 3, OLMo 3) */
    uint32_t local_dims; /* leading dimensions of a head that these layers rotate; 0: model_desc.rope_dims */
    float rope_gain;     /* factor of cosines and sines except in layers with local rotation (YaRN, LongRoPE); 0: 1 */
    float
        growth; /* queries are scaled by 1 + growth ln(1 + floor(position / growth_every)) (Ministral 3); 0: unscaled */
    uint32_t growth_every;
    uint32_t per_layer; /* width of the per-layer inputs (Gemma 4 E2B and E4B); 0: none */
    /* Rows of the query matrix are a head's query, then its gate, for each head; attention's output is multiplied by
     * sigmoid(gate) (Qwen3-Next). */
    bool output_gate;
    struct experts_form experts;
    struct recurrent_form recurrent;
};

enum layer_kind { LAYER_ATTENTION, LAYER_RECURRENT /* struct recurrent_form */ };
enum layer_rope { LAYER_ROPE_GLOBAL, LAYER_ROPE_LOCAL, LAYER_ROPE_NONE };

struct xielu { /* parameters of ACT_XIELU (Huang and Schlag 2024, as in Apertus); alphas above 0 */
    float alpha_p, alpha_n, beta, eps;
};

struct layer_form {
    enum layer_kind kind;
    enum layer_rope rope;
    bool sees_all;                    /* the layer ignores the model's window */
    bool causal;                      /* its rows attend to no later rows of their block (row.n_after) */
    struct xielu xielu;               /* used if the model's activation is ACT_XIELU */
    uint32_t kv_heads, head_dim, ffn; /* the layer's own numbers, at most the model's; 0: the model's */
    uint32_t kv_layer; /* an earlier layer, 1..L, whose keys and values this one reads; it has no own ones. 0: own */
};

static inline HOST_DEVICE float
form_factor(float factor)
{
    return factor > 0 || factor < 0 ? factor : 1;
}

static inline uint32_t
recurrent_values(const struct recurrent_form *f)
{
    return f->value_heads * f->value_dim;
}

static inline uint32_t
recurrent_channels(const struct recurrent_form *f)
{
    return 2 * f->key_heads * f->key_dim + recurrent_values(f);
}

/* Returns the first channel of all q (part 0), k (1) or v (2). */
static inline uint32_t
recurrent_channel(const struct recurrent_form *f, uint32_t part)
{
    const uint32_t keys = f->key_heads * f->key_dim;
    if (f->kind == RECURRENCE_MAMBA)
        return part == 2 ? 0 : recurrent_values(f) + (1 - part) * keys;
    return part * keys;
}

/* Returns the key head that a value head reads. */
static inline uint32_t
recurrent_key_head(const struct recurrent_form *f, uint32_t value_head)
{
    return f->tiled ? value_head % f->key_heads : value_head / (f->value_heads / f->key_heads);
}

/* Returns the factor of the queries at a position. */
static inline float
form_growth(const struct model_form *f, uint32_t position)
{
    const uint32_t times = f->growth_every > 0 ? position / f->growth_every : 0;
    return f->growth > 0 ? 1 + f->growth * logf((float)(1 + times)) : 1;
}

/* Returns the slope of a head, 2^-exponent, for n heads. The first heads, the largest power of two <= n, have the
 * exponents most / count, 2 most / count, …; the remaining heads have the odd multiples for twice the count. */
static inline float
form_slope(const struct alibi *a, uint32_t head, uint32_t n)
{
    uint32_t whole = 1;
    while (whole <= n / 2)
        whole *= 2;
    const float steps = head < whole ? (float)(head + 1) : (float)(head - whole) + 0.5f;
    const float slope = exp2f(-a->most * steps / (float)whole);
    return a->in_bf16 ? bf16_nearest(slope) : slope;
}

/* Returns the bias of the score of a key at a position, for a query at `own` and a head with this slope. */
static inline HOST_DEVICE float
form_alibi_bias(const struct alibi *a, float slope, uint32_t own, uint32_t position)
{
    const float bias = a->in_bf16 ? bf16_nearest(slope * (float)position) - bf16_nearest(slope * (float)own)
                                  : -slope * (float)(own - position);
    return form_factor(a->scale) * bias;
}
