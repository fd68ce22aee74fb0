/* Forms of real models that the small models of the CPU's and the CUDA backend's tests share (cpu_shapes.c,
 * cuda_rig.c). A macro contains members of struct naive_shape; SHAPE_… is a whole one. */
#pragma once

#include "tests/rigs/backend_rig.h"

/* with Gemma 2's caps */
#define FORM_GEMMA3                                                                                                    \
    .rope = ROPE_HALVES, .optional = LAYER_QK_NORM | LAYER_POST_NORMS, .window = 3, .every = 2,                        \
    .layer_form = {.rope = LAYER_ROPE_LOCAL, .sees_all = true},                                                        \
    .form = {.activation = ACT_GELU_TANH,                                                                              \
             .embedding_scale = 8,                                                                                     \
             .attention_scale = 0.3f,                                                                                  \
             .attention_cap = 2,                                                                                       \
             .logit_cap = 3,                                                                                           \
             .local_base = 100,                                                                                        \
             .rope_gain = 1.2f}
#define FORM_OLMO2 .optional = LAYER_QK_NORM | LAYER_POST_NORMS, .lacks = LAYER_PRE_NORMS, .form = {.whole_norms = true}
/* with biases */
#define FORM_GRANITE                                                                                                   \
    .optional = LAYER_QKV_BIAS | 1ull << LAYER_BO | LAYER_MLP_BIAS | 1ull << LAYER_BGATE,                              \
    .form = {.embedding_scale = 12, .residual_scale = 0.3f, .logit_scale = 0.2f, .attention_scale = 0.1f}
#define FORM_BLOOM                                                                                                     \
    .early_norm = true, .every = 1, .layer_form = {.rope = LAYER_ROPE_NONE},                                           \
    .form = {.layer_norm = true, .alibi = {.most = 8}}
/* with clipped queries, keys and values, as in MPT */
#define FORM_FALCON  .lacks = LAYER_GATED, .form = {.activation = ACT_GELU, .clip = 1, .alibi = {6, 0.25f, true}}
#define FORM_MIXTRAL .form = {.experts = {.n = 7, .used = 2, .ffn = 96, .renormalised = true}}
#define GLM4_MOE_EXPERTS                                                                                               \
    {                                                                                                                  \
        .n = 12, .used = 3, .ffn = 19, .shared_ffn = 38, .groups = 4, .groups_used = 2, .routing = ROUTE_SIGMOID,      \
        .renormalised = true, .scale = 2.5f                                                                            \
    }

/* with GPT-2's positions and Ministral 3's queries */
#define SHAPE_APERTUS                                                                                                  \
    RIG_SHAPE(3, 40, 4, 1, 10, 48, 33, .type = WEIGHT_F16, .lacks = LAYER_GATED, .positions = RIG_NODES, .every = 1,   \
              .layer_form = {.rope = LAYER_ROPE_NONE}, .xielu = {0.8f, 1.1f, 0.4f, -1e-6f},                            \
              .form = {.activation = ACT_XIELU, .growth = 0.4f, .growth_every = 4})
#define SHAPE_GPT_OSS                                                                                                  \
    RIG_SHAPE(                                                                                                         \
        2, 48, 6, 2, 8, 48, 70, .type = WEIGHT_BF16, .window = 3, .every = 1, .layer_form = {.sees_all = true},        \
        .optional = LAYER_QKV_BIAS | 1ull << LAYER_BO | 1ull << LAYER_SINKS | 1ull << LAYER_BROUTER,                   \
        .expert_biases = true,                                                                                         \
        .form = {.activation = ACT_SWIGLU_CLAMPED, .experts = {.n = 8, .used = 4, .ffn = 45, .renormalised = true}})

/* Routes all rows to all experts, because rounding could change a choice. */
static inline void
route_to_all(struct naive_shape *shape)
{
    struct experts_form *const x = &shape->form.experts;
    x->used = x->n;
    x->groups = x->groups_used = 0;
    x->routing %= ROUTE_SPARSEMIXER; /* its weights are not continuous */
}
