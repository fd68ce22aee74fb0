/* What architectures differ in besides their sizes and tensors: a model's form and a layer's. All zero is Llama's. */
#ifndef KERNELS_FORM_H
#define KERNELS_FORM_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/half.h"

enum activation {
    ACT_SILU,         /* x / (1 + e^-x) */
    ACT_GELU_TANH,    /* x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    ACT_GELU,         /* x / 2 (1 + erf(x / sqrt 2)) */
    ACT_RELU_SQUARED, /* max(x, 0)^2 */
    ACT_XIELU, /* alpha_p x^2 + beta x above 0, alpha_n (e^min(x, eps) - 1 - x) + beta x below: a layer's own numbers */
    ACT_SWIGLU_CLAMPED /* of gates alone: min(x, 7) / (1 + e^-(1.702 x)) times 1 + max(-7, min(up, 7)) (gpt-oss) */
};

/* What a row's experts are chosen by, and what their outputs are multiplied by. With logits z = router x + bias, scores s are
 * softmax(z) or sigmoid(z); a correction is added to them for the choice alone. Of groups of neighbours those with the largest
 * sums of their two best are chosen from. Among equals the lower index is chosen. By SparseMixer (Liu et al. 2023, as PhiMoE has
 * it) experts are taken one after the other: the best of those that are left, m its logit, has a softmax over all i of them with
 * m - z_i <= 2 jitter max(|z_i|, m) for its weight. Nothing is corrected there, grouped or renormalised. */
enum routing { ROUTE_SOFTMAX, ROUTE_SIGMOID, ROUTE_SPARSEMIXER, ROUTINGS };

struct experts_form {
    uint32_t n;                   /* of a layer that has any; 0: no layer has */
    uint32_t used;                /* by a row */
    uint32_t ffn;                 /* of each */
    uint32_t shared_ffn;          /* of the one that every row goes to; 0: there is none */
    uint32_t groups, groups_used; /* 0 or 1: all are one */
    enum routing routing;
    bool renormalised; /* the scores of those that are chosen are divided by their sum */
    float scale;       /* … and multiplied by this; 0: 1 */
    float jitter;      /* SparseMixer's */
};

/* Attention with linear biases (Press et al. 2022): what a score of head h grows by from a key to the next one. */
struct alibi {
    float most;   /* -log2 of the last slope; 0: there are no biases */
    float scale;  /* of biases; 0: 1 */
    bool in_bf16; /* slopes, and slope times position, are rounded to BF16 (Falcon) */
};

/* The MLP is down(act(gate x) * up x), and down(act(up x)) where a layer has no gate. A layer without a norm before a sublayer
 * has none there, but in a parallel form, where the MLP reads what attention reads. */
struct model_form {
    enum activation activation;
    bool centred;     /* norms take the mean off first, and may have a bias (LayerNorm) */
    bool whole_norms; /* those of queries and keys are over all heads together (OLMo 2) */
    bool late_norms;  /* … and behind their rotation (Hunyuan) */
    bool parallel;    /* attention and MLP both read the layer's input, and both are added to it */
    float embedding_scale, residual_scale, logit_scale; /* of the embedding, of what a sublayer adds, of logits; 0: 1 */
    float attention_scale;                              /* of scores; 0: 1 / sqrt(head_dim) */
    float attention_cap, logit_cap;                     /* x becomes cap tanh(x / cap); 0: it stays */
    /* Queries, keys and values become -clip to clip, behind norms of whole rows, before rotation; 0: they stay. */
    float clip;
    struct alibi alibi;
    float local_base; /* RoPE's base in layers that turn locally, unscaled (Gemma 3, OLMo 3) */
    float rope_gain;  /* of cosines and sines, but in those: what YaRN and LongRoPE make attention sharper by; 0: 1 */
    float
        growth; /* queries are scaled by 1 + growth ln(1 + floor(position / growth_every)) (Ministral 3); 0: they aren't */
    uint32_t growth_every;
    struct experts_form experts;
};

enum layer_rope { LAYER_ROPE_GLOBAL, LAYER_ROPE_LOCAL, LAYER_ROPE_NONE };

struct xielu { /* Huang and Schlag 2024, as Apertus has it; alphas above 0 */
    float alpha_p, alpha_n, beta, eps;
};

struct layer_form {
    enum layer_rope rope;
    bool sees_all;      /* whatever the model's window */
    struct xielu xielu; /* where the model's activation is this */
};

static inline HOST_DEVICE float
form_factor(float factor)
{
    return factor > 0 || factor < 0 ? factor : 1;
}

/* What a query at a position is scaled by, besides. */
static inline float
form_growth(const struct model_form *f, uint32_t position)
{
    return f->growth > 0 && f->growth_every > 0 ? 1 + f->growth * logf((float)(1 + position / f->growth_every)) : 1;
}

/* Of a head's slope, n heads. A power of two of them have most / n, 2 most / n, … for exponents; what are more, the odd ones of
 * twice as many. */
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

/* What the score of a key at a position grows by, for a query at `own`, by a head of this slope. */
static inline HOST_DEVICE float
form_leaning(const struct alibi *a, float slope, uint32_t own, uint32_t position)
{
    const float bias = a->in_bf16 ? bf16_nearest(slope * (float)position) - bf16_nearest(slope * (float)own)
                                  : -slope * (float)(own - position);
    return form_factor(a->scale) * bias;
}

#endif
