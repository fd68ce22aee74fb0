/* Rounds of feature drafters against a reference in PyTorch (tests/golden/make_eagle_golden.py): the greedy text, every
 * drafted token with its parent and probability, and the number of accepted drafts, for each format of EAGLE-3 heads
 * and each family with layers for multi-token prediction, on the CPU and on a GPU. An emulated GPU computes one run of
 * a quarter of them, which the seed chooses. The tests run in the repository's root. */
#include <limits.h>
#include <unistd.h>

#include "engine/model/model_open.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/golden_logits.h"
#include "tests/rigs/golden_rounds.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define FOLDER "tests/golden/eagle/"

static const char *const cases[] = {"specforge", "angelslim",    "speculators", "gguf",
                                    "glm4_moe",  "ernie4_5_moe", "qwen3_5",     "qwen3_next"};

static struct golden_rounds golden = {.folder = FOLDER};
#define ONE_RUN 1000 /* as golden_rounds.step: one run per case, of a quarter of the cases */

static const char *const converted[] = {"glm4_moe", "qwen3_5"}; /* also converted to GGUF */

TEST(a_head_of_another_model_is_refused)
{
    golden_rounds_refused(FOLDER "specforge/head", "models/fables-q8_0.gguf",
                          "reads hidden states of width 32, but those of");
    golden_rounds_refused(FOLDER "gguf/head.gguf", "models/fables-q8_0.gguf", "the drafter belongs to another model");
    struct model *m;
    struct err err = {.kind = ERR_NONE};
    assert_false(model_open(&m, FOLDER "specforge/head", &err));
    assert_contains(err.text, "is an EAGLE-3 head, which drafts for a model");
}

TEST(a_head_whose_file_does_not_name_its_target_is_refused_by_its_tensors)
{
    char target[80], folder[] = "/tmp/specscope-head-XXXXXX", head[80], config[80], weights[80], path[PATH_MAX];
    struct err err;
    assert_non_null(mkdtemp(folder));
    snprintf(head, sizeof head, "%s/head.gguf", folder);
    snprintf(config, sizeof config, "%s/config.json", folder);
    snprintf(weights, sizeof weights, "%s/model.safetensors", folder);
    const struct tinymodel tiny = {.n_layers = 7, .width = 32}, wide = {.n_layers = 7, .width = 48};

    assert_ok(tinymodel_write_temp(target, sizeof target, &tiny, &err), err);
    golden_write_changed(head, FOLDER "gguf/head.gguf", "token_embd.weight", "token_embd.unread");
    golden_write_changed(head, head, "d2t", "d2x");
    golden_rounds_refused(head, target, "is for a vocabulary of 288 tokens, but");
    golden_write_changed(head, head, "eagle3.vocab_size", "eagle3.vocab_none");
    golden_rounds_refused(head, target, "is for a vocabulary of 150 tokens, but");
    assert_int_equal(unlink(head), 0);
    assert_int_equal(unlink(target), 0);

    assert_ok(tinymodel_write_temp(target, sizeof target, &wide, &err), err);
    golden_write_changed(config, FOLDER "angelslim/head/config.json", "target_hidden_size", "target_hidden_none");
    golden_write_changed(config, config, "\"vocab_size\": 288", "\"vocab_size\": 320");
    assert_non_null(realpath(FOLDER "angelslim/head/model.safetensors", path));
    assert_int_equal(symlink(path, weights), 0);
    golden_rounds_refused(folder, target, "reads 96 values of hidden states, but 3 layers of");
    assert_int_equal(unlink(config), 0);
    assert_int_equal(unlink(weights), 0);
    assert_int_equal(unlink(target), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void
compare_cases(const char *backend, uint32_t step)
{
    golden.backend = backend;
    golden.step = step;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(backend, "cuda") == 0 && strncmp(cases[i], "qwen3", 5) == 0)
            continue; /* a GPU computes no recurrent layers */
        if (step == ONE_RUN && i % 4 != golden.seed % 4)
            continue;
        cJSON *c = golden_rounds_read(&golden, cases[i]);
        print_message("%s: %u rounds\n", cases[i],
                      (unsigned)golden_rounds_compare(&golden, cases[i], c, golden_item(c, "target")->valuestring));
        for (size_t j = 0; j < sizeof converted / sizeof *converted; j++)
            if (step != ONE_RUN && strcmp(cases[i], converted[j]) == 0) {
                char gguf[64];
                snprintf(gguf, sizeof gguf, "../targets/%s.gguf", converted[j]);
                golden_rounds_compare(&golden, cases[i], c, gguf);
            }
        cJSON_Delete(c);
    }
}

TEST(no_golden_file_of_drafters_lacks_a_test)
{
    golden_assert_listed(FOLDER, "/expect.json", cases, sizeof cases / sizeof *cases);
}

TEST(rounds_of_every_format_are_those_of_the_reference)
{
    compare_cases("cpu", 1);
}

TEST(rounds_of_every_format_on_cuda_are_those_of_the_reference)
{
    NEEDS_CUDA;
    compare_cases("cuda", !cuda_is_emulated() ? 1 : getenv("SPECSCOPE_LONG") != NULL ? 5 : ONE_RUN);
}

TEST_SEED(golden.seed, 1);
