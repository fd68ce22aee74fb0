/* Lossless is literal: under every policy of the registry, whatever its knobs, also while they change at random each
 * round, greedy tokens are the autoregressive ones. No policy is named here: settings follow from the declared knobs.
 *
 * make test runs a share of the matrix on tiny models, each policy on the CPU's backends; SPECSCOPE_LONG=1 runs 20
 * prompts × 128 tokens × six settings of each policy on the bundled model, on the cpu and check backends. */
#include <unistd.h>

#include "cli/options/commands.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/heads_rig.h"
#include "tests/rigs/lossless_rig.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/session_rig.h"
#include "tests/rigs/test.h"

#define BUNDLED bundled_model_path()
#define DRAFT   "models/fables-draft-q8_0.gguf"

static uint64_t seed;

/* Runs models whose drafts are accepted. */
static uint64_t
model_seed(void)
{
    return 7 + seed % 6;
}

/* Tokens of a run; few in make test. */
static uint32_t
tokens(uint32_t few)
{
    return getenv("SPECSCOPE_LONG") != NULL ? 40 : few;
}

static uint64_t
run_matrix(const char *path, const char *draft, const struct lossless_matrix *m)
{
    const struct lossless_result r = lossless_run(&(struct lossless_model){.path = path, .draft = draft}, m, seed);
    assert_greater(r.accepted, 0); /* without accepted drafts the matrix proves nothing */
    return r.compared;
}

/* Runs one of so many policies, whose drafts may all be rejected. Returns the number of accepted drafts. */
static uint64_t
run_share(const char *path, uint32_t one_of, const struct lossless_matrix *m)
{
    const uint32_t share = getenv("SPECSCOPE_LONG") != NULL ? 0 : one_of;
    return lossless_run(&(struct lossless_model){.path = path, .draft = path, .share = share}, m, seed).accepted;
}

static void
on_a_tiny_model(const struct lossless_matrix *m)
{
    char path[128];
    struct err err = {0};
    const struct tinymodel tiny = {
        .seed = model_seed(), .n_layers = 6, .calm_after = 2, .calm = 0.15f, .mixed = true, .sharpness = 8};
    assert_ok(tinymodel_write_temp(path, sizeof path, &tiny, &err), err);
    char draft[128], heads[160];
    struct tinymodel small = tiny;
    small.first_layers = 2;
    assert_ok(tinymodel_write_temp(draft, sizeof draft, &small, &err), err);
    if (m->heads != HEAD_LENS && !heads_rig_write_beside(path, m->heads, seed, heads, sizeof heads, &err))
        fail_msg("%s", err.text);
    run_matrix(path, draft, m);
    if (m->heads != HEAD_LENS)
        unlink(heads);
    unlink(draft);
    unlink(path);
}

TEST(trained_heads_keep_autoregressive_tokens)
{
    on_a_tiny_model(MATRIX(.backend = "cpu", .prompts = 1, .tokens = tokens(24), .settings = 2, .heads = HEAD_AFFINE));
    on_a_tiny_model(MATRIX(.backend = "cpu", .prompts = 1, .tokens = tokens(24), .settings = 1, .heads = HEAD_FULL));
    on_a_tiny_model(MATRIX(.backend = "check", .prompts = 1, .tokens = tokens(24), .changing = true, .settings = 2,
                           .heads = HEAD_AFFINE));
}

TEST(every_policy_and_setting_gives_autoregressive_tokens_on_cpu)
{
    on_a_tiny_model(MATRIX(.backend = "cpu", .prompts = 2, .tokens = tokens(20)));
}

TEST(every_policy_and_setting_gives_autoregressive_tokens_on_check)
{
    on_a_tiny_model(MATRIX(.backend = "check", .prompts = 1, .tokens = tokens(20)));
}

TEST(every_sequence_of_a_batch_gives_autoregressive_tokens)
{
    on_a_tiny_model(MATRIX(.backend = "cpu", .prompts = 2, .tokens = tokens(12), .settings = 1, .batch = 1));
    on_a_tiny_model(MATRIX(.backend = "cpu", .prompts = 4, .tokens = tokens(12), .settings = 1, .batch = 3));
    on_a_tiny_model(
        MATRIX(.backend = "cpu", .prompts = 9, .tokens = tokens(12), .changing = true, .settings = 1, .batch = 8));
    on_a_tiny_model(
        MATRIX(.backend = "check", .prompts = 4, .tokens = 16, .changing = true, .settings = 1, .batch = 3));
    on_a_tiny_model(MATRIX(.backend = "cpu", .prompts = 4, .tokens = tokens(12), .changing = true, .settings = 1,
                           .heads = HEAD_AFFINE, .batch = 3));
    run_matrix(BUNDLED, DRAFT, MATRIX(.backend = "cpu", .prompts = 3, .tokens = 8, .settings = 1, .batch = 2));
}

/* An emulated GPU runs a very small model for a few tokens under an eighth of the policies, with default or random knobs
 * by the seed, and some of these in a batch or with heads. A real GPU runs all of it and the bundled model. */
TEST(every_policy_and_setting_gives_autoregressive_tokens_on_cuda)
{
    if (cuda_for_tests() == NULL)
        skip();
    if (cuda_is_emulated()) {
        char path[128];
        struct err err = {0};
        const struct tinymodel small = {.seed = model_seed(),
                                        .n_layers = 3,
                                        .width = 32,
                                        .heads = 2,
                                        .kv_heads = 1,
                                        .ffn = 64,
                                        .vocab = 288,
                                        .calm_after = 1,
                                        .calm = 0.1f,
                                        .mixed = true,
                                        .sharpness = 8};
        assert_ok(tinymodel_write_temp(path, sizeof path, &small, &err), err);
        const bool all = getenv("SPECSCOPE_LONG") != NULL;
        const int settings = all ? LOSSLESS_SETTINGS : 1, random = 3; /* the first setting of random knobs */
        const struct lossless_model model = {
            .path = path, .draft = path, .share = all ? 0 : 8, .first = !all && seed / 2 % 2 == 1 ? random : 0};
        const uint64_t accepted =
            lossless_run(&model, MATRIX(.backend = "cuda", .prompts = 1, .tokens = all ? 12 : 8, .settings = settings),
                         seed)
                .accepted;
        if (all)
            assert_greater(accepted, 0);
        if (all || seed / 6 % 3 == 0)
            run_share(
                path, 8,
                MATRIX(.backend = "cuda", .prompts = 4, .tokens = 8, .changing = true, .settings = 1, .batch = 3));
        if (all || seed / 6 % 3 == 1)
            run_share(path, 8, MATRIX(.backend = "cuda", .prompts = 3, .tokens = 6, .settings = 1, .batch = 2));
        if (all || seed / 6 % 3 == 2) {
            char heads[160];
            assert_ok(heads_rig_write_beside(path, HEAD_AFFINE, seed, heads, sizeof heads, &err), err);
            run_share(path, 8,
                      MATRIX(.backend = "cuda", .prompts = 1, .tokens = 12, .settings = 1, .heads = HEAD_AFFINE));
            unlink(heads);
        }
        unlink(path);
        return;
    }
    on_a_tiny_model(MATRIX(.backend = "cuda", .prompts = 1, .tokens = 40));
    on_a_tiny_model(MATRIX(.backend = "cuda", .prompts = 2, .tokens = 40, .changing = true));
    run_matrix(BUNDLED, DRAFT, MATRIX(.backend = "cuda", .prompts = 2, .tokens = 64));
    run_matrix(BUNDLED, DRAFT, MATRIX(.backend = "cuda", .prompts = 9, .tokens = 64, .batch = 8));
}

TEST(knobs_changing_every_round_keep_autoregressive_tokens)
{
    on_a_tiny_model(MATRIX(.backend = "cpu", .prompts = 1, .tokens = tokens(24), .changing = true));
}

TEST(the_bundled_model_gives_autoregressive_tokens)
{
    run_matrix(BUNDLED, DRAFT, MATRIX(.backend = "cpu", .prompts = 1, .tokens = tokens(12), .settings = 2));
}

TEST(the_whole_matrix_on_the_bundled_model)
{
    if (getenv("SPECSCOPE_LONG") == NULL)
        skip();
    uint64_t n = run_matrix(BUNDLED, DRAFT, MATRIX(.backend = "cpu", .prompts = SESSION_PROMPTS, .tokens = 128));
    n += run_matrix(BUNDLED, DRAFT,
                    MATRIX(.backend = "cpu", .prompts = SESSION_PROMPTS, .tokens = 128, .changing = true));
    n += run_matrix(BUNDLED, DRAFT, MATRIX(.backend = "check", .prompts = SESSION_PROMPTS, .tokens = 128));
    n += run_matrix(BUNDLED, DRAFT,
                    MATRIX(.backend = "check", .prompts = SESSION_PROMPTS, .tokens = 128, .changing = true));
    for (uint32_t batch = 1; batch <= 8; batch = batch == 1 ? 3 : batch + 5)
        for (int check = 0; check < 2; check++)
            for (int changing = 0; changing < 2; changing++)
                n += run_matrix(BUNDLED, DRAFT,
                                MATRIX(.backend = check ? "check" : "cpu", .prompts = SESSION_PROMPTS, .tokens = 64,
                                       .changing = changing, .settings = changing ? 2 : 3, .batch = batch));
    printf("# %llu runs compared\n", (unsigned long long)n);
}

TEST_SEED(seed, 2); /* even: one thread */
