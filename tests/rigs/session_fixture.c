#include "tests/rigs/session_fixture.h"

#include <unistd.h>

#include "policies/registry.h"
#include "tests/rigs/test.h"

bool
session_fixture_pair(struct engine **engine, const struct tinymodel *model, const struct tinymodel *draft,
                     const char *backend, uint32_t threads)
{
    char path[128], second[128] = "";
    struct err err = {0};
    struct tinymodel usual = *model;
    usual.first_layers = model->calm_after > 0 ? model->calm_after : 1;
    bool ok = tinymodel_write_temp(path, sizeof path, model, &err) &&
              tinymodel_write_temp(second, sizeof second, draft != NULL ? draft : &usual, &err) &&
              session_rig_engine_with(engine, path, second, backend, threads, &err);
    unlink(path); /* the files remain mapped */
    unlink(second);
    if (!ok)
        fprintf(stderr, "%s\n", err.text);
    return ok;
}

bool
session_fixture_engine(struct engine **engine, const struct tinymodel *model)
{
    return session_fixture_pair(engine, model, NULL, "cpu", 1);
}

int
session_fixture_open(void **state)
{
    static struct fixture f;
    const struct tinymodel tiny = {.seed = 5, .n_layers = 6, .calm_after = 2, .calm = 0.15f, .sharpness = 8};
    *state = &f;
    return session_fixture_engine(&f.engine, &tiny) ? 0 : 1;
}

int
session_fixture_close(void **state)
{
    struct fixture *f = *state;
    engine_close(f->engine);
    return 0;
}

struct session_options
session_usual(void)
{
    return (struct session_options){.policies = policy_registry,
                                    .policy = "specbound",
                                    .prompt = session_prompts[0],
                                    .prompt_len = strlen(session_prompts[0]),
                                    .sampling = {.top_p = 1},
                                    .seed = 1,
                                    .tokens = 60,
                                    .ctx = 256,
                                    .ignore_eos = true,
                                    .probe = PROBE_POLICY};
}

struct session_options
session_batch(uint32_t at_a_time)
{
    static struct prompt_text prompts[SESSION_BATCH];
    struct session_options o = session_usual();
    for (size_t i = 0; i < SESSION_BATCH; i++)
        prompts[i] = (struct prompt_text){session_prompts[i], strlen(session_prompts[i])};
    o.batch = at_a_time;
    o.prompts = prompts;
    o.n_prompts = SESSION_BATCH;
    return o;
}

void
session_run(struct engine *engine, const struct session_options *o, session_rig_hook hook, void *user,
            struct session_rig_result *out)
{
    struct err err = {0};
    assert_ok(session_rig_generate(engine, o, hook, user, out, &err), err);
    if (out->wrong[0] != '\0')
        fail_msg("%s", out->wrong);
}

void
session_control(struct live *s, enum control_kind kind, const char *name, const char *text, uint32_t n)
{
    struct err err = {0};
    struct control c = {.kind = kind, .text = text, .n = n};
    snprintf(c.name, sizeof c.name, "%s", name != NULL ? name : "");
    assert_ok(s->ops->post(s, &c, &err), err);
}

bool
event_is_control(const struct event *e, const char *name, const char *new_text)
{
    return e->type == EVENT_CONTROL && strcmp(control_event_name(&e->control), name) == 0 &&
           (new_text == NULL || strcmp(e->control.new_text, new_text) == 0);
}
