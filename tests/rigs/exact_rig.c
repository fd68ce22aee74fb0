
#include <unistd.h>

#include "engine/model/trained/sv_profile.h"
#include "policies/registry.h"
#include "tests/rigs/exact_rig.h"
#include "tests/rigs/test.h"

struct engine *
exact_rig_open(const char *path, const char *draft, const char *companion)
{
    struct err err = {0};
    struct engine *e = NULL;
    const struct engine_options options = {.model_path = path,
                                           .backend = "cpu",
                                           .heads = "none",
                                           .aux = {draft, companion},
                                           .backend_options = {.threads = 1, .gpu = -1, .exact = true}};
    assert_ok(engine_open(&e, &options, NULL, NULL, &err), err);
    return e;
}

struct engine *
exact_rig_tiny(const struct tinymodel *target, const struct tinymodel *draft, const struct tinymodel *companion)
{
    const struct tinymodel *const shapes[READS] = {target, draft, companion};
    char path[READS][64];
    struct err err = {0};
    for (int i = 0; i < READS; i++)
        assert_true(shapes[i] == NULL || tinymodel_write_temp(path[i], sizeof path[i], shapes[i], &err));
    struct engine *e = exact_rig_open(path[0], draft != NULL ? path[1] : NULL, companion != NULL ? path[2] : NULL);
    for (int i = 0; i < READS; i++)
        if (shapes[i] != NULL)
            unlink(path[i]);
    return e;
}

struct engine *
exact_rig_verification(void)
{
    const struct tinymodel target = {.seed = 11, .n_layers = 5, .calm_after = 2, .calm = 0.12f, .sharpness = 8};
    struct tinymodel draft = target, companion = target;
    struct sv_observation seen[400];
    struct err err = {0};
    draft.first_layers = 2;
    companion.first_layers = 3;
    struct engine *e = exact_rig_tiny(&target, &draft, &companion);
    for (int i = 0; i < 400; i++) {
        const float s = (float)(i / 20) / 19, a = (float)(i % 20) / 19;
        seen[i] = (struct sv_observation){s, a, 0.1f + 0.45f * (s + a * s)};
    }
    e->profile = calloc(1, sizeof *e->profile);
    assert_non_null(e->profile);
    assert_ok(sv_profile_make(e->profile, 8, 6, seen, 400, &err), err);
    return e;
}

struct engine *
exact_rig_own_layers(const struct tinymodel *target, const char *draft, const char *companion)
{
    char path[64];
    struct err err = {0};
    assert_ok(tinymodel_write_temp(path, sizeof path, target, &err), err);
    struct engine *e = exact_rig_open(path, draft, companion);
    unlink(path);
    return e;
}

void
exact_rig_read(const struct engine *e, enum reads who, const token_t *text, size_t n, float *logits, float *hidden)
{
    static const struct aux_model nobody;
    const struct aux_model *h = who == READS_TARGET ? &nobody : &e->aux[who - READS_DRAFT];
    const struct model *m = h->model != NULL ? h->model : e->model;
    const uint32_t layer = h->exit_layer > 0 ? h->exit_layer : m->desc.n_layers;
    struct context *c;
    struct err err = {0};
    const struct context_options options = {.ctx = 64};
    assert_true(
        context_open(&c, e->ops, e->backend, h->model != NULL ? h->weights : e->weights, &m->desc, &options, &err));
    const seq_t seq = context_sequence(c);
    assert_true(context_prefill(c, seq, text, n, NULL, NULL));
    const slot_t last = context_at(c, seq, (uint32_t)n - 1);
    assert_true(logits == NULL || context_read_logits(c, last, layer, logits));
    assert_true(hidden == NULL || context_read_hidden(c, last, layer, hidden));
    context_close(c);
}

struct session_options
exact_rig_session(const char *policy, const char *prompt, uint32_t tokens)
{
    return (struct session_options){.policies = policy_registry,
                                    .policy = policy,
                                    .prompt = prompt,
                                    .prompt_len = strlen(prompt),
                                    .sampling = {.top_p = 1},
                                    .seed = 4,
                                    .tokens = tokens,
                                    .ctx = 512,
                                    .ignore_eos = true,
                                    .probe = PROBE_OFF};
}

struct recorded_run
exact_rig_record(struct engine *e, const struct session_options *o)
{
    struct recorded_run run;
    struct err err = {0};
    assert_ok(record_run(e, o, &run, &err), err);
    return run;
}
