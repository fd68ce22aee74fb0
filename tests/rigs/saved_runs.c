#include "tests/rigs/saved_runs.h"

#include "tests/rigs/folders.h"
#include "tests/rigs/test.h"
#include "traces/writer.h"

/* Changes a knob of layerskip, or tau, after the fourth round. */
static void
turn(struct live *s, const struct event *e, const char *knob, const char *value)
{
    if (knob == NULL)
        return;
    if (event_is_control(e, "state", "paused") && e->round == 0) {
        session_control(s, CONTROL_BREAK, NULL, NULL, 4);
        session_control(s, CONTROL_RESUME, NULL, NULL, 0);
    } else if (event_is_control(e, "break", NULL)) {
        session_control(s, CONTROL_KNOB, knob, value, 0);
        session_control(s, CONTROL_RESUME, NULL, NULL, 0);
    }
}

static void
trace_run(struct engine *engine, struct session_options o, const char *knob, const char *value, const char *path)
{
    struct live *s;
    struct trace_writer *w;
    struct err err = {0};
    const struct event *e;
    o.paused = knob != NULL;
    o.probe = PROBE_ALL;
    if (!session_open(&s, engine, &o, &err) ||
        !trace_writer_open(&w, path, NULL, s->ops->info(s), s->ops->log(s), &err))
        fail_msg("%s", err.text);
    struct event_reader *reader = event_reader_open(s->ops->log(s));
    assert_ok(s->ops->start(s, &err), err);
    do {
        event_reader_wait(reader, 100);
        while ((e = event_reader_next(reader)) != NULL)
            turn(s, e, knob, value);
    } while (!event_log_finished(s->ops->log(s)));
    event_reader_close(reader);
    assert_ok(trace_writer_close(w, &err), err);
    live_close(s);
}

int
saved_runs_open(void **state)
{
    static struct saved_runs t;
    const struct tinymodel tiny = {.seed = 5, .n_layers = 6, .calm_after = 2, .calm = 0.15f, .sharpness = 8},
                           other = {.seed = 6, .n_layers = 6, .calm_after = 2, .calm = 0.15f, .sharpness = 8};
    if (!session_fixture_engine(&t.engine, &tiny) || !session_fixture_engine(&t.other, &other))
        return 1;
    make_temp_folder(t.folder);
    snprintf(t.both, sizeof t.both, "%s/both", t.folder);
    snprintf(t.skip, sizeof t.skip, "%s/skip", t.folder);
    snprintf(t.bound, sizeof t.bound, "%s/bound", t.folder);
    snprintf(t.prompt, sizeof t.prompt, "%s/prompt", t.folder);
    snprintf(t.model, sizeof t.model, "%s/model", t.folder);
    struct session_options o = session_usual();
    o.versus = "layerskip gamma=3";
    trace_run(t.engine, o, NULL, NULL, t.both);
    o.versus = NULL;
    o.tokens = 40;
    trace_run(t.engine, o, "tau", "0.3", t.bound);
    o.policy = "layerskip";
    o.tokens = 60;
    const struct knob_setting gamma = {"gamma", "4"};
    o.set = &gamma;
    o.n_set = 1;
    trace_run(t.engine, o, NULL, NULL, t.skip);
    trace_run(t.other, o, NULL, NULL, t.model);
    o.prompt = session_prompts[3];
    o.prompt_len = strlen(o.prompt);
    trace_run(t.engine, o, NULL, NULL, t.prompt);
    *state = &t;
    return 0;
}

int
saved_runs_close(void **state)
{
    struct saved_runs *t = *state;
    engine_close(t->engine);
    engine_close(t->other);
    remove_folder(t->folder);
    return 0;
}
