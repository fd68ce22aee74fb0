/* A Hugging Face model's config.json and tensors: optional and required entries. The files are in memory. */
#include <math.h>

#include "engine/model/arch/arch.h"
#include "engine/model/files/hf_folder.h"
#include "engine/model/model_open.h"
#include "tests/rigs/test.h"
#include "tests/rigs/tiny_folder.h"

struct read {
    struct model *model; /* NULL: refused */
    unsigned char *bytes;
    struct err err;
};

/* Reads a model with this config and these weights, without a tokenizer. */
static struct read
read_config(const char *config, const struct tiny_weights *weights)
{
    struct read r = {0};
    struct safetensors *file;
    struct hf_folder *folder;
    size_t len;
    r.bytes = tiny_weights(weights, &len);
    struct model *m = calloc(1, sizeof *m);
    assert_non_null(r.bytes);
    assert_non_null(m);
    if (!safetensors_parse(&file, "tiny/model.safetensors", r.bytes, len, &r.err))
        fail_msg("%s", r.err.text);
    if (hf_folder_parse(&folder, "tiny", config, strlen(config), NULL, 0, file, &r.err)) {
        m->path = strdup("tiny");
        m->folder = folder;
        if (arch_read_hf(m, folder, NULL, &r.err)) {
            r.model = m;
            return r;
        }
    }
    model_close(m);
    return r;
}

static void
drop(struct read *r)
{
    model_close(r->model);
    free(r->bytes);
}

static struct read
accept(const char *config, const struct tiny_weights *weights)
{
    struct read r = read_config(config, weights);
    if (r.model == NULL)
        fail_msg("%s: %s", config, r.err.text);
    return r;
}

static void
refuse(const char *config, const struct tiny_weights *weights, const char *says)
{
    struct read r = read_config(config, weights);
    if (r.model != NULL || strstr(r.err.text, says) == NULL)
        fail_msg("%s: says \"%s\", not \"%s\"", config, r.err.text, says);
    assert_int_equal(strncmp(r.err.text, "tiny", 4), 0);
    free(r.bytes);
}

static const struct tiny_weights plain = {0}, biased = {.optional = LAYER_QKV_BIAS},
                                 normed = {.optional = LAYER_QK_NORM}, headless = {.headless = true};

TEST(sizes_and_tensors_are_read)
{
    struct read r = accept(TINY_CONFIG("llama", ",\"rope_theta\":500000,\"tie_word_embeddings\":false"), &plain);
    const struct model_desc *d = &r.model->desc;
    assert_string_equal(r.model->arch, "llama");
    assert_int_equal(d->n_layers, 1);
    assert_int_equal(d->width, 8);
    assert_int_equal(d->heads, 2);
    assert_int_equal(d->kv_heads, 1);
    assert_int_equal(d->head_dim, 4);
    assert_int_equal(d->ffn, 16);
    assert_int_equal(d->vocab, 10);
    assert_int_equal(r.model->ctx_train, 64);
    assert_int_equal(d->rope_dims, 4);
    assert_int_equal(d->window, 0);
    assert_int_equal(d->rope, ROPE_HALVES);
    assert_number_equal(d->rope_base, 500000);
    assert_number_equal(d->rope_scale, 1);
    assert_null(d->rope_factors);
    assert_false(r.model->tied);
    assert_ptr_not_equal(d->head.data, d->embedding.data);
    assert_int_equal(d->head.rows, 10);
    assert_int_equal(d->head.cols, 8);
    assert_int_equal(d->layers[0].down.rows, 8);
    assert_int_equal(d->layers[0].down.cols, 16);
    assert_int_equal(d->layers[0].wk.rows, 4);
    assert_false(tensor_present(&d->layers[0].bq));
    assert_false(tensor_present(&d->layers[0].q_norm));
    assert_int_equal(r.model->parameters, 2 * 80 + 8 + (8 + 64 + 32 + 32 + 64 + 8 + 3 * 128));
    drop(&r);
}

TEST(a_head_is_tied_as_the_config_or_its_default_requires)
{
    static const char untied[] = TINY_CONFIG("llama", ",\"tie_word_embeddings\":false"),
                      silent[] = TINY_CONFIG("llama", ""),
                      tied[] = TINY_CONFIG("llama", ",\"tie_word_embeddings\":true");
    struct read r = accept(tied, &plain); /* a head that differs from the embedding is used */
    assert_false(r.model->tied);
    drop(&r);
    r = accept(tied, &headless);
    assert_true(r.model->tied);
    drop(&r);
    r = accept(silent, &headless);
    assert_true(r.model->tied);
    drop(&r);
    r = accept(silent, &plain);
    assert_false(r.model->tied);
    drop(&r);
    refuse(untied, &headless, "tensor 'lm_head.weight' is missing");
}

TEST(rope_is_read_as_transformers_4_and_5_write_it)
{
    static const struct {
        const char *config;
        float base, scale;
    } cases[] = {
        {TINY_CONFIG("llama", ""), 10000, 1},
        {TINY_CONFIG("llama", ",\"rope_theta\":5e5,\"rope_scaling\":null"), 500000, 1},
        {TINY_CONFIG("llama", ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":4.0}"), 10000, 0.25f},
        {TINY_CONFIG("llama", ",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":2}"), 10000, 0.5f},
        {TINY_CONFIG("llama", ",\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":1e6}"), 1000000, 1},
        {TINY_CONFIG("llama", ",\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":8,\"rope_theta\":20000}"),
         20000, 0.125f},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct read r = accept(cases[i].config, &plain);
        assert_number_equal(r.model->desc.rope_base, cases[i].base);
        assert_number_equal(r.model->desc.rope_scale, cases[i].scale);
        drop(&r);
    }
}

TEST(llama3_scaling_divides_low_frequencies_and_leaves_high_ones)
{
    /* Base 10^4 over 4 dimensions has wavelengths 2π and 200π. Between old/high and old/low they are interpolated. */
    static const char far_apart[] = TINY_CONFIG(
        "llama",
        ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"
        "\"original_max_position_embeddings\":512}");
    static const char between[] = TINY_CONFIG(
        "llama",
        ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"
        "\"original_max_position_embeddings\":1000}");
    struct read r = accept(far_apart, &plain);
    assert_number_equal(r.model->desc.rope_factors[0], 1);
    assert_number_equal(r.model->desc.rope_factors[1], 8);
    drop(&r);
    r = accept(between, &plain);
    const double smooth = (1000 / (200 * 3.14159265358979) - 1) / 3; /* 1000/628 is between 1 and 4 */
    assert_near(r.model->desc.rope_factors[1], 1 / ((1 - smooth) / 8 + smooth), 1e-5);
    drop(&r);
}

TEST(windows_are_those_of_all_layers_or_none)
{
    static const struct {
        const char *config;
        uint32_t window;
    } cases[] = {
        {TINY_CONFIG("mistral", ",\"sliding_window\":4096"), 4096},
        {TINY_CONFIG("mistral", ",\"sliding_window\":null"), 0},
        {TINY_CONFIG("mistral", ""), 4096},
        {TINY_CONFIG("llama", ",\"sliding_window\":4096"), 0},
        {TINY_CONFIG("qwen2", ",\"sliding_window\":32,\"use_sliding_window\":false"), 0},
        {TINY_CONFIG("qwen2", ",\"sliding_window\":32"), 0},
        {TINY_CONFIG("qwen2", ",\"sliding_window\":32,\"use_sliding_window\":true,\"max_window_layers\":28"), 0},
        {TINY_CONFIG("qwen2", ",\"sliding_window\":32,\"use_sliding_window\":true,\"max_window_layers\":0"), 32},
        {TINY_CONFIG("qwen2",
                     ",\"sliding_window\":32,\"use_sliding_window\":true,\"layer_types\":[\"full_attention\"]"),
         0},
        {TINY_CONFIG("qwen2",
                     ",\"sliding_window\":32,\"use_sliding_window\":true,\"layer_types\":[\"sliding_attention\"]"),
         32},
        {TINY_CONFIG("smollm3", ",\"sliding_window\":32,\"use_sliding_window\":true,\"no_rope_layers\":[0]"), 32},
        {TINY_CONFIG("smollm3", ",\"sliding_window\":32,\"use_sliding_window\":true,\"no_rope_layer_interval\":1"), 32},
        {TINY_CONFIG("smollm3", ",\"sliding_window\":32,\"use_sliding_window\":true"), 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct read r = accept(cases[i].config, strstr(cases[i].config, "qwen2") != NULL ? &biased : &plain);
        if (r.model->desc.window != cases[i].window)
            fail_msg("%s: window %u", cases[i].config, (unsigned)r.model->desc.window);
        drop(&r);
    }
    refuse(TINY_CONFIG("mistral", ",\"sliding_window\":0"), &plain, "'sliding_window' should be a whole number");
    refuse(TINY_CONFIG("mistral", ",\"sliding_window\":\"4096\""), &plain, "'sliding_window' should be a whole number");
    refuse(
        TINY_CONFIG("ministral", ",\"sliding_window\":4,\"layer_types\":[\"sliding_attention\",\"sliding_attention\"]"),
        &plain, "are of 2 layers, but it has 1");
}

TEST(biases_and_head_norms_come_as_f32)
{
    static const char *const dtypes[] = {"F32", "F16", "BF16"};
    for (size_t i = 0; i < 3; i++) {
        struct tiny_weights w = {.optional = LAYER_QKV_BIAS, .dtype = dtypes[i]};
        struct read r = accept(TINY_CONFIG("qwen2", ""), &w);
        const struct layer_desc *y = &r.model->desc.layers[0];
        assert_int_equal(y->bq.type, WEIGHT_F32);
        assert_int_equal(y->bq.cols, 8);
        assert_int_equal(y->bk.cols, 4);
        assert_int_equal(y->bv.cols, 4);
        assert_true(isfinite(((const float *)y->bv.data)[3]));
        assert_false(tensor_present(&y->q_norm));
        drop(&r);
        w = (struct tiny_weights){.optional = LAYER_QK_NORM, .dtype = dtypes[i]};
        r = accept(TINY_CONFIG("qwen3", ",\"head_dim\":4"), &w);
        y = &r.model->desc.layers[0];
        assert_int_equal(y->q_norm.type, WEIGHT_F32);
        assert_int_equal(y->q_norm.cols, 4);
        assert_int_equal(y->k_norm.cols, 4);
        assert_false(tensor_present(&y->bq));
        drop(&r);
    }
    struct read r = accept(TINY_CONFIG("llama", ",\"attention_bias\":true"), &biased); /* InternLM's format */
    assert_true(tensor_present(&r.model->desc.layers[0].bk));
    drop(&r);
    refuse(TINY_CONFIG("qwen2", ""), &plain, "tensor 'model.layers.0.self_attn.q_proj.bias' is missing");
    refuse(TINY_CONFIG("qwen3", ",\"head_dim\":4"), &plain,
           "tensor 'model.layers.0.self_attn.q_norm.weight' is missing");
    refuse(TINY_CONFIG("qwen3", ""), &normed,
           "tensor 'model.layers.0.self_attn.q_proj.weight' is 8 x 8"); /* the default head is 128 wide */
    refuse(TINY_CONFIG("llama", ""), &normed,
           "'model.layers.0.self_attn.k_norm.weight' does not belong to a plain llama");
}

TEST(misaligned_tensors_are_copied)
{
    static const char *const dtypes[] = {"F32", "BF16"};
    for (unsigned shift = 0; shift < 8; shift++)
        for (size_t i = 0; i < 2; i++) {
            const struct tiny_weights w = {.dtype = dtypes[i], .shift = shift};
            struct read r = accept(TINY_CONFIG("llama", ""), &w);
            const struct tensor *t = &r.model->desc.layers[0].wv;
            const size_t size = i == 0 ? 4 : 2;
            assert_int_equal((uintptr_t)t->data % size, 0);
            const struct safetensor *const *at =
                hf_folder_find(r.model->folder, "model.layers.0.self_attn.v_proj.weight");
            assert_memory_equal(t->data, (*at)->data, 32 * size);
            drop(&r);
        }
}

TEST(leftover_tensors_are_named)
{
    const struct tiny_weights bias = {.extra = "model.layers.0.self_attn.o_proj.bias"},
                              strange = {.extra = "model.layers.0.mlp.experts\\u0007"},
                              table = {.extra = "model.layers.0.self_attn.rotary_emb.inv_freq"};
    refuse(TINY_CONFIG("mistral", ""), &bias, "tensor 'model.layers.0.self_attn.o_proj.bias' does not belong to");
    refuse(TINY_CONFIG("llama", ""), &strange, "tensor 'model.layers.0.mlp.experts\\x07' does not belong to");
    struct read r = accept(TINY_CONFIG("llama", ""), &table);
    drop(&r);
}

TEST(unsupported_features_are_named)
{
    static const struct {
        const char *config, *says;
    } cases[] = {
        {"{}", "config.json does not say what it is ('model_type')"},
        {"[]", "tiny/config.json: is no JSON object"},
        {"{\"model_type\":7}", "does not say what it is"},
        {TINY_CONFIG("xyz", ""), "architecture 'xyz' is not supported; Llama, Mistral"},
        {TINY_CONFIG("dbrx",
                     ",\"ffn_config\":{\"moe_num_experts\":4,\"moe_top_k\":2,\"moe_normalize_expert_weights\":2}"),
         "'moe_normalize_expert_weights' is not 1, which is not supported"},
        {TINY_CONFIG("phimoe", ",\"num_local_experts\":4,\"num_experts_per_tok\":3"),
         "SparseMixer chooses two experts for a row, not 3"},
        {TINY_CONFIG("mpt", ",\"attn_config\":{\"alibi\":false}"),
         "has learned positions (attn_config.alibi is false)"},
        {TINY_CONFIG("mpt", ",\"attn_config\":{\"qk_ln\":true}"), "'attn_config.qk_ln' is not supported"},
        {TINY_CONFIG("bloom", ",\"apply_residual_connection_post_layernorm\":true"),
         "'apply_residual_connection_post_layernorm' is not supported"},
        {TINY_CONFIG("x\\u001b[0m", ""), "architecture 'x\\x1b[0m' is not supported"},
        {TINY_CONFIG("llama", ",\"hidden_act\":\"hardswish\""), "the activation 'hardswish' is not supported"},
        {TINY_CONFIG("llama", ",\"alibi\":true"), "'alibi' is not supported"},
        {TINY_CONFIG("llama", ",\"use_qk_norm\":true"), "'use_qk_norm' is not supported"},
        {TINY_CONFIG("llama", ",\"hidden_act\":[]"), "the activation '?' is not supported"},
        {TINY_CONFIG("mistral", ",\"num_experts\":8"), "has 8 experts, which are not supported"},
        {TINY_CONFIG("llama", ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":0}"),
         "RoPE scaling 'yarn' make no sense"},
        {TINY_CONFIG("llama", ",\"rope_scaling\":{\"type\":\"warp\",\"factor\":4}"), "RoPE scaling 'warp' is not"},
        {TINY_CONFIG("llama", ",\"rope_scaling\":{\"type\":\"longrope\",\"short_factor\":[1]}"),
         "RoPE scaling 'longrope' make no sense"},
        {TINY_CONFIG("llama", ",\"rope_scaling\":{\"rope_type\":\"yarn\"}"), "'factor' of RoPE should be a number"},
        {TINY_CONFIG("llama", ",\"rope_scaling\":[1]"), "RoPE scaling is not understood"},
        {TINY_CONFIG("llama", ",\"rope_scaling\":{\"type\":3}"), "RoPE scaling is not understood"},
        {TINY_CONFIG("llama", ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":0}"), "a RoPE scaling factor of 0"},
        {TINY_CONFIG("llama", ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":\"2\"}"),
         "'factor' of RoPE should be"},
        {TINY_CONFIG("llama", ",\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8}"), "'low_freq_factor' of RoPE"},
        {TINY_CONFIG("phi3", ",\"rope_parameters\":{\"partial_rotary_factor\":0.3}"), "a partial_rotary_factor of 0.3"},
        {TINY_CONFIG("llama", ",\"head_dim\":3"), "RoPE rotates 3 dimensions"},
        {TINY_CONFIG("llama", ",\"head_dim\":2.5"), "config.json's 'head_dim' should be a whole number"},
        {TINY_CONFIG("llama", ",\"rope_theta\":0"), "a RoPE base of 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refuse(cases[i].config, &plain, cases[i].says);
}

TEST(a_missing_context_length_is_the_architectures_default)
{
    static const char all[] = "\"max_position_embeddings\":64,";
    static const struct {
        const char *config;
        uint32_t ctx;
    } cases[] = {{TINY_CONFIG("llama", ""), 2048}, {TINY_CONFIG("mistral", ""), 131072}};
    for (size_t i = 0; i < 2; i++) {
        char config[512];
        const char *at = strstr(cases[i].config, all);
        snprintf(config, sizeof config, "%.*s%s", (int)(at - cases[i].config), cases[i].config, at + strlen(all));
        struct read r = accept(config, &plain);
        assert_int_equal(r.model->ctx_train, cases[i].ctx);
        drop(&r);
    }
}

TEST(lies_about_sizes_are_refused)
{
    static const struct {
        const char *key, *value, *says;
    } cases[] = {
        {"num_hidden_layers", "?", "'num_hidden_layers' is missing"},
        {"num_hidden_layers", "0", "'num_hidden_layers' is 0, not between 1 and"},
        {"num_hidden_layers", "2", "tensor 'model.layers.1.input_layernorm.weight' is missing"},
        {"num_hidden_layers", "4000", "4000 layers, but only"},
        {"num_hidden_layers", "1e300", "should be a whole number"},
        {"hidden_size", "16", "tensor 'model.embed_tokens.weight' is 8 x 10"},
        {"hidden_size", "\"8\"", "'hidden_size' should be a whole number"},
        {"hidden_size", "null", "'hidden_size' is missing"},
        {"vocab_size", "11", "tensor 'model.embed_tokens.weight' is 8 x 10"},
        {"num_attention_heads", "3", "cannot be divided among 3 heads"},
        {"num_attention_heads", "4", "tensor 'model.layers.0.self_attn.k_proj.weight' is 8 x 4, but should be 8 x 2"},
        {"num_key_value_heads", "2", "tensor 'model.layers.0.self_attn.k_proj.weight' is 8 x 4"},
        {"intermediate_size", "-1", "'intermediate_size' is -1"},
        {"rms_norm_eps", "2", "a norm's epsilon of 2"},
        {"rms_norm_eps", "1e999", "is not a finite number"},
        {"max_position_embeddings", "0", "'max_position_embeddings' is 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char base[] = TINY_CONFIG("llama", "");
        char config[512], name[64];
        snprintf(name, sizeof name, "\"%s\":", cases[i].key);
        const char *at = strstr(base, name), *end = at + strlen(name) + strcspn(at + strlen(name), ",}");
        const bool rename = cases[i].value[0] == '?';
        snprintf(config, sizeof config, "%.*s\"%s%s\":%s%s", (int)(at - base), base, rename ? "x" : "", cases[i].key,
                 rename ? "1" : cases[i].value, end);
        refuse(config, &plain, cases[i].says);
    }
}
