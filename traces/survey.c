#include "traces/survey.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/platform.h"
#include "traces/run_json.h"
#include "traces/schema.h"

#define LONGEST_US ((uint64_t)1 << 62) /* where the time line stops growing */

struct span { /* a run on the time line */
    uint32_t run;
    uint64_t start_us, duration_us;
};

bool
survey_open(struct survey *s, int folder_fd, const char *folder, struct err *err)
{
    *s = (struct survey){.rounds.fd = -1, .controls.fd = -1};
    return table_open(&s->rounds, folder_fd, folder, TABLE_ROUNDS, err) &&
           table_open(&s->controls, folder_fd, folder, TABLE_CONTROLS, err);
}

void
survey_close(struct survey *s)
{
    table_close(&s->rounds);
    table_close(&s->controls);
    free(s->spans);
}

bool
survey_same_round(const struct event *before, const struct event *e)
{
    return before->number > 0 && before->run == e->run && before->round == e->round && before->seq != e->seq;
}

/* ---- runs on the time line ---- */

static struct span *
add_span(struct survey *s, uint32_t run)
{
    if (s->n_spans == s->max_spans) {
        size_t max = 2 * s->max_spans + 16;
        struct span *spans = realloc(s->spans, max * sizeof *spans);
        if (spans == NULL)
            return NULL;
        s->spans = spans;
        s->max_spans = max;
    }
    struct span *span = &s->spans[s->n_spans++];
    *span = (struct span){.run = run, .start_us = s->duration_us < LONGEST_US ? s->duration_us : LONGEST_US};
    return span;
}

/* The next line of rounds and controls. */
static bool
take(struct survey *s, const struct table_file *t, struct err *err)
{
    const struct event *e = &t->event;
    if (e->run < s->run)
        return table_refuse(t, "run", "goes back to an earlier run", err);
    struct span *span = s->n_spans > 0 ? &s->spans[s->n_spans - 1] : NULL;
    if (span == NULL || e->run != span->run)
        span = add_span(s, e->run);
    if (span == NULL)
        return err_set(err, ERR_WORK, "out of memory for the runs of %s", t->folder);
    if (e->t_us > span->duration_us)
        span->duration_us = e->t_us;
    s->duration_us = span->start_us + span->duration_us;
    s->run = e->run;
    return true;
}

uint64_t
survey_time(const struct survey *s, const struct event *e)
{
    size_t low = 0, high = s->n_spans; /* the first run after e's */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->spans[middle].run <= e->run)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0;
    const struct span *span = &s->spans[low - 1];
    return span->start_us + (e->run == span->run && e->t_us < span->duration_us ? e->t_us : span->duration_us);
}

/* ---- reading on ---- */

static bool
take_controls(struct survey *s, const struct run_info *run, uint64_t last, struct err *err)
{
    for (;;) {
        if (!table_next(&s->controls, run, last, err))
            return false;
        if (!s->controls.more)
            return true;
        if (!take(s, &s->controls, err))
            return false;
    }
}

bool
survey_go_on(struct survey *s, const struct run_info *run, uint64_t closed, bool growing, struct err *err)
{
    const bool others = growing && closed == 0 && run->sequences > 1;
    for (;;) {
        if (!table_next(&s->rounds, run, closed > 0 ? closed : UINT64_MAX, err))
            return false;
        if (!s->rounds.more)
            break;
        const struct event *e = &s->rounds.event;
        const bool same = survey_same_round(&s->last_round, e);
        if (!take_controls(s, run, e->number, err) || !take(s, &s->rounds, err))
            return false;
        if (!same && s->last_round.number > 0)
            s->candidate = s->last_round.number;
        s->last_round = *e;
        s->n_rounds += !same;
    }
    if (!others)
        s->candidate = s->last_round.number;
    if (s->candidate > s->last_event)
        s->last_event = s->candidate;
    if (closed > s->last_event)
        s->last_event = closed;
    return take_controls(s, run, s->last_event, err);
}

bool
survey_take_end(struct survey *s, const struct run_info *run, struct err *err)
{
    for (;;) {
        if (!table_next(&s->controls, run, UINT64_MAX, err))
            return false;
        if (!s->controls.more)
            return true;
        if (!take(s, &s->controls, err))
            return false;
        if (s->controls.event.control.kind == RECORDED_END)
            s->last_event = s->controls.event.number;
    }
}

/* ---- growing ---- */

static bool
facts(int folder_fd, const char *name, struct stat *about)
{
    return fstatat(folder_fd, name, about, 0) == 0;
}

static off_t
bytes_of_both(int folder_fd, const struct stat *rounds)
{
    struct stat controls;
    return rounds->st_size + (facts(folder_fd, trace_tables[TABLE_CONTROLS].file, &controls) ? controls.st_size : 0);
}

void
growth_begin(struct growth *g, int folder_fd, uint64_t now_us)
{
    struct stat rounds, run;
    *g = (struct growth){.still_since = now_us};
    if (facts(folder_fd, trace_tables[TABLE_ROUNDS].file, &rounds)) {
        g->device = rounds.st_dev;
        g->rounds = rounds.st_ino;
        g->bytes = bytes_of_both(folder_fd, &rounds);
    }
    if (facts(folder_fd, RUN_JSON, &run)) {
        g->run = run.st_ino;
        g->run_bytes = run.st_size;
        g->written = platform_modified(&run);
    }
}

bool
growth_look(struct growth *g, int folder_fd, const char *folder, uint64_t now_us, bool *changed, struct err *err)
{
    struct stat rounds, run;
    *changed = false;
    if (!facts(folder_fd, trace_tables[TABLE_ROUNDS].file, &rounds) || !facts(folder_fd, RUN_JSON, &run))
        return err_set(err, ERR_WORK, "%s: the trace that was followed was deleted", folder);
    if (rounds.st_dev != g->device || rounds.st_ino != g->rounds)
        return err_set(err, ERR_WORK,
                       "%s: another trace has been put in the place of the one that was followed; open it anew",
                       folder);
    const off_t bytes = bytes_of_both(folder_fd, &rounds);
    if (bytes < g->bytes)
        return err_set(err, ERR_WORK, "%s: the trace that was followed was cut, perhaps by another run; open it anew",
                       folder);
    *changed = run.st_ino != g->run || run.st_size != g->run_bytes ||
               platform_modified(&run).tv_sec != g->written.tv_sec ||
               platform_modified(&run).tv_nsec != g->written.tv_nsec;
    if (bytes > g->bytes || *changed)
        g->still_since = now_us;
    g->bytes = bytes;
    g->run = run.st_ino;
    g->run_bytes = run.st_size;
    g->written = platform_modified(&run);
    return true;
}
