/* Hugging Face folders: complete ones and incomplete ones. */
#include <cjson/cJSON.h>
#include <math.h>
#include <unistd.h>

#include "engine/model/arch/arch.h"
#include "engine/model/files/hf_folder.h"
#include "engine/model/model_open.h"
#include "engine/model/tokenizer/tokenizer.h"
#include "tests/rigs/test.h"
#include "tests/rigs/tiny_folder.h"

/* ---- on disk ---- */

static void
write_file(const char *folder, const char *file, const void *bytes, size_t n)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void
write_text(const char *folder, const char *file, const char *text)
{
    write_file(folder, file, text, strlen(text));
}

static void
write_weights(const char *folder, const char *file, const struct tiny_weights *w)
{
    size_t n;
    unsigned char *bytes = tiny_weights(w, &n);
    assert_non_null(bytes);
    write_file(folder, file, bytes, n);
    free(bytes);
}

static void
remove_file(const char *folder, const char *file)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    assert_int_equal(unlink(path), 0);
}

static void
assert_folder_refused(const char *folder, const char *says)
{
    struct model *m = NULL;
    struct err err = {0};
    assert_false(model_open(&m, folder, &err));
    assert_null(m);
    if (strstr(err.text, says) == NULL)
        fail_msg("says \"%s\", not \"%s\"", err.text, says);
}

TEST(folders_that_are_not_whole_are_refused)
{
    char folder[] = "/tmp/specscope-folder-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_folder_refused(folder, "is a folder without config.json; give a .gguf file or a Hugging Face folder");
    write_text(folder, "config.json", "{");
    assert_folder_refused(folder, "/config.json: is no JSON object");
    write_text(folder, "config.json", TINY_CONFIG("llama", ""));
    assert_folder_refused(folder, "holds no weights (model.safetensors or model.safetensors.index.json)");

    write_weights(folder, "model.safetensors", &(struct tiny_weights){0});
    assert_folder_refused(folder, "has neither a tokenizer.json nor a tokenizer.model");
    remove_file(folder, "model.safetensors");

    write_text(folder, "model.safetensors.index.json", "{}");
    assert_folder_refused(folder, "has no weight_map");
    write_text(folder, "model.safetensors.index.json", "{\"weight_map\":{\"a\":\"../a.safetensors\"}}");
    assert_folder_refused(folder, "'a' is mapped to no file of this folder");
    write_text(folder, "model.safetensors.index.json", "{\"weight_map\":{\"a\":7}}");
    assert_folder_refused(folder, "'a' is mapped to no file of this folder");
    write_text(folder, "model.safetensors.index.json", "{\"weight_map\":{\"a\":\"a.safetensors\"}}");
    assert_folder_refused(folder, "/a.safetensors: is missing, but the index names it; fetch it too");
    write_weights(folder, "a.safetensors", &(struct tiny_weights){0});
    write_weights(folder, "b.safetensors", &(struct tiny_weights){0});
    write_text(folder, "model.safetensors.index.json",
               "{\"weight_map\":{\"a\":\"a.safetensors\",\"b\":\"b.safetensors\"}}");
    assert_folder_refused(folder, "tensor 'lm_head.weight' is in two files");
    remove_file(folder, "b.safetensors");
    remove_file(folder, "a.safetensors");
    remove_file(folder, "model.safetensors.index.json");
    remove_file(folder, "config.json");
    assert_int_equal(rmdir(folder), 0);
}

TEST(a_git_lfs_pointer_in_place_of_a_text_file_is_called_that)
{
    static const char *const files[] = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                                        "config.json"};
    char folder[] = "/tmp/specscope-folder-XXXXXX";
    assert_non_null(mkdtemp(folder));
    write_text(folder, "config.json", TINY_CONFIG("llama", ""));
    write_weights(folder, "model.safetensors", &(struct tiny_weights){0});
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        write_text(folder, files[i], "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 7\n");
        assert_folder_refused(folder, "is a Git LFS pointer, not the file itself; run `git lfs pull`");
        assert_folder_refused(folder, files[i]);
        remove_file(folder, files[i]);
    }
    remove_file(folder, "model.safetensors");
    assert_int_equal(rmdir(folder), 0);
}

TEST(an_index_that_does_not_name_model_safetensors_is_ignored_beside_it)
{
    char folder[] = "/tmp/specscope-folder-XXXXXX";
    struct hf_folder *f;
    struct err err = {0};
    assert_non_null(mkdtemp(folder));
    write_text(folder, "config.json", TINY_CONFIG("llama", ""));
    write_weights(folder, "model.safetensors", &(struct tiny_weights){0});
    write_text(folder, "model.safetensors.index.json", "{\"weight_map\":{\"a\":\"a.safetensors\"}}");
    assert_ok(hf_folder_open(&f, folder, true, &err), err);
    assert_int_equal(f->n_files, 1);
    assert_non_null(hf_folder_find(f, "lm_head.weight"));
    hf_folder_close(f);
    write_text(folder, "model.safetensors.index.json",
               "{\"weight_map\":{\"a\":\"model.safetensors\",\"b\":\"b.safetensors\"}}");
    assert_folder_refused(folder, "/b.safetensors: is missing, but the index names it; fetch it too");
    remove_file(folder, "model.safetensors.index.json");
    remove_file(folder, "model.safetensors");
    remove_file(folder, "config.json");
    assert_int_equal(rmdir(folder), 0);
}

TEST(json_that_python_writes_is_read)
{
    char folder[] = "/tmp/specscope-folder-XXXXXX";
    struct hf_folder *f;
    struct err err = {0};
    assert_non_null(mkdtemp(folder));
    write_text(folder, "config.json",
               TINY_CONFIG("llama", ",\"time_step_limit\":[0.0,Infinity],\"x\":NaN,\"vocab_size\":12"));
    write_text(folder, "generation_config.json", "{\"eos_token_id\":1,\"max_time\":-Infinity,\"eos_token_id\":2}");
    assert_ok(hf_folder_open(&f, folder, false, &err), err);
    assert_int_equal(cJSON_GetObjectItemCaseSensitive(f->config, "vocab_size")->valueint, 12);
    assert_number_equal(cJSON_GetObjectItemCaseSensitive(f->config, "time_step_limit")->child->next->valuedouble,
                        HUGE_VAL);
    assert_int_equal(cJSON_GetObjectItemCaseSensitive(f->generation, "eos_token_id")->valueint, 2);
    hf_folder_close(f);
    remove_file(folder, "generation_config.json");
    remove_file(folder, "config.json");
    assert_int_equal(rmdir(folder), 0);
}

/* ---- complete folders ---- */

#define GOLDEN "tests/golden/models/"

TEST(a_folder_and_a_gguf_file_of_a_model_agree)
{
    static const char *const names[] = {"llama", "llama3", "mistral", "qwen2", "qwen3"};
    static const char text[] = "the and an owl in the rain; \xc3\xa9\n 12";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[64];
        struct model *folder, *file;
        struct err err = {0};
        snprintf(path, sizeof path, GOLDEN "%s", names[i]);
        assert_ok(model_open(&folder, path, &err), err);
        snprintf(path, sizeof path, GOLDEN "%s.gguf", names[i]);
        assert_ok(model_open(&file, path, &err), err);
        assert_string_equal(folder->name, names[i]);
        assert_int_not_equal(folder->hash, 0);
        assert_int_not_equal(folder->hash, file->hash);
        assert_int_equal(folder->parameters, file->parameters);
        assert_int_equal(folder->tied, file->tied);
        assert_int_equal(folder->ctx_train, file->ctx_train);
        assert_int_equal(folder->desc.window, file->desc.window);
        assert_number_equal(folder->desc.rope_base, file->desc.rope_base);
        assert_number_equal(folder->desc.rope_scale, file->desc.rope_scale);
        assert_int_equal(folder->desc.rope_factors == NULL, file->desc.rope_factors == NULL);
        for (uint32_t k = 0; folder->desc.rope_factors != NULL && k < folder->desc.rope_dims / 2; k++)
            assert_near(folder->desc.rope_factors[k], file->desc.rope_factors[k], 1e-5f);
        token_t *one, *two;
        size_t n_one, n_two;
        const struct tokenize_options options = {.bos = true};
        assert_ok(tokenizer_encode(folder->tokenizer, text, strlen(text), options, &one, &n_one, &err), err);
        assert_ok(tokenizer_encode(file->tokenizer, text, strlen(text), options, &two, &n_two, &err), err);
        assert_int_equal(n_one, n_two);
        assert_memory_equal(one, two, n_one * sizeof *one);
        free(one);
        free(two);
        model_close(folder);
        model_close(file);
    }
}

TEST(stop_tokens_are_a_set)
{
    struct model *m;
    struct err err = {0};
    if (!model_open(&m, GOLDEN "qwen2", &err)) /* its generation_config.json lists 2 and 258 */
        fail_msg("%s", err.text);
    for (token_t id = 0; id < (token_t)tokenizer_size(m->tokenizer); id++)
        assert_int_equal(tokenizer_is_end(m->tokenizer, id), id == 2 || id == 258);
    model_close(m);
}

TEST(a_tokenizer_may_know_more_only_by_added_tokens)
{
    static const char added[] = "{\"id\":288,\"content\":\"<pad>\",\"special\":true,\"single_word\":false,"
                                "\"lstrip\":false,\"rstrip\":false,\"normalized\":false},";
    char folder[] = "/tmp/specscope-more-XXXXXX";
    struct err err = {0};
    struct model *m;
    char *json, *at;
    size_t n;
    assert_non_null(mkdtemp(folder));
    assert_ok(hf_folder_text(GOLDEN "llama", "tokenizer.json", &json, &n, &err), err);
    write_file(folder, "tokenizer.json", json, n);
    write_weights(folder, "model.safetensors", &(struct tiny_weights){0});
    write_text(folder, "config.json", TINY_CONFIG("llama", ""));
    assert_folder_refused(folder, "the tokenizer has 288 tokens, the model's embedding only 10");

    char more[16384];
    assert_non_null(at = strstr(json, "\"added_tokens\": ["));
    at += strlen("\"added_tokens\": [");
    const int length = snprintf(more, sizeof more, "%.*s%s%s", (int)(at - json), json, added, at);
    assert_greater(length, 0);
    assert_less((size_t)length, sizeof more);
    write_text(folder, "tokenizer.json", more);
    free(json);
    static const char *const files[] = {"model.safetensors", "config.json"};
    for (size_t i = 0; i < 2; i++) {
        assert_ok(hf_folder_text(GOLDEN "llama", files[i], &json, &n, &err), err);
        write_file(folder, files[i], json, n);
        free(json);
    }
    assert_ok(model_open(&m, folder, &err), err);
    assert_int_equal(m->desc.vocab, 288);
    assert_int_equal(tokenizer_size(m->tokenizer), 289);
    model_close(m);
    remove_file(folder, "tokenizer.json");
    remove_file(folder, "model.safetensors");
    remove_file(folder, "config.json");
    assert_int_equal(rmdir(folder), 0);
}

TEST(stop_tokens_that_are_no_tokens_are_refused)
{
    char folder[] = "/tmp/specscope-stop-XXXXXX";
    static const char *const files[] = {"tokenizer.json", "model.safetensors", "config.json", "generation_config.json"};
    struct err err = {0};
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < 3; i++) {
        char *bytes;
        size_t n;
        assert_ok(hf_folder_text(GOLDEN "llama", files[i], &bytes, &n, &err), err);
        char *eos = i == 2 ? strstr(bytes, "\"eos_token_id\": 2,") : NULL;
        if (i == 2) {
            assert_non_null(eos);
            memcpy(eos, "\"eos_token_id\":999", 18);
            eos[18] = ',';
        }
        write_file(folder, files[i], bytes, n);
        free(bytes);
    }
    assert_folder_refused(folder, "an eos_token_id in config.json is no token of the tokenizer's 288");
    write_text(folder, "generation_config.json", "{\"eos_token_id\":[2,-1]}");
    assert_folder_refused(folder, "an eos_token_id in generation_config.json is no token");
    write_text(folder, "generation_config.json", "{\"eos_token_id\":\"</s>\"}");
    assert_folder_refused(folder, "an eos_token_id in generation_config.json is no token");
    write_text(folder, "generation_config.json", "{\"eos_token_id\":[1,3]}");
    struct model *m;
    if (!model_open(&m, folder, &err)) /* config.json is not read for it */
        fail_msg("%s", err.text);
    assert_true(tokenizer_is_end(m->tokenizer, 1) && tokenizer_is_end(m->tokenizer, 3));
    model_close(m);
    for (size_t i = 0; i < 4; i++)
        remove_file(folder, files[i]);
    assert_int_equal(rmdir(folder), 0);
}
