/* Lossless is literal: under every policy of the registry, whatever its knobs, also while they change at random each
 * round, greedy tokens are the autoregressive ones. No policy is named here: settings follow from the declared knobs.
 *
 * A share of the matrix runs in make test, on a tiny model; SPECSCOPE_LONG=1 runs 20 prompts × 128 tokens × six settings
 * of each policy on the bundled model, on the cpu and check backends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/base/commands.h"
#include "policies/policy.h"
#include "tests/golden/tinymodel.h"
#include "tests/rigs/cuda_rig.h"
#include "tests/rigs/heads_rig.h"
#include "tests/rigs/knob_turns.h"
#include "tests/rigs/seed.h"
#include "tests/rigs/session_rig.h"

#define SETTINGS 6
#define BUNDLED  bundled_model_path()
#define DRAFT    "models/fables-draft-q8_0.gguf"

static uint64_t seed = 7;

struct matrix {
    const char *backend;
    uint32_t prompts, tokens;
    bool changing;        /* knobs change at random each round */
    int settings;         /* 0: all */
    enum head_kind heads; /* random ones, that every policy asks: nothing good comes of it, and nothing wrong */
    uint32_t batch;       /* so many of the prompts at a time in one session; 0: each in its own */
    uint32_t prompt_rows; /* prompts are read by a library, in chunks of so many rows; 0: as rows */
};

static void
declare(const struct engine *engine, const struct policy_ops *ops, struct policy_info *info)
{
    const struct model_info model = {engine->model->desc.n_layers, engine->model->desc.width, engine->model->desc.vocab,
                                     engine->model->rho, engine->profile};
    const struct sampling greedy = {.top_p = 1};
    struct policy p;
    struct err err;
    assert_true(policy_open(&p, ops, &model, &greedy, &err));
    *info = p.info;
    policy_close(&p);
}

struct turner {
    const struct policy_info *info;
    bool heads;
    uint64_t *random;
};

/* The session runs paused: after each round all knobs are turned, then it takes one step. */
static void
turn_and_step(void *user, struct session *s, const struct event *e)
{
    struct turner *t = user;
    bool waits =
        e->type == EVENT_CONTROL && strcmp(e->control.name, "state") == 0 && strcmp(e->control.new_text, "paused") == 0;
    if (!waits)
        return;
    struct err err;
    for (uint32_t k = 0; k < t->info->n_knobs; k++)
        if (!knob_turn(s, &t->info->knobs[k], 3, 0, t->random, &err))
            fail_msg("%s", err.text);
    const struct control head = {.kind = CONTROL_HEAD, .text = head_mode_names[splitmix64(t->random) % HEAD_MODES]};
    if (t->heads && !session_post(s, &head, &err))
        fail_msg("%s", err.text);
    assert_true(session_post(s, &(struct control){.kind = CONTROL_STEP_ROUNDS, .n = 1}, &err));
}

static void
generate(struct engine *engine, const char *policy, const struct knob_setting *set, size_t n_set, size_t prompt,
         uint32_t batch, const struct matrix *m, struct turner *turner, struct session_rig_result *out)
{
    struct err err = {0};
    struct prompt_text prompts[SESSION_PROMPTS];
    for (size_t i = 0; i < m->prompts; i++)
        prompts[i] = (struct prompt_text){session_prompts[i], strlen(session_prompts[i])};
    const struct session_options options = {.policies = policy_registry,
                                            .policy = policy,
                                            .prompt = session_prompts[prompt],
                                            .prompt_len = strlen(session_prompts[prompt]),
                                            .batch = batch,
                                            .prompts = prompts,
                                            .n_prompts = batch > 0 ? m->prompts : 0,
                                            .sampling = {.top_p = 1},
                                            .seed = 1,
                                            .tokens = m->tokens,
                                            .ctx = m->tokens + 128,
                                            .ignore_eos = true,
                                            .probe = m->changing ? PROBE_ALL : PROBE_OFF,
                                            .head = m->heads != HEAD_LENS ? HEADS_TRAINED : HEADS_POLICY,
                                            .set = set,
                                            .n_set = n_set,
                                            .paused = turner != NULL};
    if (!session_rig_generate(engine, &options, turner != NULL ? turn_and_step : NULL, turner, out, &err))
        fail_msg("%s: %s", policy, err.text);
    if (out->wrong[0] != '\0')
        fail_msg("%s: %s", policy, out->wrong);
}

static void
compare(const struct session_rig_sequence *got, const struct session_rig_sequence *ar, const char *policy,
        const char *setting, size_t prompt)
{
    for (size_t i = 0; i < got->n && i < ar->n; i++)
        if (got->tokens[i] != ar->tokens[i])
            fail_msg("%s, %s, prompt %zu, seed %llu: token %zu is %d, autoregressive decoding gives %d", policy,
                     setting, prompt, (unsigned long long)seed, i, got->tokens[i], ar->tokens[i]);
    assert_int_equal(got->n, ar->n);
}

static uint64_t
run_matrix(const char *path, const char *draft, const struct matrix *m)
{
    struct err err = {0};
    struct engine *engine;
    uint64_t random = seed, compared = 0, drafted = 0;
    if (!session_rig_engine_chunks(&engine, path, draft, m->backend, 2, m->prompt_rows, &err))
        fail_msg("%s", err.text);
    struct session_rig_result ar[SESSION_PROMPTS];
    for (size_t p = 0; p < m->prompts; p++) {
        generate(engine, "ar", NULL, 0, p, 0, m, NULL, &ar[p]);
        assert_int_equal(ar[p].n, m->tokens);
        assert_int_equal(ar[p].chunked, m->prompt_rows > 0 ? 1 : 0);
    }
    for (size_t i = 0; policy_registry[i] != NULL; i++) {
        struct policy_info info;
        declare(engine, policy_registry[i], &info);
        for (int setting = 0; setting < (m->settings > 0 ? m->settings : SETTINGS); setting++) {
            struct knob_setting set[POLICY_KNOBS];
            char text[POLICY_KNOBS * 50] = "";
            knob_settings(&info, setting, &random, set);
            for (uint32_t k = 0; k < info.n_knobs; k++) {
                size_t len = strlen(text);
                snprintf(text + len, sizeof text - len, "%s=%s ", set[k].name, set[k].text);
            }
            for (size_t p = 0; p < (m->batch > 0 ? 1 : m->prompts); p++) {
                struct session_rig_result got;
                struct turner turner = {&info, m->heads != HEAD_LENS, &random};
                generate(engine, info.name, set, info.n_knobs, p, m->batch, m, m->changing ? &turner : NULL, &got);
                for (size_t q = 0; q < got.n_sequences; q++)
                    compare(&got.sequences[q], &ar[p + q].sequences[0], info.name, text, p + q);
                assert_int_equal(got.n_sequences, m->batch > 0 ? m->prompts : 1);
                assert_int_equal(got.chunked, m->prompt_rows > 0 ? got.n_sequences : 0);
                compared += got.n_sequences;
                drafted += got.metrics.total.accepted;
                session_rig_free(&got);
            }
            if (getenv("SPECSCOPE_LONG") != NULL)
                fprintf(stderr, "# %s, %s, setting %d of %d\n", m->backend, info.name, setting + 1, SETTINGS);
        }
    }
    assert_true(drafted > 0); /* a matrix in which nothing is accepted shows nothing */
    for (size_t p = 0; p < m->prompts; p++)
        session_rig_free(&ar[p]);
    engine_close(engine);
    return compared;
}

static void
on_a_tiny_model(const struct matrix *m)
{
    char path[128];
    struct err err = {0};
    const struct tinymodel tiny = {
        .seed = seed, .n_layers = 6, .calm_after = 2, .calm = 0.15f, .mixed = true, .sharpness = 8};
    if (!tinymodel_write_temp(path, sizeof path, &tiny, &err))
        fail_msg("%s", err.text);
    char draft[128], heads[160];
    struct tinymodel small = tiny;
    small.first_layers = 2;
    if (!tinymodel_write_temp(draft, sizeof draft, &small, &err))
        fail_msg("%s", err.text);
    if (m->heads != HEAD_LENS && !heads_rig_write_beside(path, m->heads, seed, heads, sizeof heads, &err))
        fail_msg("%s", err.text);
    run_matrix(path, draft, m);
    if (m->heads != HEAD_LENS)
        unlink(heads);
    unlink(draft);
    unlink(path);
}

static void
test_trained_heads_keep_autoregressive_tokens(void **state)
{
    (void)state;
    on_a_tiny_model(&(struct matrix){"cpu", 1, 40, false, 2, HEAD_AFFINE, 0, 0});
    on_a_tiny_model(&(struct matrix){"cpu", 1, 40, false, 1, HEAD_FULL, 0, 0});
    on_a_tiny_model(&(struct matrix){"check", 1, 40, true, 2, HEAD_AFFINE, 0, 0});
}

static void
test_every_policy_and_setting_gives_autoregressive_tokens_on_cpu(void **state)
{
    (void)state;
    on_a_tiny_model(&(struct matrix){"cpu", 3, 40, false, 0, HEAD_LENS, 0, 0});
}

static void
test_every_policy_and_setting_gives_autoregressive_tokens_on_check(void **state)
{
    (void)state;
    on_a_tiny_model(&(struct matrix){"check", 1, 40, false, 0, HEAD_LENS, 0, 0});
}

static void
test_every_sequence_of_a_batch_gives_autoregressive_tokens(void **state)
{
    (void)state;
    on_a_tiny_model(&(struct matrix){"cpu", 2, 24, false, 2, HEAD_LENS, 1, 0});
    on_a_tiny_model(&(struct matrix){"cpu", 5, 24, false, 3, HEAD_LENS, 3, 0});
    on_a_tiny_model(&(struct matrix){"cpu", 9, 24, true, 1, HEAD_LENS, 8, 0});
    on_a_tiny_model(&(struct matrix){"check", 4, 16, true, 1, HEAD_LENS, 3, 0});
    on_a_tiny_model(&(struct matrix){"cpu", 4, 24, true, 1, HEAD_AFFINE, 3, 0});
    run_matrix(BUNDLED, DRAFT, &(struct matrix){"cpu", 5, 24, false, 1, HEAD_LENS, 3, 0});
}

/* Models of other forms than Llama's: windows and rotations by layer and norms behind sublayers, norms over whole rows,
 * parallel sublayers, no gates, experts. */
static void
test_other_forms_give_autoregressive_tokens(void **state)
{
    (void)state;
    static const char *const families[] = {"gemma3",  "olmo2", "cohere2",    "phi",      "gpt_neox",
                                           "granite", "gpt2",  "ministral3", "glm4_moe", "gpt_oss"};
    const bool all = getenv("SPECSCOPE_LONG") != NULL;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        char path[80];
        snprintf(path, sizeof path, "tests/golden/families/%s", families[i]);
        run_matrix(path, path,
                   &(struct matrix){"cpu", all ? 6 : 1, all ? 32 : 16, i % 2 == 1, all ? 0 : 1, HEAD_LENS, 0, 0});
        if (all || i == 0 || i == 8)
            run_matrix(path, path, &(struct matrix){"check", 4, 16, i % 2 == 0, 1, HEAD_LENS, 3, 0});
    }
}

/* One of each kind of feature: caps, norms over whole rows and none before, layers that do not turn, biases without gates,
 * norms behind rotations. On a real GPU, and where there is time. */
static void
test_other_forms_give_autoregressive_tokens_on_cuda(void **state)
{
    (void)state;
    static const char *const families[] = {"gemma2", "olmo2", "cohere2", "phi", "hunyuan"};
    if (cuda_for_tests() == NULL || (cuda_is_emulated() && getenv("SPECSCOPE_LONG") == NULL))
        skip();
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        char path[80];
        snprintf(path, sizeof path, "tests/golden/families/%s", families[i]);
        run_matrix(path, path, &(struct matrix){"cuda", 1, 16, i % 2 == 0, 1, HEAD_LENS, 0, 0});
        run_matrix(path, path, &(struct matrix){"cuda", 3, 8, i % 2 == 1, 1, HEAD_LENS, 2, 8});
    }
}

/* An emulated GPU runs a very small model for a few tokens, a real one all of it and the bundled model. */
static void
test_every_policy_and_setting_gives_autoregressive_tokens_on_cuda(void **state)
{
    (void)state;
    if (cuda_for_tests() == NULL)
        skip();
    if (cuda_is_emulated()) {
        char path[128];
        struct err err = {0};
        const struct tinymodel small = {.seed = seed,
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
        if (!tinymodel_write_temp(path, sizeof path, &small, &err))
            fail_msg("%s", err.text);
        run_matrix(
            path, path,
            &(struct matrix){"cuda", 1, 12, false, getenv("SPECSCOPE_LONG") != NULL ? SETTINGS : 2, HEAD_LENS, 0, 0});
        run_matrix(path, path, &(struct matrix){"cuda", 4, 8, false, 1, HEAD_LENS, 3, 0});
        char heads[160];
        if (!heads_rig_write_beside(path, HEAD_AFFINE, seed, heads, sizeof heads, &err))
            fail_msg("%s", err.text);
        run_matrix(path, path, &(struct matrix){"cuda", 1, 12, false, 1, HEAD_AFFINE, 0, 0});
        unlink(heads);
        run_matrix(path, path, &(struct matrix){"cuda", 1, 12, false, 1, HEAD_LENS, 0, 8});
        run_matrix(path, path, &(struct matrix){"cuda", 3, 6, false, 1, HEAD_LENS, 2, 8});
        unlink(path);
        return;
    }
    on_a_tiny_model(&(struct matrix){"cuda", 1, 40, false, 0, HEAD_LENS, 0, 0});
    on_a_tiny_model(&(struct matrix){"cuda", 2, 40, true, 0, HEAD_LENS, 0, 0});
    run_matrix(BUNDLED, DRAFT, &(struct matrix){"cuda", 2, 64, false, 0, HEAD_LENS, 0, 0});
    run_matrix(BUNDLED, DRAFT, &(struct matrix){"cuda", 9, 64, false, 0, HEAD_LENS, 8, 0});
}

static void
test_knobs_changing_every_round_keep_autoregressive_tokens(void **state)
{
    (void)state;
    on_a_tiny_model(&(struct matrix){"cpu", 2, 40, true, 0, HEAD_LENS, 0, 0});
}

static void
test_the_bundled_model_gives_autoregressive_tokens(void **state)
{
    (void)state;
    run_matrix(BUNDLED, DRAFT, &(struct matrix){"cpu", 1, 48, false, 0, HEAD_LENS, 0, 0});
}

static void
test_the_whole_matrix_on_the_bundled_model(void **state)
{
    (void)state;
    if (getenv("SPECSCOPE_LONG") == NULL)
        skip();
    uint64_t n = run_matrix(BUNDLED, DRAFT, &(struct matrix){"cpu", SESSION_PROMPTS, 128, false, 0, HEAD_LENS, 0, 0});
    n += run_matrix(BUNDLED, DRAFT, &(struct matrix){"cpu", SESSION_PROMPTS, 128, true, 0, HEAD_LENS, 0, 0});
    n += run_matrix(BUNDLED, DRAFT, &(struct matrix){"check", SESSION_PROMPTS, 128, false, 0, HEAD_LENS, 0, 0});
    n += run_matrix(BUNDLED, DRAFT, &(struct matrix){"check", SESSION_PROMPTS, 128, true, 0, HEAD_LENS, 0, 0});
    for (uint32_t batch = 1; batch <= 8; batch = batch == 1 ? 3 : batch + 5)
        for (int check = 0; check < 2; check++)
            for (int changing = 0; changing < 2; changing++)
                n += run_matrix(BUNDLED, DRAFT,
                                &(struct matrix){check ? "check" : "cpu", SESSION_PROMPTS, 64, changing,
                                                 changing ? 2 : 3, HEAD_LENS, batch, 0});
    printf("# %llu runs compared\n", (unsigned long long)n);
}

int
main(void)
{
    seed = seed_or(seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_policy_and_setting_gives_autoregressive_tokens_on_cpu),
        cmocka_unit_test(test_every_policy_and_setting_gives_autoregressive_tokens_on_check),
        cmocka_unit_test(test_every_sequence_of_a_batch_gives_autoregressive_tokens),
        cmocka_unit_test(test_other_forms_give_autoregressive_tokens),
        cmocka_unit_test(test_every_policy_and_setting_gives_autoregressive_tokens_on_cuda),
        cmocka_unit_test(test_other_forms_give_autoregressive_tokens_on_cuda),
        cmocka_unit_test(test_trained_heads_keep_autoregressive_tokens),
        cmocka_unit_test(test_knobs_changing_every_round_keep_autoregressive_tokens),
        cmocka_unit_test(test_the_bundled_model_gives_autoregressive_tokens),
        cmocka_unit_test(test_the_whole_matrix_on_the_bundled_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
