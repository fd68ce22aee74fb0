/* Logits of tiny models of every family that differs from Llama in form, against PyTorch's transformers
 * (make_families_golden.py): Hugging Face folders, and GGUF files of the same weights where a converter knows the family. Run
 * from the repository's root. */
#include <time.h>
#include <unistd.h>

#include "kernels/cpu/isa.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/golden_logits.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define FOLDER "tests/golden/families/"
#define PACKED "tests/golden/packed/"

/* clang-format off */
static const char *const families[] = {
    "gemma", "gemma2", "gemma3", "gemma3-odd", "phi3", "phi3-long", "smollm3", "olmo", "olmo2", "olmo3",
    "granite", "granitemoehybrid", "glm4", "cohere", "cohere2", "starcoder2", "starcoder2-window", "phi", "gpt_neox", "stablelm",
    "nemotron", "arcee", "seed_oss", "ernie4_5", "hunyuan", "exaone4", "llama-bias", "qwen2-yarn", "gpt2",
    "gpt_bigcode", "falcon", "falcon-new", "falcon-sequential", "apertus", "ministral3", "ministral",
    "gpt_neox-sequential", "gemma3-eye", "ministral3-eye", "olmo3-yarn", "cohere-silent", "mixtral", "qwen3_moe", "qwen3_moe-odd", "qwen2_moe",
    "olmoe", "granitemoe",
    "gpt_oss", "glm4_moe", "glm4_moe-groups", "ernie4_5_moe", "granitemoeshared", "qwen2_moe-window",
    "mixtral-stacked", "granitemoeshared-stacked",
    "phimoe", "phimoe-long", "phimoe-stacked", "dbrx", "bloom", "mpt", "falcon-alibi", "olmo-clip", "gemma4", "gemma4-inputs",
    "gemma4-moe", "gemma4-eye", "gemma4_unified", "vaultgemma", "cwm", "glm", "helium", "internlm3", "iquestcoder",
    "jais2", "hyperclovax", "flex_olmo", "dots1", "solar_open",
    "qwen3_next", "qwen3_next-odd", "qwen3_5", "qwen3_5_moe", "qwen3_5-eye", "lfm2", "lfm2-odd", "lfm2_moe", "granitehybrid", "granitehybrid-moe", "granitehybrid-odd", "olmo_hybrid", "bamba"};
/* clang-format on */

#define SHARES 64 /* an emulated GPU takes one of them, by the seed */

static struct golden golden;
static uint64_t seed;

/* How far its logits are from the golden ones, at most, on every instruction set, and whether greedy decoding says the same
 * tokens; prints what is too far. */
static int
wrong(const char *path, const char *text, double most)
{
    struct model *m;
    struct err err = {.kind = ERR_NONE};
    int n = 0;
    if (!model_open_with(&m, path, &(struct model_options){0}, &err)) {
        print_message("%s\n", err.text);
        return 1;
    }
    golden_read(&golden, text);
    for (size_t i = 0; cpu_isas[i] != NULL; i++) {
        if (!cpu_isas[i]->usable())
            continue;
        const double exact = golden_error(m, &golden, cpu_isas[i]->name, true);
        const double fast = golden_error(m, &golden, cpu_isas[i]->name, false);
        const struct backend_options o = {.threads = 1, .isa = cpu_isas[i]->name, .exact = true};
        const uint32_t strays = golden_strays(&cpu_backend, m, &golden, &o);
        if (exact < most && fast < 5e-2 && strays == 0)
            continue;
        print_message("%s: %s: exact %.2g, fast %.2g, other tokens %u\n", path, cpu_isas[i]->name, exact, fast, strays);
        n++;
    }
    model_close(m);
    return n;
}

TEST(every_familys_folder_gives_the_logits_and_tokens_of_transformers)
{
    int n = 0;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        char model[80], text[80];
        snprintf(model, sizeof model, FOLDER "%s", families[i]);
        snprintf(text, sizeof text, FOLDER "%s.txt", families[i]);
        n += wrong(model, text, 1e-4);
    }
    assert_int_equal(n, 0);
}

TEST(every_familys_gguf_file_gives_the_same_logits_and_tokens)
{
    int n = 0, there = 0;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        char model[80], text[80];
        snprintf(model, sizeof model, FOLDER "%s.gguf", families[i]);
        snprintf(text, sizeof text, FOLDER "%s.txt", families[i]);
        if (access(model, F_OK) != 0)
            continue;
        there++;
        n += wrong(model, text, 1e-3); /* the converter adds norms' 1 in F16 */
    }
    assert_int_equal(n, 0);
    assert_true(there > 0);
}

/* Where there is no row for a position there is nothing to compute with. */
TEST(learned_positions_bound_the_context)
{
    struct model *m;
    struct err err = {.kind = ERR_NONE};
    assert_false(model_open_with(&m, FOLDER "gpt2", &(struct model_options){.ctx = 65}, &err));
    assert_non_null(strstr(err.text, "has learned positions up to 64 and knows none beyond; a context (-c) of 65"));
    assert_true(model_open_with(&m, FOLDER "gpt2.gguf", &(struct model_options){.ctx = 64}, &err));
    assert_int_equal(m->desc.positions.rows, 64);
    model_close(m);
}

/* clang-format off */
static const char *const packed[] = {
    "fp8-block", "fp8-tensor", "fp8-channel", "gptq", "gptq-zeros", "gptq-order", "gptq-8", "gptq-2", "gptq-3",
    "gptq-3-middle", "auto-round", "auto-round-own", "awq", "awq-rows", "compressed", "compressed-8",
    "compressed-16", "compressed-zeros", "nf4", "nf4-nested", "mxfp4"};
/* clang-format on */

/* Opened for exact computing nothing is rounded; otherwise no more than F16 rounds. */
TEST(packed_folders_give_the_logits_of_the_unpacked_weights)
{
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) {
        char path[80], text[80];
        snprintf(path, sizeof path, PACKED "%s", packed[i]);
        snprintf(text, sizeof text, PACKED "%s.txt", packed[i]);
        golden_read(&golden, text);
        for (int exact = 0; exact < 2; exact++) {
            struct model *m;
            struct err err = {.kind = ERR_NONE};
            assert_ok(model_open_with(&m, path, &(struct model_options){.exact = exact}, &err), err);
            const double error = golden_error(m, &golden, "reference", true),
                         fast = golden_error(m, &golden, NULL, exact);
            print_message("%s: %s: %.2g, %.2g\n", packed[i], m->types, error, fast);
            assert_true(error < (exact ? 1e-5 : 2e-3) && fast < (exact ? 1e-5 : 5e-2));
            model_close(m);
        }
    }
}

TEST(every_familys_folder_gives_the_same_logits_on_cuda)
{
    NEEDS_CUDA;
    const bool all = !cuda_is_emulated() || getenv("SPECSCOPE_LONG") != NULL;
    int n = 0;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        char path[80], text[80];
        struct model *m;
        struct err err = {.kind = ERR_NONE};
        if ((!all && i % SHARES != seed % SHARES) || strncmp(families[i], "gemma4", 6) == 0)
            continue;
        snprintf(path, sizeof path, FOLDER "%s", families[i]);
        snprintf(text, sizeof text, FOLDER "%s.txt", families[i]);
        assert_ok(model_open_with(&m, path, &(struct model_options){0}, &err), err);
        if (m->desc.form.recurrent.value_heads > 0) { /* not on a GPU */
            model_close(m);
            continue;
        }
        golden_read(&golden, text);
        const struct backend_options o = {.exact = true, .gpu = -1};
        const double exact = golden_error_on(cuda, m, &golden, &o),
                     fast = golden_error_on(cuda, m, &golden, &(struct backend_options){.gpu = -1});
        const uint32_t strays = golden_strays(cuda, m, &golden, &o);
        model_close(m);
        if (exact < 1e-4 && fast < 2e-2 && strays == 0)
            continue;
        print_message("%s: cuda: exact %.2g, fast %.2g, other tokens %u\n", path, exact, fast, strays);
        n++;
    }
    assert_int_equal(n, 0);
}

TEST(cuda_refuses_layers_that_it_does_not_compute_in_a_line)
{
    NEEDS_CUDA;
    static const char *const refused[] = {"gemma4", "gemma4-inputs", "gemma4-moe", "qwen3_5", "lfm2", "granitehybrid"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char path[80];
        struct model *m;
        struct backend *b;
        struct weights *w;
        struct err err = {.kind = ERR_NONE};
        snprintf(path, sizeof path, FOLDER "%s", refused[i]);
        assert_ok(model_open_with(&m, path, &(struct model_options){0}, &err), err);
        assert_ok(cuda->open(&b, &(struct backend_options){.gpu = -1}, &err), err);
        assert_false(cuda->load(b, &m->desc, NULL, NULL, &w, &err));
        assert_non_null(strstr(err.text, "use --backend cpu"));
        cuda->close(b);
        model_close(m);
    }
}

TEST_SEED(seed, (uint64_t)time(NULL));
