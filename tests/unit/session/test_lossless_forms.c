/* Lossless is literal for every kind of model: one model per kind of feature, under every policy of the registry, gives
 * the tokens of autoregressive decoding exactly, with every instruction set, on the check backend, in batches, and on a
 * GPU that supports it. make test takes a share of them, which the seed chooses. */

#include "kernels/cpu/isa.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/lossless_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/test.h"

#define FAMILY(name) "tests/golden/families/" name
#define TARGET(name) "tests/golden/eagle/targets/" name
#define HEAD(name)   "tests/golden/eagle/" name
#define MODEL(name)  "tests/golden/models/" name
#define PACKED(name) "tests/golden/packed/" name
#define LORA(name)   "tests/golden/lora/" name

static const struct feature {
    const char *has, *path;
    bool rare; /* a GPU computes it in the kernel of rare forms */
    const char *lora;
} features[] = {
    {"norms of queries and keys by head", MODEL("qwen3"), false, NULL},
    {"… and of 1 + w, norms after sublayers, windows and rotations by layer, a tied head", FAMILY("gemma3"), false,
     NULL},
    {"caps of scores and logits, near ties", FAMILY("gemma2"), false, NULL},
    {"norms over whole rows, none before", FAMILY("olmo2"), false, NULL},
    {"norms after rotations", FAMILY("hunyuan"), false, NULL},
    {"norms without weights", FAMILY("olmo"), false, NULL},
    {"biases everywhere", FAMILY("llama-bias"), false, NULL},
    {"multipliers", FAMILY("granite"), false, NULL},
    {"layers that do not turn", FAMILY("smollm3"), false, NULL},
    {"sublayers side by side, LayerNorm, windows by layer", FAMILY("cohere2"), false, NULL},
    {"… with biases, part of a head that turns, no gates, a head with a bias", FAMILY("phi"), false, NULL},
    {"ReLU squared", FAMILY("nemotron"), false, NULL},
    {"xIELU", FAMILY("apertus"), false, NULL},
    {"learned positions, one key for all heads", FAMILY("gpt_bigcode"), false, NULL},
    {"one norm for two sublayers", FAMILY("falcon"), false, NULL},
    {"a window", FAMILY("starcoder2-window"), false, NULL},
    {"queries that grow", FAMILY("ministral3"), false, NULL},
    {"divisors of frequencies", FAMILY("phi3-long"), false, NULL},
    {"a normed embedding, scores by positions", FAMILY("bloom"), true, NULL},
    {"clipped queries, keys and values", FAMILY("olmo-clip"), true, NULL},
    {"experts", FAMILY("mixtral.gguf"), true, NULL},
    {"experts with one for all rows, and how much of it", FAMILY("qwen2_moe"), true, NULL},
    {"experts by sigmoids and corrections, in groups", FAMILY("glm4_moe-groups"), true, NULL},
    {"layers with experts and without", FAMILY("qwen3_moe-odd"), true, NULL},
    {"experts by SparseMixer", FAMILY("phimoe"), true, NULL},
    {"layers of two shapes, keys that are values", FAMILY("gemma4"), false, NULL},
    {"inputs for each layer, keys and values of other layers", FAMILY("gemma4-inputs"), false, NULL},
    {"experts beside an MLP", FAMILY("gemma4-moe"), false, NULL},
    {"sinks of attention, experts with biases in MXFP4", PACKED("mxfp4"), true, NULL},
    {"gated delta nets, gates of attention", FAMILY("qwen3_5"), false, NULL},
    {"… in tiles, from a GGUF file", FAMILY("qwen3_5.gguf"), false, NULL},
    {"… of other sizes, with experts", FAMILY("qwen3_next-odd"), false, NULL},
    {"… with a layer for multi-token prediction", TARGET("qwen3_5"), false, NULL},
    {"… and with experts", TARGET("qwen3_next"), false, NULL},
    {"short convolutions", FAMILY("lfm2.gguf"), false, NULL},
    {"Mamba-2, experts", FAMILY("granitehybrid-moe"), false, NULL},
    {"types up to Q6_K", MODEL("types.gguf"), false, NULL},
    {"types with grids and ternary ones", MODEL("tables.gguf"), false, NULL},
    {"what was packed in Q4_1", PACKED("awq"), false, NULL},
    {"an adapter", MODEL("llama.gguf"), false, LORA("llama")},
    {"an adapter for weights in one matrix", FAMILY("phi3"), false, LORA("phi3.gguf")},
};
#define FEATURES (sizeof features / sizeof *features)

static uint64_t seed;

static uint64_t
accepted(size_t i, const char *isa, size_t first, const struct lossless_matrix *m)
{
    const bool slow = strcmp(m->backend, "cuda") == 0 && cuda_is_emulated();
    const struct lossless_model model = {.path = features[i].path,
                                         .draft = features[i].path,
                                         .lora = features[i].lora,
                                         .isa = isa,
                                         .first = (int)(first % LOSSLESS_SETTINGS),
                                         .share = getenv("SPECSCOPE_LONG") != NULL ? 0 : (slow ? 12 : 2)};
    return lossless_run(&model, m, seed + i).accepted;
}

static size_t
usable_isas(const char *names[])
{
    size_t n = 0;
    for (size_t i = 0; cpu_isas[i] != NULL; i++)
        if (cpu_isas[i]->usable())
            names[n++] = cpu_isas[i]->name;
    return n;
}

/* An instruction set and a setting for each model. */
TEST(models_with_every_feature_give_autoregressive_tokens)
{
    const char *isas[16];
    const size_t n = usable_isas(isas);
    uint64_t drafts = 0;
    for (size_t i = 0; i < FEATURES; i++) {
        const bool changing = (seed / n + i) % 3 == 0;
        drafts += accepted(i, isas[(seed + i) % n], (size_t)seed + i / n,
                           MATRIX(.backend = "cpu", .prompts = 1, .tokens = 12, .changing = changing, .settings = 1));
    }
    assert_greater(drafts, 0); /* without accepted drafts the test proves nothing */
}

/* Some of the policies, or all with SPECSCOPE_LONG=1. */
TEST(policies_are_lossless_on_the_check_backend_and_in_batches)
{
    const bool all = getenv("SPECSCOPE_LONG") != NULL;
    for (size_t i = 0; i < FEATURES; i++)
        if (all || (seed + i) % 7 == 0)
            accepted(i, NULL, (size_t)seed + i,
                     MATRIX(.backend = "check", .prompts = 4, .tokens = all ? 24 : 12, .changing = i % 2 == 0,
                            .settings = all ? 2 : 1, .batch = 3));
}

TEST(policies_are_lossless_under_every_setting_with_every_instruction_set)
{
    if (getenv("SPECSCOPE_LONG") == NULL)
        skip();
    const char *isas[16];
    const size_t n = usable_isas(isas);
    for (size_t i = 0; i < FEATURES; i++)
        for (size_t k = 0; k < n; k++)
            accepted(i, isas[k], 0, MATRIX(.backend = "cpu", .prompts = 2, .tokens = 24, .changing = (i + k) % 2 == 1));
}

/* A real GPU, or the emulated one, which is slow: it computes fewer tokens with SPECSCOPE_LONG=1, otherwise one rare
 * form. Chunks of prompts need a library, which has its own emulation. */
TEST(models_with_every_feature_give_autoregressive_tokens_on_cuda)
{
    if (cuda_for_tests() == NULL)
        skip();
    const bool real = !cuda_is_emulated(), all = real || getenv("SPECSCOPE_LONG") != NULL;
    size_t rare = 0;
    for (size_t i = 0; i < FEATURES; i++) {
        if (strstr(features[i].path, "gemma4") != NULL || strstr(features[i].path, "qwen3_5") != NULL ||
            strstr(features[i].path, "qwen3_next") != NULL || strstr(features[i].path, "lfm2") != NULL ||
            strstr(features[i].path, "granitehybrid") != NULL) /* a GPU refuses it */
            continue;
        const bool chosen = features[i].rare && rare++ == seed % 8;
        if (!all && !chosen)
            continue;
        if (all)
            accepted(i, NULL, (size_t)seed + i,
                     MATRIX(.backend = "cuda", .prompts = 1, .tokens = real ? 16 : 8, .changing = i % 2 == 0,
                            .settings = 1));
        if (real || (seed + i) % 4 == 0 || !all)
            accepted(i, NULL, (size_t)seed + i + 1,
                     MATRIX(.backend = "cuda", .prompts = all ? 3 : 2, .tokens = all ? 8 : 4, .changing = i % 2 == 1,
                            .settings = 1, .batch = 2));
    }
}

/* Trained drafters of each format: chains, and trees under the largest knobs. */
TEST(heads_and_layers_of_files_give_autoregressive_tokens)
{
    static const struct lossless_model of[] = {
        {.path = TARGET("llama"), .draft = HEAD("specforge/head"), .only = "eagle"},
        {.path = TARGET("llama"), .draft = HEAD("angelslim/head"), .only = "eagle"},
        {.path = TARGET("llama"), .draft = HEAD("speculators/head"), .only = "eagle"},
        {.path = TARGET("llama"), .draft = HEAD("gguf/head.gguf"), .only = "eagle"},
        {.path = TARGET("glm4_moe"), .only = "mtp"},
        {.path = TARGET("ernie4_5_moe"), .only = "mtp"},
    };
    const char *const backends[] = {"cpu", cuda_for_tests() != NULL ? "cuda" : "check"};
    const bool all = !cuda_is_emulated() || getenv("SPECSCOPE_LONG") != NULL;
    for (size_t i = 0; i < 2 * sizeof of / sizeof *of; i++) {
        const char *backend = backends[i % 2];
        const bool slow = !all && i % 2 == 1;
        struct lossless_model model = of[i / 2];
        if (slow && (seed + i / 2) % 6 != 0)
            continue;
        model.first = slow ? (int)(seed / 6 % 2) * 2 : 0; /* the defaults or the largest knobs */
        const struct lossless_matrix m = {
            .backend = backend, .prompts = 1, .tokens = slow ? 6 : 16, .settings = slow ? 1 : 3};
        const struct lossless_matrix batch = {.backend = backend, .prompts = 3, .tokens = 6, .settings = 1, .batch = 2};
        assert_greater(lossless_run(&model, &m, seed).accepted, 0);
        lossless_run(&model, &batch, seed);
    }
}

TEST_SEED(seed, 1);
