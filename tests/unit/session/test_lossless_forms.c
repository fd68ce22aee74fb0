/* Lossless is literal whatever a model is made of: one of each kind of feature, under every policy of the registry, gives the
 * tokens of autoregressive decoding to the last bit, with every instruction set, behind the check backend, in batches, and
 * on a GPU where that computes it. make test takes a share of it, which the seed chooses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "kernels/cpu/isa.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/lossless_rig.h"
#include "tests/rigs/seed.h"

#define FAMILY(name) "tests/golden/families/" name
#define MODEL(name)  "tests/golden/models/" name
#define PACKED(name) "tests/golden/packed/" name
#define LORA(name)   "tests/golden/lora/" name

static const struct feature {
    const char *has, *path;
    bool cuda; /* the CUDA backend computes it */
    const char *lora;
} features[] = {
    {"norms of queries and keys by head", MODEL("qwen3"), true, NULL},
    {"… and of 1 + w, norms behind sublayers, windows and rotations by layer, a tied head", FAMILY("gemma3"), true,
     NULL},
    {"caps of scores and logits, near ties", FAMILY("gemma2"), true, NULL},
    {"norms over whole rows, none before", FAMILY("olmo2"), true, NULL},
    {"norms behind rotations", FAMILY("hunyuan"), true, NULL},
    {"norms without weights", FAMILY("olmo"), true, NULL},
    {"biases everywhere", FAMILY("llama-bias"), true, NULL},
    {"multipliers", FAMILY("granite"), true, NULL},
    {"layers that do not turn", FAMILY("smollm3"), true, NULL},
    {"sublayers side by side, centred norms, windows by layer", FAMILY("cohere2"), true, NULL},
    {"… with biases, part of a head that turns, no gates, a head with a bias", FAMILY("phi"), true, NULL},
    {"ReLU squared", FAMILY("nemotron"), true, NULL},
    {"xIELU", FAMILY("apertus"), true, NULL},
    {"learned positions, one key for all heads", FAMILY("gpt_bigcode"), true, NULL},
    {"one norm for two sublayers", FAMILY("falcon"), true, NULL},
    {"a window", FAMILY("starcoder2-window"), true, NULL},
    {"queries that grow", FAMILY("ministral3"), true, NULL},
    {"divisors of frequencies", FAMILY("phi3-long"), true, NULL},
    {"experts", FAMILY("mixtral.gguf"), false, NULL},
    {"experts with one for all rows, and how much of it", FAMILY("qwen2_moe"), false, NULL},
    {"experts by sigmoids and corrections, in groups", FAMILY("glm4_moe-groups"), false, NULL},
    {"layers with experts and without", FAMILY("qwen3_moe-odd"), false, NULL},
    {"sinks of attention, experts with biases in MXFP4", PACKED("mxfp4"), false, NULL},
    {"types up to Q6_K", MODEL("types.gguf"), true, NULL},
    {"types with grids and ternary ones", MODEL("tables.gguf"), true, NULL},
    {"what was packed in Q4_1", PACKED("awq"), true, NULL},
    {"an adapter", MODEL("llama.gguf"), true, LORA("llama")},
    {"an adapter for weights in one matrix", FAMILY("phi3"), true, LORA("phi3.gguf")},
};
#define FEATURES (sizeof features / sizeof *features)

static uint64_t seed;

static uint64_t
accepted(size_t i, const char *isa, size_t first, const struct lossless_matrix *m)
{
    const struct lossless_model model = {.path = features[i].path,
                                         .draft = features[i].path,
                                         .lora = features[i].lora,
                                         .isa = isa,
                                         .first = (int)(first % LOSSLESS_SETTINGS)};
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

/* An instruction set and a setting each. */
static void
test_models_with_every_feature_give_autoregressive_tokens(void **state)
{
    (void)state;
    const char *isas[16];
    const size_t n = usable_isas(isas);
    uint64_t drafts = 0;
    for (size_t i = 0; i < FEATURES; i++) {
        const bool changing = (seed / n + i) % 3 == 0;
        drafts += accepted(i, isas[(seed + i) % n], (size_t)seed + i / n,
                           &(struct lossless_matrix){"cpu", 1, 12, changing, 1, HEAD_LENS, 0, 0});
    }
    assert_true(drafts > 0); /* where nothing is accepted nothing is shown */
}

/* Some of them, and all where there is time. */
static void
test_they_do_behind_the_check_backend_and_in_batches(void **state)
{
    (void)state;
    const bool all = getenv("SPECSCOPE_LONG") != NULL;
    for (size_t i = 0; i < FEATURES; i++)
        if (all || (seed + i) % 7 == 0)
            accepted(i, NULL, (size_t)seed + i,
                     &(struct lossless_matrix){"check", 4, all ? 24 : 12, i % 2 == 0, all ? 2 : 1, HEAD_LENS, 3, 0});
}

static void
test_all_of_them_under_every_setting_with_every_instruction_set(void **state)
{
    (void)state;
    if (getenv("SPECSCOPE_LONG") == NULL)
        skip();
    const char *isas[16];
    const size_t n = usable_isas(isas);
    for (size_t i = 0; i < FEATURES; i++)
        for (size_t k = 0; k < n; k++)
            accepted(i, isas[k], 0, &(struct lossless_matrix){"cpu", 2, 24, (i + k) % 2 == 1, 0, HEAD_LENS, 0, 0});
}

/* On a real GPU, and on the emulated one, which is slow, fewer tokens where there is time. Chunks of prompts want a library,
 * which has an emulation of its own. */
static void
test_they_do_on_cuda(void **state)
{
    (void)state;
    if (cuda_for_tests() == NULL || (cuda_is_emulated() && getenv("SPECSCOPE_LONG") == NULL))
        skip();
    const bool real = !cuda_is_emulated();
    for (size_t i = 0; i < FEATURES; i++) {
        if (!features[i].cuda)
            continue;
        accepted(i, NULL, (size_t)seed + i,
                 &(struct lossless_matrix){"cuda", 1, real ? 16 : 8, i % 2 == 0, 1, HEAD_LENS, 0, 0});
        if (real || (seed + i) % 4 == 0)
            accepted(i, NULL, (size_t)seed + i + 1,
                     &(struct lossless_matrix){"cuda", 3, real ? 8 : 6, i % 2 == 1, 1, HEAD_LENS, 2, 8});
    }
}

int
main(void)
{
    seed = seed_or((uint64_t)time(NULL));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_with_every_feature_give_autoregressive_tokens),
        cmocka_unit_test(test_they_do_behind_the_check_backend_and_in_batches),
        cmocka_unit_test(test_all_of_them_under_every_setting_with_every_instruction_set),
        cmocka_unit_test(test_they_do_on_cuda),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
