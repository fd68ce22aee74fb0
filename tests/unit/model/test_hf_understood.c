/* config.json as transformers interprets it: the entries that are used, defaults of missing ones, RoPE in one form. */
#include <math.h>

#include "engine/model/arch/arch_hf.h"
#include "tests/rigs/test.h"

/* Interprets a configuration that is written with ' instead of ". */
static cJSON *
understood(const char *model_type, const char *text, struct err *err)
{
    char json[600];
    snprintf(json, sizeof json, "%s", text);
    for (char *c = json; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    char path[] = "tiny";
    struct hf_folder f = {.path = path, .config = cJSON_Parse(json)};
    assert_non_null(f.config);
    const struct arch *arch = arch_of_hf(path, model_type, err);
    assert_non_null(arch);
    cJSON *c = arch_hf_understood(&f, arch, err);
    cJSON_Delete(f.config);
    return c;
}

/* Asserts that an entry, such as "rope_parameters.factor", is `wanted` as JSON without blanks, or is missing if "". */
static void
says(const char *model_type, const char *text, const char *entry, const char *wanted)
{
    struct err err = {.kind = ERR_NONE};
    cJSON *c = understood(model_type, text, &err);
    if (c == NULL)
        fail_msg("%s: %s", text, err.text);
    const char *point = strchr(entry, '.');
    char outer[64];
    snprintf(outer, sizeof outer, "%.*s", (int)(point == NULL ? strlen(entry) : (size_t)(point - entry)), entry);
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(c, outer);
    v = point == NULL ? v : cJSON_GetObjectItemCaseSensitive(v, point + 1);
    char *shown = v == NULL ? NULL : cJSON_PrintUnformatted(v);
    if (strcmp(shown == NULL ? "" : shown, wanted) != 0)
        fail_msg("%s %s: %s is %s, not %s", model_type, text, entry, shown == NULL ? "missing" : shown, wanted);
    free(shown);
    cJSON_Delete(c);
}

static void
refused(const char *model_type, const char *text, const char *why)
{
    struct err err = {.kind = ERR_NONE};
    cJSON *c = understood(model_type, text, &err);
    if (c != NULL || strstr(err.text, why) == NULL)
        fail_msg("%s %s: says \"%s\", not \"%s\"", model_type, text, err.text, why);
}

TEST(entries_of_other_architectures_are_passed_over)
{
    says("llama", "{'query_pre_attn_scalar':4}", "query_pre_attn_scalar", "");
    says("gemma2", "{'query_pre_attn_scalar':4}", "query_pre_attn_scalar", "4");
    says("qwen3_moe", "{'parallel_attn':true}", "parallel_attn", "");
    says("falcon", "{'parallel_attn':true}", "parallel_attn", "true");
    says("falcon", "{'rms_norm_eps':0.01}", "rms_norm_eps", "");
    says("mistral", "{'layer_types':['full_attention']}", "layer_types", "");
    says("llama", "{'hidden_size':8}", "hidden_size", "8"); /* every architecture has sizes */
}

TEST(missing_values_are_the_architectures_defaults)
{
    says("cohere", "{}", "logit_scale", "0.0625");
    says("cohere", "{'logit_scale':1}", "logit_scale", "1");
    says("granite", "{}", "attention_multiplier", "1");
    says("gemma2", "{'attn_logit_softcapping':null}", "attn_logit_softcapping", "null");
    says("gemma2", "{}", "attn_logit_softcapping", "50");
    says("exaone4", "{}", "sliding_window", "4096");
    says("llama", "{}", "rope_theta", "");
    says("apertus", "{'rope_parameters':null}", "rope_parameters.rope_type", "\"llama3\"");
    says("apertus", "{'rope_scaling':{'type':'linear','factor':2}}", "rope_parameters.type", "\"linear\"");
    says("ministral3", "{}", "rope_parameters.llama_4_scaling_beta", "0.1");
}

TEST(a_missing_number_has_the_architectures_default)
{
    static const struct {
        const char *model_type, *name;
        double value; /* NAN: none */
    } cases[] = {{"smollm3", "rope_theta", 2e6},
                 {"olmo2", "rms_norm_eps", 1e-5},
                 {"olmo", "layer_norm_eps", 1e-5},
                 {"qwen3", "head_dim", 128},
                 {"llama", "head_dim", NAN},
                 {"gemma3_text", "vocab_size", 262208},
                 {"gpt2", "max_position_embeddings", 1024}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double value = NAN;
        struct err err = {.kind = ERR_NONE};
        const enum arch_value kind =
            arch_hf_default(arch_of_hf("tiny", cases[i].model_type, &err), cases[i].name, &value);
        assert_int_equal(kind == VALUE_MISSING, isnan(cases[i].value));
        if (!isnan(cases[i].value))
            assert_float_equal(value, cases[i].value, 1e-12);
    }
}

#define DENSE "'layer_types':['attention','full_attention'],'num_local_experts':0,'shared_intermediate_size':40"

TEST(a_hybrid_of_attention_alone_has_the_shared_mlp)
{
    says("granitemoehybrid", "{" DENSE ",'intermediate_size':9}", "intermediate_size", "40");
    says("granitemoehybrid", "{" DENSE "}", "no_rope_layer_interval", "1");
    says("granitemoehybrid", "{" DENSE ",'position_embedding_type':'rope'}", "no_rope_layer_interval", "");
    says("granitemoehybrid", "{'layer_types':['attention','mamba'],'num_local_experts':0}", "layer_types",
         "[\"attention\",\"mamba\"]");
}

TEST(rope_scaling_goes_before_rope_parameters)
{
    static const char both[] = "{'rope_scaling':{'rope_type':'linear','factor':2},'rope_parameters':{'factor':4}}";
    says("llama", both, "rope_parameters.factor", "2");
    says("llama", both, "rope_scaling", "");
    says("llama", "{'rope_scaling':null,'rope_parameters':{'factor':4}}", "rope_parameters.factor", "4");
    says("llama", "{'rope_scaling':{},'rope_parameters':{'factor':4}}", "rope_parameters.factor", "4");
    refused("llama", "{'rope_scaling':[1]}", "RoPE scaling is not understood");
}

TEST(layers_with_a_window_have_a_rotation_of_their_own_in_some_architectures)
{
    static const char kinds[] =
        "{'rope_parameters':{'full_attention':{'rope_theta':9},'sliding_attention':{'rope_theta':7}}}",
                      scaled[] = "{'rope_theta':9,'rope_scaling':{'rope_type':'yarn','factor':8,'truncate':false}}";
    says("olmo3", kinds, "rope_parameters", "{\"rope_theta\":9}");
    says("olmo3", kinds, ARCH_HF_ROPE_LOCAL, "{\"rope_theta\":7}");
    says("olmo3", scaled, "rope_parameters", "{\"rope_type\":\"yarn\",\"factor\":8}");
    says("olmo3", scaled, ARCH_HF_ROPE_LOCAL, "{}");
    refused("llama", kinds, "its kinds of layers have different RoPE parameters, which is not supported in a");
    refused("gemma3_text", "{'rope_scaling':{'type':'linear','factor':8}}", "'rope_scaling' needs a 'rope_type'");
}

TEST(numbers_of_rope_that_an_architecture_lacks_are_passed_over)
{
    static const char rope[] = "{'rope_parameters':{'partial_rotary_factor':0.5,'alpha':50}}";
    says("llama", rope, "rope_parameters", "{}");
    says("glm4", rope, "rope_parameters", "{\"partial_rotary_factor\":0.5}");
    says("hunyuan_v1_dense", rope, "rope_parameters", "{\"alpha\":50}");
    says("gpt_neox", "{'partial_rotary_factor':0.5,'rotary_pct':0.25}", "partial_rotary_factor", "");
}

TEST(biases_are_there_where_a_switch_is_on)
{
    const layer_set_t qkv = LAYER_QKV_BIAS, out = 1ull << LAYER_BO,
                      may = qkv | out | LAYER_MLP_BIAS | 1ull << LAYER_FFN_NORM;
    const struct {
        const char *model_type, *text;
        layer_set_t has, needs;
    } cases[] = {{"llama", "{}", 0, 0},
                 {"llama", "{'attention_bias':true}", qkv | out, qkv},
                 {"llama", "{'mlp_bias':true}", LAYER_MLP_BIAS, 0},
                 {"mistral", "{'attention_bias':true}", 0, qkv},
                 {"seed_oss", "{}", qkv, qkv},
                 {"seed_oss", "{'attention_out_bias':true}", qkv | out, qkv},
                 {"gpt_neox", "{'attention_bias':false}", 0, 0},
                 {"falcon", "{'bias':true}", qkv | out | LAYER_MLP_BIAS, qkv}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = {.kind = ERR_NONE};
        cJSON *c = understood(cases[i].model_type, cases[i].text, &err);
        struct arch arch = *arch_of_hf("tiny", cases[i].model_type, &err);
        arch.may = may;
        arch.needs = qkv;
        arch_hf_switch(c, &arch);
        assert_int_equal(arch.may, cases[i].has | 1ull << LAYER_FFN_NORM);
        assert_int_equal(arch.needs, cases[i].needs);
        cJSON_Delete(c);
    }
}
