#include "tests/rigs/cpu_shapes.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/cpu/isa.h"
#include "tests/rigs/model_forms.h"

/* Weights of these types would make scores of several hundreds. A score's relative error then multiplies its
 * probability. */
#define SMALL_SCORES .attention_scale = 0.01f

/* Blocks of 256 inputs. */
#define IN_BLOCKS(kind, ...) RIG_SHAPE(2, 256, 4, 2, 64, 256, 300, .type = kind, __VA_ARGS__)

/* Gemma 4's form with further members of struct model_form. */
#define GEMMA4_FORM(...)                                                                                               \
    .form = {.activation = ACT_GELU_TANH,                                                                              \
             .embedding_scale = 8,                                                                                     \
             .attention_scale = 0.3f,                                                                                  \
             .value_norms = true,                                                                                      \
             .local_base = 100,                                                                                        \
             .local_dims = 8,                                                                                          \
             __VA_ARGS__}

const struct naive_shape cpu_shapes[] = {
    RIG_SHAPE(3, 64, 4, 2, 16, 96, 200, .type = WEIGHT_Q8_0),
    RIG_SHAPE(3, 50, 5, 5, 10, 77, 101, .type = WEIGHT_F16),
    RIG_SHAPE(4, 48, 6, 1, 6, 130, 70, .type = WEIGHT_BF16),
    RIG_SHAPE(2, 37, 3, 1, 22, 41, 1300, .rope = ROPE_HALVES),
    RIG_SHAPE(2, 128, 4, 4, 24, 32, 1100, .rope = ROPE_HALVES, .type = WEIGHT_Q8_0),
    IN_BLOCKS(WEIGHT_Q4_0, .optional = LAYER_QKV_BIAS),
    IN_BLOCKS(WEIGHT_Q4_1, .window = 5),
    IN_BLOCKS(WEIGHT_Q5_0, .optional = LAYER_QK_NORM),
    IN_BLOCKS(WEIGHT_Q5_1, .rope = ROPE_HALVES),
    IN_BLOCKS(WEIGHT_Q2_K, .optional = LAYER_QKV_BIAS, .window = 3, .form = {SMALL_SCORES}),
    IN_BLOCKS(WEIGHT_Q3_K, .optional = LAYER_QK_NORM | LAYER_QKV_BIAS),
    IN_BLOCKS(WEIGHT_Q4_K, .rope = ROPE_HALVES, .optional = LAYER_QKV_BIAS, .form = {SMALL_SCORES}),
    IN_BLOCKS(WEIGHT_Q5_K, .window = 8, .form = {SMALL_SCORES}),
    IN_BLOCKS(WEIGHT_Q6_K, .window = 1),
    IN_BLOCKS(WEIGHT_MXFP4, .second = WEIGHT_IQ4_NL, .window = 2),
    IN_BLOCKS(WEIGHT_IQ4_XS, .second = WEIGHT_IQ3_S, .optional = LAYER_QKV_BIAS),
    IN_BLOCKS(WEIGHT_IQ3_XXS, .second = WEIGHT_IQ2_XXS, .rope = ROPE_HALVES),
    IN_BLOCKS(WEIGHT_IQ2_S, .second = WEIGHT_IQ1_M, .optional = LAYER_QK_NORM),
    IN_BLOCKS(WEIGHT_IQ2_XS, .second = WEIGHT_IQ1_S, .window = 4),
    IN_BLOCKS(WEIGHT_TQ2_0, .second = WEIGHT_TQ1_0, .optional = LAYER_QKV_BIAS),
    /* Forms of Gemma 3, OLMo 2, Granite, Cohere 2, Phi-2, Nemotron */
    RIG_SHAPE(4, 64, 4, 2, 16, 96, 200, .type = WEIGHT_Q8_0, FORM_GEMMA3),
    RIG_SHAPE(3, 50, 5, 5, 10, 77, 101, .type = WEIGHT_F16, FORM_OLMO2),
    RIG_SHAPE(3, 48, 6, 2, 6, 130, 70, .type = WEIGHT_BF16, FORM_GRANITE),
    RIG_SHAPE(4, 50, 4, 2, 10, 77, 101, .lacks = 1ull << LAYER_FFN_NORM, .window = 4, .every = 3,
              .layer_form = {.rope = LAYER_ROPE_NONE, .sees_all = true},
              .form = {.layer_norm = true, .parallel = true, .logit_scale = 0.25f}),
    RIG_SHAPE(2, 64, 4, 4, 16, 96, 90, .type = WEIGHT_Q8_0, .rope = ROPE_HALVES, .rope_dims = 8,
              .lacks = 1ull << LAYER_FFN_NORM | LAYER_GATED,
              .optional = LAYER_QKV_BIAS | 1ull << LAYER_BO | LAYER_MLP_BIAS | 1ull << LAYER_ATTN_NORM_B,
              .end_biases = true, .form = {.activation = ACT_GELU_TANH, .layer_norm = true, .parallel = true}),
    RIG_SHAPE(2, 64, 4, 2, 16, 96, 90, .type = WEIGHT_F16, .rope = ROPE_HALVES, .rope_dims = 8, .lacks = LAYER_GATED,
              .optional = LAYER_NORM_BIAS,
              .form = {.activation = ACT_RELU_SQUARED, .layer_norm = true, .rope_gain = 1.2f}),
    /* Forms of Apertus and Hunyuan */
    SHAPE_APERTUS,
    RIG_SHAPE(2, 40, 4, 2, 10, 48, 33, .optional = LAYER_QK_NORM, .form = {.activation = ACT_GELU, .late_norms = true}),
    /* Forms of BLOOM and Falcon; experts of PhiMoE */
    RIG_SHAPE(3, 48, 6, 6, 8, 70, 90, .type = WEIGHT_F16, FORM_BLOOM),
    RIG_SHAPE(2, 64, 6, 1, 16, 96, 90, .type = WEIGHT_Q8_0, .window = 40, FORM_FALCON),
    RIG_SHAPE(3, 64, 4, 2, 16, 96, 200, .type = WEIGHT_F16, .dense = 1,
              .form = {.layer_norm = true,
                       .experts = {.n = 7, .used = 2, .ffn = 96, .routing = ROUTE_SPARSEMIXER, .jitter = 2}}),
    /* Qwen3-Next's, Qwen3.5's form */
    RIG_SHAPE(4, 64, 4, 2, 16, 96, 200, .type = WEIGHT_F16, .rope = ROPE_HALVES, .rope_dims = 4,
              .optional = LAYER_QK_NORM, .attention_every = 4,
              .form = {.output_gate = true,
                       .recurrent = {.key_heads = 2, .value_heads = 4, .key_dim = 16, .value_dim = 16, .taps = 4}}),
    RIG_SHAPE(
        4, 50, 5, 5, 10, 77, 101, .type = WEIGHT_F16, .attention_every = 2,
        .form = {.recurrent =
                     {.key_heads = 3, .value_heads = 6, .key_dim = 10, .value_dim = 18, .taps = 3, .tiled = true}}),
    /* LFM2's, Mamba-2's form */
    RIG_SHAPE(4, 64, 4, 2, 16, 96, 200, .type = WEIGHT_F16, .rope = ROPE_HALVES, .optional = LAYER_QK_NORM,
              .attention_every = 3,
              .form = {.recurrent = {.value_heads = 4, .value_dim = 16, .taps = 3, .kind = RECURRENCE_CONV}}),
    RIG_SHAPE(4, 50, 5, 5, 10, 77, 101, .type = WEIGHT_F16, .attention_every = 2,
              .form = {.recurrent = {.key_heads = 2,
                                     .value_heads = 6,
                                     .key_dim = 10,
                                     .value_dim = 18,
                                     .taps = 4,
                                     .kind = RECURRENCE_MAMBA,
                                     .step_least = 0.2f,
                                     .step_most = 1}}),
    /* Mixtral's, GLM-4-MoE's, gpt-oss's, Qwen2-MoE's experts */
    RIG_SHAPE(3, 64, 4, 2, 16, 96, 200, .type = WEIGHT_Q8_0, FORM_MIXTRAL),
    RIG_SHAPE(3, 50, 5, 5, 10, 77, 101, .type = WEIGHT_F16, .dense = 1, .optional = 1ull << LAYER_CORRECTION,
              .form = {.experts = GLM4_MOE_EXPERTS}),
    SHAPE_GPT_OSS,
    /* Gemma 4's layers of two shapes, keys as values; per-layer inputs and shared keys; experts beside an MLP */
    RIG_SHAPE(4, 64, 4, 2, 16, 96, 200, .type = WEIGHT_F16, .rope = ROPE_HALVES, .lacks = 1ull << LAYER_WV,
              .optional = LAYER_QK_NORM | LAYER_POST_NORMS | 1ull << LAYER_OUT_SCALE, .window = 3, .every = 2,
              .layer_form = {.rope = LAYER_ROPE_LOCAL, .head_dim = 8, .kv_heads = 1, .ffn = 64}, GEMMA4_FORM()),
    RIG_SHAPE(6, 50, 4, 2, 12, 77, 101, .type = WEIGHT_F16, .rope = ROPE_HALVES,
              .optional = LAYER_QK_NORM | LAYER_POST_NORMS | LAYER_INPUTS | 1ull << LAYER_OUT_SCALE, .window = 4,
              .every = 2, .layer_form = {.rope = LAYER_ROPE_LOCAL, .head_dim = 8}, .shared = 3,
              GEMMA4_FORM(.per_layer = 6)),
    RIG_SHAPE(3, 64, 4, 2, 16, 96, 200, .type = WEIGHT_F16, .rope = ROPE_HALVES, .dense = 1,
              .optional = LAYER_QK_NORM | LAYER_POST_NORMS | LAYER_BESIDE | 1ull << LAYER_OUT_SCALE,
              .form = {.value_norms = true, .experts = {.n = 7, .used = 2, .ffn = 32, .renormalised = true}}),
    IN_BLOCKS(WEIGHT_Q4_K, .rope = ROPE_HALVES, .optional = LAYER_QKV_BIAS | 1ull << LAYER_SHARED_MIX,
              .form = {SMALL_SCORES, .experts = {.n = 6, .used = 3, .ffn = 256, .shared_ffn = 512}}),
};
const size_t cpu_shapes_n = sizeof cpu_shapes / sizeof *cpu_shapes;

/* Heads that are normalised one by one (values, and keys and rows of recurrent layers) may be short, which enlarges
 * their errors. So the shapes that have them are in F16. */
static double
enlarged(const struct naive_shape *s, double recurrent)
{
    return s->form.value_norms ? 16 : s->attention_every > 0 ? recurrent : 1;
}

/* The error of keys and values in F16 and, for blocks, of activations in 7 bits and a sign at every matrix, about 0.7%
 * each. isa_checks.c holds the kernels themselves to 2e-6. */
static double
bound_of(const struct naive_shape *s)
{
    return s->type < WEIGHT_Q8_0 ? enlarged(s, 16) * 5e-3 : 0.1;
}

double
cpu_exact_bound(const struct naive_shape *s)
{
    const struct experts_form *x = &s->form.experts;
    uint32_t longest = s->heads * s->head_dim;
    for (int i = 0; i < 4; i++) {
        const uint32_t n = (const uint32_t[]){s->width, s->ffn, x->ffn, x->shared_ffn}[i];
        longest = n > longest ? n : longest;
    }
    return 4 * (double)FLT_EPSILON * sqrt((double)s->n_layers * longest) * enlarged(s, 4);
}

void
on_every_isa_and_shape(bool exact, uint64_t seed, void (*check)(struct rig *, double bound))
{
    const bool all = getenv("SPECSCOPE_LONG") != NULL;
    size_t usable = 0;
    for (size_t i = 0; cpu_isas[i] != NULL; i++)
        usable += cpu_isas[i]->usable();
    for (size_t i = 0, nth = 0; cpu_isas[i] != NULL; nth += cpu_isas[i++]->usable())
        for (size_t s = 0; s < cpu_shapes_n && cpu_isas[i]->usable(); s++) {
            struct rig r;
            if (!all && nth != (seed + s) % usable)
                continue;
            const struct backend_options o = {.threads = 1 + (uint32_t)s % 2, .isa = cpu_isas[i]->name, .exact = exact};
            struct naive_shape shape = cpu_shapes[s];
            if (!exact)
                route_to_all(&shape);
            rig_open(&r, &cpu_backend, &shape, seed + s, &o);
            check(&r, exact ? cpu_exact_bound(&shape) : bound_of(&shape));
            rig_close(&r);
        }
}
