#include "tests/rigs/recorded_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool
keep(struct recorded_run *run, const struct event *e)
{
    if (run->n == run->room) {
        size_t room = run->room > 0 ? 2 * run->room : 4096;
        struct event *more = realloc(run->events, room * sizeof *more);
        if (more == NULL)
            return false;
        run->events = more;
        run->room = room;
    }
    run->events[run->n++] = *e;
    run->prompt_tokens += e->type == EVENT_TOKEN && e->token.source == SOURCE_PROMPT;
    return true;
}

static bool
follow(struct recorded_run *run, struct live *s, struct event_reader *reader)
{
    for (;;) {
        bool finished = event_log_finished(s->ops->log(s)); /* read before the last events are read */
        const struct event *e;
        while ((e = event_reader_next(reader)) != NULL)
            if (!keep(run, e))
                return false;
        if (finished)
            return event_reader_lost(reader) == 0;
        event_reader_wait(reader, 1000);
    }
}

bool
record_run(struct engine *engine, const struct session_options *options, struct recorded_run *run, struct err *err)
{
    *run = (struct recorded_run){0};
    struct live *s;
    if (!session_open(&s, engine, options, err))
        return false;
    run->layers = s->ops->info(s)->layers;
    struct event_reader *reader = event_reader_open(s->ops->log(s));
    bool ok = reader != NULL && s->ops->start(s, err);
    if (ok && !follow(run, s, reader))
        ok = err_set(err, ERR_WORK, "events of the run were lost: out of memory");
    struct err failure;
    if (ok && s->ops->failed(s, &failure)) {
        *err = failure;
        ok = false;
    }
    event_reader_close(reader);
    live_close(s);
    if (!ok)
        recorded_run_free(run);
    return ok;
}

void
recorded_run_free(struct recorded_run *run)
{
    free(run->events);
    run->events = NULL;
    run->n = run->room = 0;
}

double
recorded_value(const struct recorded_run *run, uint32_t round, const char *key, int index)
{
    for (size_t i = 0; i < run->n; i++) {
        const struct event *e = &run->events[i];
        if (e->type == EVENT_SERIES && e->round == round && e->series.index == index && strcmp(e->series.key, key) == 0)
            return (double)e->series.value;
    }
    return (double)NAN;
}
