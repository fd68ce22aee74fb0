#include "tests/rigs/cuda_rig.h"

#include <limits.h>
#include <unistd.h>

#include "kernels/plugin.h"
#include "tests/rigs/model_forms.h"
#include "tests/rigs/test.h"

#define EMULATED "specscope-cuda-emulated.so"

const struct backend_ops *
cuda_for_tests(void)
{
    const struct backend_ops *ops;
    struct err err = {.kind = ERR_NONE};
    if (getenv("SPECSCOPE_CUDA_PLUGIN") == NULL) {
        char path[PATH_MAX];
        const ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof EMULATED);
        assert_greater(n, 0);
        path[n] = '\0';
        memcpy(strrchr(path, '/') + 1, EMULATED, sizeof EMULATED);
        setenv("SPECSCOPE_CUDA_PLUGIN", path, 1);
    }
    const enum plugin_state state = plugin_load(&ops, &err);
    if (state == PLUGIN_BROKEN)
        fail_msg("%s", err.text);
    if (state == PLUGIN_ABSENT)
        print_message("skipped: %s\n", err.text);
    return ops;
}

bool
cuda_is_emulated(void)
{
    const char *path = getenv("SPECSCOPE_CUDA_PLUGIN");
    return path != NULL && strstr(path, EMULATED) != NULL;
}

/* The shape with Q4_K and Q6_K mixes them as Q4_K_M files do. */
const struct naive_shape cuda_shapes[CUDA_SHAPES] = {
    RIG_SHAPE(3, 37, 3, 1, 22, 41, 130, .rope = ROPE_HALVES),
    RIG_SHAPE(2, 64, 4, 2, 16, 90, 75, .type = WEIGHT_F16),
    RIG_SHAPE(3, 48, 6, 1, 6, 130, 70, .rope = ROPE_HALVES, .type = WEIGHT_BF16),
    RIG_SHAPE(2, 96, 4, 4, 24, 64, 90, .type = WEIGHT_Q8_0),
    RIG_SHAPE(2, 64, 4, 2, 24, 64, 60, .rope = ROPE_HALVES, .type = WEIGHT_Q5_1,
              .optional = LAYER_QKV_BIAS | LAYER_QK_NORM),
    RIG_SHAPE(2, 40, 2, 1, 16, 48, 50, .type = WEIGHT_F16, .window = 4),
    RIG_SHAPE(2, 96, 3, 1, 32, 160, 70, .type = WEIGHT_Q4_0),
    RIG_SHAPE(2, 256, 4, 2, 64, 512, 90, .rope = ROPE_HALVES, .type = WEIGHT_Q4_K, .second = WEIGHT_Q6_K,
              .optional = LAYER_QKV_BIAS),
    RIG_SHAPE(1, 256, 4, 4, 64, 256, 50, .type = WEIGHT_Q6_K),
    /* Forms of OLMo 2, Gemma 3, Granite; Phi-2's form with Cohere 2's layers; Hunyuan's form with LayerNorm; Apertus's
     * form */
    RIG_SHAPE(2, 50, 20, 4, 6, 42, 61, .type = WEIGHT_F16, FORM_OLMO2),
    RIG_SHAPE(3, 64, 4, 2, 16, 64, 60, .type = WEIGHT_Q8_0, FORM_GEMMA3),
    RIG_SHAPE(2, 48, 6, 2, 6, 50, 70, .type = WEIGHT_BF16, FORM_GRANITE),
    RIG_SHAPE(3, 40, 4, 2, 16, 44, 90, .type = WEIGHT_F16, .rope = ROPE_HALVES, .rope_dims = 8,
              .lacks = 1ull << LAYER_FFN_NORM | LAYER_GATED,
              .optional = LAYER_QKV_BIAS | 1ull << LAYER_BO | LAYER_MLP_BIAS | 1ull << LAYER_ATTN_NORM_B,
              .end_biases = true, .window = 4, .every = 1, .layer_form = {.rope = LAYER_ROPE_NONE, .sees_all = true},
              .form = {.activation = ACT_GELU, .layer_norm = true, .parallel = true, .logit_scale = 0.25f}),
    RIG_SHAPE(2, 40, 4, 2, 10, 48, 33, .optional = LAYER_QK_NORM | LAYER_NORM_BIAS, .lacks = LAYER_GATED,
              .form = {.activation = ACT_RELU_SQUARED, .layer_norm = true, .late_norms = true, .rope_gain = 1.2f}),
    SHAPE_APERTUS,
    /* Forms of BLOOM and Falcon, the latter with a window */
    RIG_SHAPE(2, 48, 6, 6, 8, 70, 90, .type = WEIGHT_F16, FORM_BLOOM),
    RIG_SHAPE(1, 64, 6, 1, 16, 96, 90, .type = WEIGHT_Q8_0, .window = 9, FORM_FALCON),
    RIG_SHAPE(1, 256, 2, 1, 64, 256, 40, .type = WEIGHT_MXFP4, .second = WEIGHT_IQ2_S),
    /* Experts of Mixtral and gpt-oss; of GLM-4-MoE with LayerNorm; of Qwen2-MoE without gates after norms; of OLMoE
     * after norms of whole rows, clipped; of PhiMoE */
    RIG_SHAPE(2, 64, 4, 2, 16, 96, 80, .type = WEIGHT_Q8_0, FORM_MIXTRAL),
    SHAPE_GPT_OSS,
    RIG_SHAPE(3, 50, 5, 5, 10, 77, 61, .type = WEIGHT_F16, .dense = 1, .optional = 1ull << LAYER_CORRECTION,
              .form = {.layer_norm = true, .residual_scale = 0.6f, .experts = GLM4_MOE_EXPERTS}),
    RIG_SHAPE(2, 256, 4, 2, 64, 256, 70, .type = WEIGHT_Q4_K, .second = WEIGHT_Q6_K, .rope = ROPE_HALVES,
              .lacks = LAYER_GATED | LAYER_PRE_NORMS, .optional = LAYER_POST_NORMS | 1ull << LAYER_SHARED_MIX,
              .form = {.activation = ACT_GELU, .experts = {.n = 5, .used = 3, .ffn = 256, .shared_ffn = 512}}),
    RIG_SHAPE(1, 40, 20, 4, 6, 48, 50, .type = WEIGHT_F16, .optional = LAYER_QK_NORM,
              .form = {.whole_norms = true, .clip = 0.7f, .experts = {.n = 6, .used = 2, .ffn = 24}}),
    RIG_SHAPE(1, 64, 4, 2, 16, 96, 60, .type = WEIGHT_F16,
              .form = {.layer_norm = true,
                       .clip = 1.5f,
                       .experts = {.n = 35, .used = 2, .ffn = 33, .routing = ROUTE_SPARSEMIXER, .jitter = 2}}),
};

void
cuda_rig_open(struct rig *r, size_t shape, bool exact, uint64_t seed)
{
    struct naive_shape own = cuda_shapes[shape];
    if (!exact)
        route_to_all(&own);
    rig_open(r, cuda_for_tests(), &own, seed + shape,
             &(struct backend_options){.threads = 2, .exact = exact, .gpu = -1});
    if (!exact)
        naive_model_in_halves(r->model);
}

/* The definition rounds to F16 where the device does. Sums that differ in their last bits may round to different F16
 * numbers, by 2^-11 of their size, and later layers change the difference. It is larger in a mixture of experts,
 * because outputs of experts can nearly cancel each other. */
void
cuda_rig_assert_near_naive(struct rig *r, int node, bool exact)
{
    const double rounded = r->desc->form.experts.n > 0 ? 2e-2 : 2e-3;
    rig_assert_near_naive(r, node, 1e-7, exact ? 1e-5 : rounded);
}
