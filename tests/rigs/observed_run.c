#include "tests/rigs/observed_run.h"

#include "cli/generation/generation.h"

static void
observe(void *user, const struct event *e)
{
    struct observed_run *r = user;
    if (r->scope == NULL)
        scope_open(&r->scope, r->session->ops->info(r->session), NULL);
    if (r->scope != NULL)
        scope_event(r->scope, e);
}

bool
observe_run(struct observed_run *r, struct engine *engine, const struct session_options *options, struct err *err)
{
    struct outcome out;
    *r = (struct observed_run){0};
    if (!session_open(&r->session, engine, options, err))
        return false;
    const struct generation g = {.live = r->session, .event = observe, .user = r};
    if (!generate(&g, &out, err))
        return false;
    outcome_free(&out);
    return r->scope != NULL || err_set(err, ERR_WORK, "out of memory for a scope");
}

void
observed_run_close(struct observed_run *r)
{
    scope_close(r->scope);
    live_close(r->session);
}

bool
observe_record(struct engine *engine, const struct session_options *options, struct layer_record *record,
               struct err *err)
{
    struct session_options o = *options;
    struct observed_run r;
    o.probe = PROBE_ALL;
    const bool ok = observe_run(&r, engine, &o, err);
    const char *lacks = ok ? scope_record(r.scope, record) : NULL;
    observed_run_close(&r);
    return ok && (lacks == NULL || err_set(err, ERR_WORK, "%s", lacks));
}
