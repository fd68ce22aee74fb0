#include "tests/rigs/observed_run.h"

#include <string.h>

bool
observe_run(struct observed_run *r, struct engine *engine, const struct session_options *options, struct err *err)
{
    const struct event *e;
    *r = (struct observed_run){0};
    if (!session_open(&r->session, engine, options, err) || !scope_open(&r->scope, session_info(r->session), err))
        return false;
    struct event_reader *reader = event_reader_open(session_log(r->session));
    if (reader == NULL || !session_start(r->session, err))
        return false;
    for (bool over = false; !over;) {
        while ((e = event_reader_next(reader)) != NULL) {
            scope_event(r->scope, e);
            over = over || (e->type == EVENT_CONTROL && e->control.kind == RECORDED_END);
        }
        if (!over)
            event_reader_wait(reader, 100);
    }
    event_reader_close(reader);
    return !session_failed(r->session, err);
}

void
observed_run_close(struct observed_run *r)
{
    scope_close(r->scope);
    session_close(r->session);
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
