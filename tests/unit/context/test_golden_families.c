/* Logits of tiny models of every family that differs from Llama in form, compared with PyTorch's transformers
 * (make_families_golden.py). Each family has a test of its Hugging Face folder, of its GGUF file
 * (make_families_gguf.py) and of CUDA; packed weights have the same tests. Run from the repository's root. */

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

static const char *const packed[] = {
    "fp8-block", "fp8-tensor", "fp8-channel", "gptq", "gptq-zeros", "gptq-order", "gptq-8", "gptq-2", "gptq-3",
    "gptq-3-middle", "auto-round", "auto-round-own", "awq", "awq-rows", "compressed", "compressed-8",
    "compressed-16", "compressed-zeros", "nf4", "nf4-nested", "mxfp4"};

/* GGUF files cannot contain these families, or llama.cpp's converter does not support them. */
static const char *const without_gguf[] = {
    "gemma3-odd", "granitemoehybrid", "starcoder2-window", "falcon-sequential", "ministral", "gemma3-eye",
    "ministral3-eye", "cohere-silent", "qwen3_moe-odd", "qwen2_moe-window", "mixtral-stacked",
    "granitemoeshared-stacked", "phimoe", "phimoe-stacked", "falcon-alibi", "gemma4-eye", "gemma4_unified",
    "vaultgemma", "cwm", "glm", "helium", "jais2", "hyperclovax", "flex_olmo", "solar_open", "qwen3_next-odd",
    "qwen3_5-eye", "lfm2-odd", "granitehybrid-odd", "olmo_hybrid"};
/* clang-format on */

#define SHARES 64 /* an emulated GPU tests one share, which the seed chooses */

static struct golden golden;
static uint64_t seed;
TEST_SEED(seed, 1);

static struct model *
open_family(const char *name, const char *ending)
{
    char path[80];
    struct model *m;
    struct err err = {.kind = ERR_NONE};
    snprintf(path, sizeof path, FOLDER "%s%s", name, ending);
    assert_ok(model_open_with(&m, path, &(struct model_options){0}, &err), err);
    snprintf(path, sizeof path, FOLDER "%s.txt", name);
    golden_read(&golden, path);
    return m;
}

static void
assert_small_errors(const char *computed_by, double exact, double most, double fast, double most_fast, uint32_t strays)
{
    if (!(exact < most && fast < most_fast && strays == 0))
        fail_msg("%s: exact %.2g, fast %.2g, other tokens %u", computed_by, exact, fast, strays);
}

/* Asserts that logits and greedy tokens are those of the golden file on every instruction set. */
static void
assert_golden(struct model *m, double most)
{
    for (size_t i = 0; cpu_isas[i] != NULL; i++) {
        const char *isa = cpu_isas[i]->name;
        const struct backend_options o = {.threads = 1, .isa = isa, .exact = true};
        if (cpu_isas[i]->usable())
            assert_small_errors(isa, golden_error(m, &golden, isa, true), most, golden_error(m, &golden, isa, false),
                                5e-2, golden_strays(&cpu_backend, m, &golden, &o));
    }
    model_close(m);
}

static void
test_folder(void **state)
{
    assert_golden(open_family(*state, ""), 1e-4);
}

static void
test_gguf_file(void **state)
{
    assert_golden(open_family(*state, ".gguf"), 1e-3); /* the converter adds 1 to norms in F16 */
}

static void
assert_refused(const struct backend_ops *cuda, const struct model *m)
{
    struct backend *b;
    struct weights *w;
    struct err err = {.kind = ERR_NONE};
    assert_ok(cuda->open(&b, &(struct backend_options){.gpu = -1}, &err), err);
    assert_false(cuda->load(b, &m->desc, NULL, NULL, &w, &err));
    assert_contains(err.text, "use --backend cpu");
    cuda->close(b);
}

static void
test_on_cuda(void **state)
{
    NEEDS_CUDA;
    const struct backend_options exact = {.exact = true, .gpu = -1}, fast = {.gpu = -1};
    struct model *m = open_family(*state, "");
    if (m->desc.form.recurrent.value_heads > 0 || strncmp(*state, "gemma4", 6) == 0)
        assert_refused(cuda, m);
    else
        assert_small_errors("cuda", golden_error_on(cuda, m, &golden, &exact), 1e-4,
                            golden_error_on(cuda, m, &golden, &fast), 2e-2, golden_strays(cuda, m, &golden, &exact));
    model_close(m);
}

/* A model that is opened for exact computing is not rounded; otherwise it is rounded to F16. */
static void
test_packed_folder(void **state)
{
    char path[80], text[80];
    snprintf(path, sizeof path, PACKED "%s", (char *)*state);
    snprintf(text, sizeof text, PACKED "%s.txt", (char *)*state);
    golden_read(&golden, text);
    for (int exact = 0; exact < 2; exact++) {
        struct model *m;
        struct err err = {.kind = ERR_NONE};
        assert_ok(model_open_with(&m, path, &(struct model_options){.exact = exact}, &err), err);
        assert_small_errors(m->types, golden_error(m, &golden, "reference", true), exact ? 1e-5 : 2e-3,
                            golden_error(m, &golden, NULL, exact), exact ? 1e-5 : 5e-2, 0);
        model_close(m);
    }
}

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const char *with_gguf[COUNT(families)];
static size_t n_with_gguf;

__attribute__((constructor)) static void
add_families(void)
{
    const bool all =
        (getenv("SPECSCOPE_CUDA_PLUGIN") != NULL && !cuda_is_emulated()) || getenv("SPECSCOPE_LONG") != NULL;
    for (size_t i = 0; i < COUNT(families); i++) {
        bool converted = true;
        for (size_t j = 0; j < COUNT(without_gguf); j++)
            converted = converted && strcmp(families[i], without_gguf[j]) != 0;
        add_test_of(families[i], "folder_gives_the_logits_and_tokens_of_transformers", test_folder);
        if (converted)
            add_test_of(with_gguf[n_with_gguf++] = families[i], "gguf_file_gives_the_logits_and_tokens_of_transformers",
                        test_gguf_file);
        if (all || i % SHARES == seed % SHARES)
            add_test_of(families[i], "folder_gives_the_logits_and_tokens_of_transformers_on_cuda", test_on_cuda);
    }
    for (size_t i = 0; i < COUNT(packed); i++)
        add_test_of(packed[i], "folder_gives_the_logits_of_the_unpacked_weights", test_packed_folder);
}

TEST(no_golden_file_of_families_and_packed_weights_lacks_a_test)
{
    golden_assert_listed(FOLDER, "/config.json", families, COUNT(families));
    golden_assert_listed(FOLDER, ".txt", families, COUNT(families));
    golden_assert_listed(FOLDER, ".gguf", with_gguf, n_with_gguf);
    golden_assert_listed(PACKED, "/config.json", packed, COUNT(packed));
    golden_assert_listed(PACKED, ".txt", packed, COUNT(packed));
}

/* A position without a learned row cannot be computed. */
TEST(learned_positions_bound_the_context)
{
    struct model *m;
    struct err err = {.kind = ERR_NONE};
    assert_false(model_open_with(&m, FOLDER "gpt2", &(struct model_options){.ctx = 65}, &err));
    assert_contains(err.text, "has learned positions up to 64 and knows none beyond; a context (-c) of 65");
    assert_ok(model_open_with(&m, FOLDER "gpt2.gguf", &(struct model_options){.ctx = 64}, &err), err);
    assert_int_equal(m->desc.positions.rows, 64);
    model_close(m);
}

TEST(cuda_refuses_layers_that_it_does_not_compute_in_a_line)
{
    NEEDS_CUDA;
    static const char *const refused[] = {"gemma4", "gemma4-inputs", "gemma4-moe", "qwen3_5", "lfm2", "granitehybrid"};
    for (size_t i = 0; i < COUNT(refused); i++) {
        struct model *m = open_family(refused[i], "");
        assert_refused(cuda, m);
        model_close(m);
    }
}
