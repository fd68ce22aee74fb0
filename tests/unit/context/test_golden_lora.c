/* Adapters in the formats of PEFT and GGUF, merged into golden models of both formats and compared with transformers
 * (make_lora_golden.py). Adapters that do not fit are refused. Run from the repository's root. */
#include <unistd.h>

#include "tests/rigs/folders.h"
#include "tests/rigs/golden_logits.h"
#include "tests/rigs/test.h"

#define GOLDEN "tests/golden/"
#define LORA   GOLDEN "lora/"

static struct golden golden;

static bool
open_with(struct model **m, const char *path, const char *adapter, bool exact, struct err *err)
{
    *err = (struct err){.kind = ERR_NONE};
    return model_open_with(m, path, &(struct model_options){.exact = exact, .lora = &adapter, .n_lora = 1}, err);
}

static const struct {
    const char *model, *adapter, *text;
} merged[] = {
    {"models/llama", "llama", "llama"},
    {"models/llama", "llama.gguf", "llama"},
    {"models/llama", "llama/adapter_model.safetensors", "llama"},
    {"models/llama.gguf", "llama", "llama"},
    {"models/llama.gguf", "llama.gguf", "llama"},
    {"models/llama", "llama-half:0.5", "llama-half"},
    {"models/llama.gguf", "llama-half:0.5", "llama-half"},
    {"families/phi3", "phi3", "phi3"},
    {"families/phi3", "phi3.gguf", "phi3"},
    {"families/phi3.gguf", "phi3:1", "phi3"},
    {"families/phi3.gguf", "phi3.gguf", "phi3"},
    {"families/gpt2", "gpt2", "gpt2"},
    {"families/gpt2.gguf", "gpt2", "gpt2"},
    {"families/gpt_neox", "gpt_neox", "gpt_neox"},
    {"families/gpt_neox", "gpt_neox.gguf", "gpt_neox"},
    {"families/gpt_neox.gguf", "gpt_neox", "gpt_neox"},
    {"families/gpt_neox.gguf", "gpt_neox.gguf", "gpt_neox"},
    {"families/mixtral", "mixtral", "mixtral"},
    {"families/mixtral.gguf", "mixtral", "mixtral"},
    {"families/mixtral", "mixtral.gguf", "mixtral"},
    {"families/mixtral.gguf", "mixtral.gguf", "mixtral"},
    {"families/mixtral", "mixtral-parameters", "mixtral-parameters"},
    {"families/mixtral.gguf", "mixtral-parameters", "mixtral-parameters"},
    {"families/olmoe", "olmoe-parameters", "olmoe-parameters"},
    {"families/olmoe.gguf", "olmoe-parameters", "olmoe-parameters"},
};

TEST(merged_adapters_give_the_logits_of_transformers)
{
    for (size_t i = 0; i < sizeof merged / sizeof *merged; i++) {
        char model[80], adapter[80], text[80];
        struct model *m;
        struct err err;
        snprintf(model, sizeof model, GOLDEN "%s", merged[i].model);
        snprintf(adapter, sizeof adapter, LORA "%s", merged[i].adapter);
        snprintf(text, sizeof text, LORA "%s.txt", merged[i].text);
        golden_read(&golden, text);
        for (int exact = 0; exact < 2; exact++) {
            assert_ok(open_with(&m, model, adapter, exact, &err), err);
            const double error = golden_error(m, &golden, NULL, true);
            if (!(error < (exact ? 1e-4 : 2e-3)))
                fail_msg("%s with %s: %.2g", model, adapter, error);
            model_close(m);
        }
    }
}

TEST(no_golden_file_of_adapters_lacks_a_test)
{
    const char *texts[sizeof merged / sizeof *merged];
    for (size_t i = 0; i < sizeof merged / sizeof *merged; i++)
        texts[i] = merged[i].text;
    golden_assert_listed(LORA, ".txt", texts, sizeof merged / sizeof *merged);
}

/* Matrices in blocks are F16 after a merge, and the model counts them. */
TEST(a_quantised_model_is_held_as_f16_where_it_is_merged)
{
    struct model *m, *plain;
    struct err err;
    assert_ok(model_open(&plain, GOLDEN "models/llama-q8_0.gguf", &err), err);
    assert_ok(open_with(&m, GOLDEN "models/llama-q8_0.gguf", LORA "llama-half:0.5", false, &err), err);
    golden_read(&golden, LORA "llama-half.txt");
    assert_less(golden_error(m, &golden, NULL, true), 2e-2);
    assert_int_equal(m->merged_otherwise, 6);
    assert_int_equal(m->desc.layers[0].wq.type, WEIGHT_F16);
    assert_int_equal(m->desc.layers[0].wk.type, WEIGHT_Q8_0);
    assert_int_equal(m->parameters, plain->parameters);
    assert_string_equal(m->merged, LORA "llama-half x 0.5: 6 matrices");
    assert_int_not_equal(m->hash, plain->hash);
    model_close(plain);
    model_close(m);
}

TEST(two_adapters_add_up_and_scales_tell_models_apart)
{
    struct model *m, *once;
    struct err err = {.kind = ERR_NONE};
    const char *both[] = {LORA "llama-half:0.2", LORA "llama-half:0.3"};
    golden_read(&golden, LORA "llama-half.txt");
    assert_ok(model_open_with(&m, GOLDEN "models/llama", &(struct model_options){.lora = both, .n_lora = 2}, &err),
              err);
    assert_less(golden_error(m, &golden, NULL, true), 1e-4);
    assert_ok(open_with(&once, GOLDEN "models/llama", LORA "llama-half:0.5", false, &err), err);
    assert_int_not_equal(m->hash, once->hash);
    model_close(once);
    model_close(m);
}

static const char config[] = "{\"peft_type\":\"LORA\",\"r\":%d,\"lora_alpha\":5%s}";

TEST_WITH(what_is_no_adapter_of_the_model_is_refused, folder_set_up, folder_tear_down)
{
    static const struct {
        const char *model, *rest, *says;
    } cases[] = {
        {"models/llama", "", "is of another rank than the adapter"},
        {"models/llama", ",\"use_dora\":true",
         "split into size and direction (DoRA) (use_dora), which is not supported"},
        {"models/llama", ",\"modules_to_save\":[\"lm_head\"]", "has modules saved whole (modules_to_save)"},
        {"models/llama", ",\"alpha_pattern\":{\"q_proj\":3}", "has an alpha for each module (alpha_pattern)"},
        {"models/llama", ",\"bias\":\"all\"", "has biases (bias)"},
        {"models/qwen3", "", "is 32 by 32, the model's is 96 by 32: it belongs to another model"},
        {"families/gpt2", "", "adds to nothing in this gpt2: it belongs to another model"},
        {"families/phi3", "", "is 32 by 32, the model's is 24 by 24: it belongs to another model"},
    };
    char from[256], to[300];
    assert_non_null(getcwd(from, sizeof from));
    snprintf(to, sizeof to, "%s/adapter_model.safetensors", (char *)*state);
    strncat(from, "/" LORA "llama-half/adapter_model.safetensors", sizeof from - strlen(from) - 1);
    assert_int_equal(symlink(from, to), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200], model[80];
        struct model *m;
        struct err err;
        snprintf(text, sizeof text, config, i == 0 ? 3 : 2, cases[i].rest);
        write_text(*state, "adapter_config.json", text);
        snprintf(model, sizeof model, GOLDEN "%s", cases[i].model);
        const bool ok = open_with(&m, model, *state, false, &err);
        if (ok || strstr(err.text, cases[i].says) == NULL)
            fail_msg("%s: %s: says \"%s\"", cases[i].model, cases[i].rest, ok ? "" : err.text);
    }
}

/* Writes an adapter of rank 1 for one matrix; all values are zero. */
static void
write_adapter(const char *folder, const char *stem, uint32_t rows, uint32_t cols)
{
    char path[300], header[500];
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
    const int n = snprintf(header, sizeof header,
                           "{\"base_model.model.%s.lora_A.weight\":{\"dtype\":\"F32\",\"shape\":[1,%u],"
                           "\"data_offsets\":[0,%u]},\"base_model.model.%s.lora_B.weight\":{\"dtype\":\"F32\","
                           "\"shape\":[%u,1],\"data_offsets\":[%u,%u]}}",
                           stem, cols, 4 * cols, stem, rows, 4 * cols, 4 * (rows + cols));
    const uint64_t size = (uint64_t)n;
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(&size, sizeof size, 1, f);
    fputs(header, f);
    for (uint32_t i = 0; i < 4 * (rows + cols); i++)
        fputc(0, f);
    assert_int_equal(fclose(f), 0);
    snprintf(header, sizeof header, config, 1, "");
    write_text(folder, "adapter_config.json", header);
}

TEST_WITH(a_git_lfs_pointer_in_place_of_adapter_config_is_called_that, folder_set_up, folder_tear_down)
{
    struct model *m;
    struct err err;
    write_adapter(*state, "layers.0.self_attn.q_proj", 32, 32);
    write_text(*state, "adapter_config.json", "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 7\n");
    assert_false(open_with(&m, GOLDEN "models/llama", *state, false, &err));
    assert_contains(err.text, "adapter_config.json: is a Git LFS pointer");
}

TEST_WITH(adapters_of_recurrent_layers_add_to_whole_matrices_in_the_same_order, folder_set_up, folder_tear_down)
{
    static const struct {
        const char *model, *matrix, *says; /* NULL: the adapter is merged */
        uint32_t rows, cols;
    } cases[] = {
        {"families/qwen3_5", "in_proj_z", NULL, 32, 24},
        {"families/qwen3_5.gguf", "in_proj_z", "whose heads have another order in GGUF files", 32, 24},
        {"families/olmo_hybrid", "g_proj", NULL, 40, 24},
        {"families/olmo_hybrid", "k_proj", "adds to a part of what is one tensor", 12, 24},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char model[80], stem[80];
        struct model *m;
        struct err err;
        snprintf(model, sizeof model, GOLDEN "%s", cases[i].model);
        snprintf(stem, sizeof stem, "model.layers.0.linear_attn.%s", cases[i].matrix);
        write_adapter(*state, stem, cases[i].rows, cases[i].cols);
        const bool ok = open_with(&m, model, *state, false, &err);
        if (ok != (cases[i].says == NULL) || (!ok && strstr(err.text, cases[i].says) == NULL))
            fail_msg("%s, %s: says \"%s\"", cases[i].model, cases[i].matrix, ok ? "" : err.text);
        if (ok)
            model_close(m);
    }
}

TEST(adapter_arguments_are_checked)
{
    static const struct {
        const char *model, *adapter, *says;
    } cases[] = {
        {"models/llama", LORA "llama:half", "'half' is no scale from -100 to 100"},
        {"models/llama", LORA "llama:1e9", "'1e9' is no scale"},
        {"models/llama", ":2", "a file, or a file and its scale"},
        {"models/llama", GOLDEN "models/llama.gguf", "is a GGUF file, but no LoRA adapter"},
        {"models/llama", GOLDEN "models/llama/model.safetensors", "adapter_config.json is missing beside it"},
        {"models/llama", LORA "phi3.gguf", "is an adapter of the architecture 'phi3', but the model is a llama"},
        {"models/llama3", LORA "llama", "which is the embedding here; merge it with PEFT"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char model[80];
        struct model *m;
        struct err err;
        snprintf(model, sizeof model, GOLDEN "%s", cases[i].model);
        const bool ok = open_with(&m, model, cases[i].adapter, false, &err);
        if (ok || strstr(err.text, cases[i].says) == NULL)
            fail_msg("%s: says \"%s\"", cases[i].adapter, ok ? "" : err.text);
    }
}
