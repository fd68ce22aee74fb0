#include "tests/rigs/lossless_rig.h"

#include "tests/rigs/copying_policy.h"
#include "tests/rigs/knob_changes.h"
#include "tests/rigs/session_rig.h"
#include "tests/rigs/test.h"

static void
declare(const struct engine *engine, const struct policy_ops *ops, struct policy_info *info)
{
    const struct model_info model = engine_model_info(engine);
    const struct sampling greedy = {.top_p = 1};
    struct policy p;
    struct err err;
    assert_ok(policy_open(&p, ops, &model, &greedy, &err), err);
    *info = p.info;
    policy_close(&p);
}

/* A model and its matrix. */
struct trial {
    const struct lossless_matrix *matrix;
    const struct lossless_model *model;
    struct engine *engine;
    uint64_t seed, random;
    struct session_rig_result ar[SESSION_PROMPTS];
    struct lossless_result result;
};

struct changer {
    const struct policy_info *info;
    bool heads;
    uint64_t *random;
};

/* The session is paused. After each round this hook changes all knobs, then takes one step. */
static void
change_and_step(void *user, struct live *s, const struct event *e)
{
    struct changer *t = user;
    bool waits =
        e->type == EVENT_CONTROL && e->control.kind == RECORDED_STATE && strcmp(e->control.new_text, "paused") == 0;
    if (!waits)
        return;
    struct err err;
    for (uint32_t k = 0; k < t->info->n_knobs; k++)
        assert_ok(knob_change(s, &t->info->knobs[k], 3, 0, t->random, &err), err);
    const struct control head = {.kind = CONTROL_HEAD, .text = head_mode_names[splitmix64(t->random) % HEAD_MODES]};
    if (t->heads && !s->ops->post(s, &head, &err))
        fail_msg("%s", err.text);
    assert_ok(s->ops->post(s, &(struct control){.kind = CONTROL_STEP_ROUNDS, .n = 1}, &err), err);
}

static void
generate(const struct trial *t, const char *policy, const struct knob_setting *set, size_t n_set, size_t prompt,
         uint32_t batch, struct changer *changer, struct session_rig_result *out)
{
    const struct lossless_matrix *m = t->matrix;
    struct err err = {0};
    struct prompt_text prompts[SESSION_PROMPTS];
    for (size_t i = 0; i < m->prompts; i++)
        prompts[i] = (struct prompt_text){session_prompts[i], strlen(session_prompts[i])};
    const struct session_options options = {.policies = registry_with_copying(),
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
                                            .paused = changer != NULL};
    if (!session_rig_generate(t->engine, &options, changer != NULL ? change_and_step : NULL, changer, out, &err))
        fail_msg("%s: %s: %s", t->model->path, policy, err.text);
    if (out->wrong[0] != '\0')
        fail_msg("%s: %s: %s", t->model->path, policy, out->wrong);
}

static void
compare(const struct trial *t, const struct session_rig_sequence *got, const char *policy, const char *setting,
        size_t prompt)
{
    const struct session_rig_sequence *ar = &t->ar[prompt].sequences[0];
    for (size_t i = 0; i < got->n && i < ar->n; i++)
        if (got->tokens[i] != ar->tokens[i])
            fail_msg("%s on %s (%s): %s, %s, prompt %zu, seed %llu: token %zu is %d, autoregressive decoding gives %d",
                     t->model->path, t->matrix->backend, t->engine->ops->describe(t->engine->backend), policy, setting,
                     prompt, (unsigned long long)t->seed, i, got->tokens[i], ar->tokens[i]);
    assert_int_equal(got->n, ar->n);
}

static void
try_setting(struct trial *t, const struct policy_info *info, int setting)
{
    const struct lossless_matrix *m = t->matrix;
    struct knob_setting set[POLICY_KNOBS];
    char text[POLICY_KNOBS * 50] = "";
    knob_settings(info, setting, &t->random, set);
    for (uint32_t k = 0; k < info->n_knobs; k++) {
        const size_t len = strlen(text);
        snprintf(text + len, sizeof text - len, "%s=%s ", set[k].name, set[k].text);
    }
    for (size_t p = 0; p < (m->batch > 0 ? 1 : m->prompts); p++) {
        struct session_rig_result got;
        struct changer changer = {info, m->heads != HEAD_LENS, &t->random};
        generate(t, info->name, set, info->n_knobs, p, m->batch, m->changing ? &changer : NULL, &got);
        for (size_t q = 0; q < got.n_sequences; q++)
            compare(t, &got.sequences[q], info->name, text, p + q);
        assert_int_equal(got.n_sequences, m->batch > 0 ? m->prompts : 1);
        t->result.compared += got.n_sequences;
        t->result.accepted += got.metrics.total.accepted;
        session_rig_free(&got);
    }
}

static struct engine *
open_engine(const struct lossless_model *of, const struct lossless_matrix *m, uint32_t threads)
{
    struct err err = {0};
    struct engine *engine;
    const struct engine_options options = {.model_path = of->path,
                                           .wanted = NEEDS(AUX_MTP),
                                           .backend = m->backend,
                                           .backend_options = {.threads = threads, .gpu = -1, .isa = of->isa},
                                           .aux = {[AUX_DRAFT] = of->draft},
                                           .lora = &of->lora,
                                           .n_lora = of->lora != NULL};
    assert_ok(session_rig_engine_open(&engine, &options, &err), err);
    return engine;
}

struct lossless_result
lossless_run(const struct lossless_model *of, const struct lossless_matrix *m, uint64_t seed)
{
    struct trial t = {
        .matrix = m, .model = of, .engine = open_engine(of, m, 1 + seed % 2), .seed = seed, .random = seed};
    const int n = m->settings > 0 ? m->settings : LOSSLESS_SETTINGS;
    for (size_t p = 0; p < m->prompts; p++) {
        generate(&t, "ar", NULL, 0, p, 0, NULL, &t.ar[p]);
        assert_int_equal(t.ar[p].n, m->tokens);
    }
    const struct policy_ops *const *registry = registry_with_copying();
    for (size_t i = 0; registry[i] != NULL; i++) {
        struct policy_info info;
        const bool missing = engine_missing(t.engine, registry[i]->needs) != 0;
        if (of->only != NULL ? strcmp(registry[i]->name, of->only) != 0
                             : missing || (of->share > 0 && (i + seed) % of->share != 0))
            continue; /* a backend may have no feature drafters */
        assert_false(missing);
        declare(t.engine, registry[i], &info);
        for (int setting = of->first; setting < of->first + n; setting++) {
            try_setting(&t, &info, setting);
            if (getenv("SPECSCOPE_LONG") != NULL)
                fprintf(stderr, "# %s, %s, %s, setting %d of %d\n", of->path, m->backend, info.name,
                        setting - of->first + 1, n);
        }
    }
    for (size_t p = 0; p < m->prompts; p++)
        session_rig_free(&t.ar[p]);
    engine_close(t.engine);
    return t.result;
}
