/* Block drafters against a reference in PyTorch (tests/golden/make_block_golden.py): the greedy text, every draft with
 * its parent and probability, the predictions without a Markov head's bias, the forecasts of confidence heads, and the
 * number of accepted drafts, for each format and option of drafters, on the CPU and on a GPU. An emulated GPU computes
 * one run of a quarter of them, which the seed chooses. Also tests which drafters are refused. The tests run in the
 * repository's root. */
#include <limits.h>
#include <unistd.h>

#include "engine/model/model_open.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/golden_logits.h"
#include "tests/rigs/golden_rounds.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define FOLDER  "tests/golden/block/"
#define TARGET  "tests/golden/eagle/targets/llama"
#define ONE_RUN 1000 /* as golden_rounds.step: one run per case, of a quarter of the cases */

static const char *const cases[] = {
    "zlab",        "zlab_windows",      "zlab_mixed",         "deepspec", "deepspec_bare", "deepspec_dflash",
    "speculators", "speculators_bonus", "speculators_dflash", "gguf",     "gguf_dspark",   "gguf_causal"};

static struct golden_rounds golden = {.folder = FOLDER};

/* ---- what is refused ---- */

/* Opens a drafter with a change of its metadata. This must fail with this message in one line. */
static void
refuses_changed(const char *name, const char *from, const char *to, const char *why)
{
    char folder[] = "/tmp/specscope-block-XXXXXX", copy[80], weights[80], file[PATH_MAX], path[PATH_MAX];
    const bool gguf = strncmp(name, "gguf", 4) == 0;
    assert_non_null(mkdtemp(folder));
    snprintf(copy, sizeof copy, "%s/%s", folder, gguf ? "head.gguf" : "config.json");
    snprintf(weights, sizeof weights, "%s/model.safetensors", folder);
    snprintf(file, sizeof file, FOLDER "%s/%s", name, gguf ? "head.gguf" : "head/config.json");
    golden_write_changed(copy, file, from, to);
    if (!gguf) {
        snprintf(file, sizeof file, FOLDER "%s/head/model.safetensors", name);
        assert_non_null(realpath(file, path));
        assert_int_equal(symlink(path, weights), 0);
    }
    golden_rounds_refused(gguf ? copy : folder, TARGET, why);
    assert_int_equal(unlink(copy), 0);
    assert_true(gguf || unlink(weights) == 0);
    assert_int_equal(rmdir(folder), 0);
}

TEST(a_drafter_of_another_model_is_refused)
{
    char target[80];
    struct err err;
    const struct tinymodel tiny = {.n_layers = 7, .width = 32};
    golden_rounds_refused(FOLDER "zlab/head", "models/fables-q8_0.gguf",
                          "reads hidden states of width 32, but those of");
    assert_ok(tinymodel_write_temp(target, sizeof target, &tiny, &err), err);
    golden_rounds_refused(FOLDER "zlab/head", target, "is for a vocabulary of 288 tokens, but");
    golden_rounds_refused(FOLDER "gguf/head.gguf", target, "is for a vocabulary of 288 tokens, but");
    assert_int_equal(unlink(target), 0);
    refuses_changed("zlab", "   4\n", "   9\n", "reads layer 10 of its target, but llama has 7");
    refuses_changed("zlab", "   2,\n", "     \n", "reads 96 values of hidden states, but 2 layers of llama have 64");
}

TEST(a_block_drafter_is_no_model)
{
    struct model *m;
    struct err err = {.kind = ERR_NONE};
    assert_false(model_open(&m, FOLDER "zlab/head", &err));
    assert_contains(err.text, "is a block drafter, which drafts for a model");
    assert_false(model_open(&m, FOLDER "gguf/head.gguf", &err));
    assert_contains(err.text, "is a block drafter, which drafts for a model");
}

TEST(impossible_blocks_are_refused)
{
    refuses_changed("zlab", "\"mask_token_id\": 287", "\"mask_token_id\": 288",
                    "has the mask token 288, but its vocabulary has 288");
    refuses_changed("zlab", "mask_token_id", "mask_token_no", "does not name its mask token");
    refuses_changed("gguf", "tokenizer.ggml.mask_token_id", "tokenizer.ggml.mask_token_no",
                    "does not name its mask token");
    refuses_changed("zlab", "\"block_size\": 6", "\"block_size\": 0", "has blocks of 0 rows; 1 to 64 are supported");
    refuses_changed("zlab", "\"block_size\": 6", "\"block_size\":65", "has blocks of 65 rows; 1 to 64 are supported");
    refuses_changed("zlab", "\"block_size\": 6", "\"block_size\": 1", "has blocks of 1 row, which predicts no draft");
    refuses_changed("zlab", "target_layer_ids", "target_layer_num", "does not name the layers of its target");
    refuses_changed("gguf", "dflash.target_layers", "dflash.target_layerz", "does not name the layers of its target");
}

TEST(forms_that_are_not_supported_are_refused_by_name)
{
    refuses_changed("zlab", "DFlashDraftModel", "DFlash2DraftMode",
                    "is a 'DFlash2DraftMode', a block drafter of a form");
    refuses_changed("deepspec", "Qwen3DSparkModel", "Gemma4DSparkModl",
                    "is a 'Gemma4DSparkModl', a block drafter of a form");
    refuses_changed("deepspec", "\"vanilla\"", "\"gated\"  ", "its Markov head is of the kind 'gated'");
    refuses_changed("speculators", "\"vanilla\"", "\"rnn\"    ", "its Markov head is of the kind 'rnn'");
    refuses_changed("speculators", "\"dspark\"", "\"dflare\"", "is a 'dflare' of speculators");
    refuses_changed("speculators", "\"sample_from_anchor\"", "\"shift_label\"       ",
                    "config.json's 'shift_label' is true, which is not supported");
    refuses_changed("gguf", "dflash.embedding_length", "dflash.conv_kernel_size", "with convolutions (DFlash2)");
    refuses_changed("gguf", "dflash.attention.value_length", "dflash.hyper_connection.count",
                    "with hyper connections (DeepSeek-V4)");
}

/* ---- rounds ---- */

static void
compare_cases(const char *backend, uint32_t step)
{
    golden.backend = backend;
    golden.step = step;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (step == ONE_RUN && i % 4 != golden.seed % 4)
            continue;
        cJSON *c = golden_rounds_read(&golden, cases[i]);
        print_message("%s: %u rounds\n", cases[i],
                      (unsigned)golden_rounds_compare(&golden, cases[i], c, golden_item(c, "target")->valuestring));
        cJSON_Delete(c);
    }
}

TEST(no_golden_file_of_block_drafters_lacks_a_test)
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
