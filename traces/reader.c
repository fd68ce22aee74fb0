#include "traces/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array_grow.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/platform.h"
#include "traces/run_json.h"
#include "traces/schema.h"
#include "traces/table_file.h"
#include "traces/trace_folder.h"
#include "traces/verdicts.h"

struct survey {
    struct table_file rounds, controls;
    uint64_t
        last_event; /* events after it must not be returned yet: they are in an incomplete round, or after the trace's end */
    uint64_t n_rounds; /* the lines of all sequences with one number are one round */
    uint64_t duration_us;
    /* used by the survey only */
    struct event last_round;
    uint64_t candidate; /* the end of a round for which lines of other sequences may still be missing */
    struct span *spans; /* (n_spans) by ascending run */
    size_t n_spans, max_spans;
    uint32_t run;
};

/* The files of a trace that another process may write: whether they grow, and whether they were replaced. */
struct growth {
    dev_t device;
    ino_t rounds; /* the file rounds.csv */
    struct timespec written;
    off_t bytes,
        run_bytes; /* sizes of rounds.csv and controls.csv together, and of run.json; `written` and `run` also belong to run.json */
    ino_t run;
    uint64_t still_since; /* time of the last growth */
};

#define LONGEST_US ((uint64_t)1 << 62) /* the longest time line */

struct span { /* a run on the time line */
    uint32_t run;
    uint64_t start_us, duration_us;
};

static bool
survey_open(struct survey *s, int folder_fd, const char *folder, struct err *err)
{
    *s = (struct survey){.rounds.fd = -1, .controls.fd = -1};
    return table_open(&s->rounds, folder_fd, folder, TABLE_ROUNDS, err) &&
           table_open(&s->controls, folder_fd, folder, TABLE_CONTROLS, err);
}

static void
survey_close(struct survey *s)
{
    table_close(&s->rounds);
    table_close(&s->controls);
    free(s->spans);
}

/* True if both are ROUND events of one round, of different sequences. */
static bool
survey_same_round(const struct event *before, const struct event *e)
{
    return before->number > 0 && before->run == e->run && before->round == e->round && before->seq != e->seq;
}

/* ---- runs on the time line ---- */

static struct span *
add_span(struct survey *s, uint32_t run)
{
    if (!array_grow(&s->spans, &s->max_spans, s->n_spans + 1, sizeof *s->spans))
        return NULL;
    struct span *span = &s->spans[s->n_spans++];
    *span = (struct span){.run = run, .start_us = s->duration_us < LONGEST_US ? s->duration_us : LONGEST_US};
    return span;
}

/* Reads the next line of rounds and controls. */
static bool
add_line(struct survey *s, const struct table_file *t, struct err *err)
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

/* ---- continuing ---- */

/* take_ends: allows the events after the last complete round, up to the last `end` of a run. */
static bool
read_controls(struct survey *s, const struct run_info *run, uint64_t last, bool take_ends, struct err *err)
{
    for (;;) {
        if (!table_next(&s->controls, run, last, err))
            return false;
        if (!s->controls.more)
            return true;
        if (!add_line(s, &s->controls, err))
            return false;
        if (take_ends && s->controls.event.control.kind == RECORDED_END)
            s->last_event = s->controls.event.number;
    }
}

/* Continues the survey. closed: the last event of a closed trace; 0: it may grow, or was never closed. growing: a
 * round is complete only if no other sequence can still add a line to it. */
static bool
survey_continue(struct survey *s, const struct run_info *run, uint64_t closed, bool growing, struct err *err)
{
    const bool others = growing && closed == 0 && run->sequences > 1;
    for (;;) {
        if (!table_next(&s->rounds, run, closed > 0 ? closed : UINT64_MAX, err))
            return false;
        if (!s->rounds.more)
            break;
        const struct event *e = &s->rounds.event;
        const bool same = survey_same_round(&s->last_round, e);
        if (!read_controls(s, run, e->number, false, err) || !add_line(s, &s->rounds, err))
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
    return read_controls(s, run, s->last_event, false, err);
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

static void
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

/* Checks the files. *changed: run.json was replaced or has grown. Fails if rounds.csv was replaced or shortened,
 * because the lines read so far are then invalid. */
static bool
growth_look(struct growth *g, int folder_fd, const char *folder, uint64_t now_us, bool *changed, struct err *err)
{
    struct stat rounds, run;
    *changed = false;
    const bool there = facts(folder_fd, trace_tables[TABLE_ROUNDS].file, &rounds) && facts(folder_fd, RUN_JSON, &run);
    const off_t bytes = there ? bytes_of_both(folder_fd, &rounds) : 0;
    if (!there || rounds.st_dev != g->device || rounds.st_ino != g->rounds || bytes < g->bytes)
        return err_set(err, ERR_WORK, "%s: the followed trace was deleted, replaced or cut; open it anew", folder);
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

struct trace_reader {
    char *folder;
    int fd;
    struct run_info info;
    struct trace_end end; /* from run.json */
    struct survey survey;
    bool growing; /* another process may write it */
    struct growth growth;

    struct table_file tables[TABLES];
    bool brief;              /* LAYER, EXPERTS and SERIES events are skipped */
    struct table_file *used; /* the table of the last returned event; its next line is read with the next call */
    uint64_t number;         /* of the last returned event */
    uint32_t run, round;
    bool round_ended; /* the last ROUND event was the last of its round */
    struct verdict_queue verdicts;
    struct err failure;
};

/* ---- opening ---- */

static bool
read_run_json(struct trace_reader *r, struct err *err)
{
    char name[300], *text;
    size_t n;
    struct err why;
    if (!trace_folder_run_json(r->folder, &text, &n, &why))
        return err_set(err, ERR_WORK, "%s is no trace: %s", r->folder, why.text);
    snprintf(name, sizeof name, "%s/" RUN_JSON, r->folder);
    const bool ok = run_json_parse(name, text, n, &r->info, &r->end, err);
    free(text);
    return ok;
}

/* Reads run.json again, which is replaced when a growing trace is closed. */
static bool
look_for_close(struct trace_reader *r, struct err *err)
{
    char *text;
    size_t n;
    struct trace_end end;
    struct run_info now;
    if (!trace_folder_run_json(r->folder, &text, &n, err))
        return false;
    const bool ok = run_json_parse(RUN_JSON, text, n, &now, &end, err);
    free(text);
    if (!ok)
        return false;
    const bool same = strcmp(now.started, r->info.started) == 0 && now.model_hash == r->info.model_hash &&
                      now.layers == r->info.layers && now.vocab == r->info.vocab;
    run_info_free(&now);
    if (same) {
        r->end = end;
        r->info.cut = now.cut;
    }
    return same || err_set(err, ERR_WORK, "%s: another run is being written there; open it anew", r->folder);
}

static bool
open_trace(struct trace_reader *r, struct err *err)
{
    r->fd = open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->fd < 0)
        return err_set(err, ERR_WORK, "cannot open the trace %s: %s", r->folder, strerror(errno));
    if (!read_run_json(r, err))
        return false;
    growth_begin(&r->growth, r->fd, clock_us());
    for (unsigned i = 0; i < TABLES; i++)
        if (!table_open(&r->tables[i], r->fd, r->folder, (enum table_id)i, err))
            return false;
    return survey_open(&r->survey, r->fd, r->folder, err) &&
           survey_continue(&r->survey, &r->info, r->end.closed_event, r->growing, err) &&
           trace_reader_rewind(r, false, err);
}

bool
trace_reader_open(struct trace_reader **out, const char *folder, bool growing, struct err *err)
{
    *out = NULL;
    struct trace_reader *r = calloc(1, sizeof *r);
    if (r != NULL)
        r->folder = strdup(folder);
    if (r == NULL || r->folder == NULL) {
        free(r);
        return err_set(err, ERR_WORK, "out of memory for reading %s", folder);
    }
    for (unsigned i = 0; i < TABLES; i++)
        r->tables[i].fd = -1;
    r->fd = r->survey.rounds.fd = r->survey.controls.fd = -1;
    r->growing = growing;
    if (!open_trace(r, err)) {
        trace_reader_close(r);
        return false;
    }
    *out = r;
    return true;
}

void
trace_reader_close(struct trace_reader *r)
{
    if (r == NULL)
        return;
    for (unsigned i = 0; i < TABLES; i++)
        table_close(&r->tables[i]);
    if (r->fd >= 0)
        close(r->fd);
    run_info_free(&r->info);
    verdict_queue_free(&r->verdicts);
    survey_close(&r->survey);
    free(r->folder);
    free(r);
}

const struct run_info *
trace_reader_info(const struct trace_reader *r)
{
    return &r->info;
}

struct trace_state
trace_reader_state(const struct trace_reader *r)
{
    return (struct trace_state){.rounds = r->survey.n_rounds,
                                .duration_us = r->survey.duration_us,
                                .closed = r->end.closed_event > 0,
                                .round_ended = r->round_ended};
}

uint64_t
trace_reader_time(const struct trace_reader *r, const struct event *e)
{
    const struct survey *s = &r->survey;
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

static bool
passes_over(const struct trace_reader *r, unsigned table)
{
    return r->brief && (table == TABLE_LAYERS || table == TABLE_EXPERTS || table == TABLE_SERIES);
}

bool
trace_reader_rewind(struct trace_reader *r, bool brief, struct err *err)
{
    r->brief = brief;
    r->failure.kind = ERR_NONE;
    r->used = NULL;
    r->number = 0;
    r->run = r->round = 0;
    verdict_queue_begin(&r->verdicts);
    for (unsigned i = 0; i < TABLES; i++) {
        r->tables[i].more = false;
        if (passes_over(r, i))
            continue;
        if (!table_rewind(&r->tables[i], &r->failure) ||
            !table_next(&r->tables[i], &r->info, r->survey.last_event, &r->failure))
            return err_copy(err, &r->failure);
    }
    return true;
}

/* ---- growing ---- */

#define STILL_US 1000000 /* a run's end is returned if no event has followed it for this time */

static bool
look_at_tables(struct trace_reader *r, uint64_t now_us, struct err *err)
{
    bool changed;
    if (!growth_look(&r->growth, r->fd, r->folder, now_us, &changed, err) || (changed && !look_for_close(r, err)) ||
        !survey_continue(&r->survey, &r->info, r->end.closed_event, true, err))
        return false;
    if (r->end.closed_event == 0 && now_us - r->growth.still_since >= STILL_US &&
        !read_controls(&r->survey, &r->info, UINT64_MAX, true, err))
        return false;
    for (unsigned i = 0; i < TABLES; i++) /* a table with a line waits until it is returned */
        if (!r->tables[i].more && !table_next(&r->tables[i], &r->info, r->survey.last_event, err))
            return false;
    return true;
}

bool
trace_reader_look(struct trace_reader *r, uint64_t now_us, struct err *err)
{
    if (!r->growing || r->end.closed_event > 0 || r->failure.kind != ERR_NONE)
        return r->failure.kind == ERR_NONE;
    return look_at_tables(r, now_us, &r->failure) || err_copy(err, &r->failure);
}

/* ---- reading ---- */

static bool
hand_out(struct trace_reader *r, struct table_file *t, struct event *out)
{
    *out = t->event;
    if (out->type == EVENT_VOCAB)
        out->round = r->round; /* vocabulary has no such column */
    if (out->type == EVENT_CONTROL && out->control.kind == RECORDED_POLICY &&
        run_info_policy(&r->info, out->control.new_text) == NULL)
        return table_refuse(t, "new", "is no policy that run.json declares", &r->failure);
    if (out->type != EVENT_TOKEN || out->token.source != SOURCE_DRAFT)
        return true;
    const bool judged = out->token.accepted >= 0 || out->token.committed >= 0;
    const char *trouble = judged ? verdict_queue_add(&r->verdicts, out) : NULL;
    if (trouble != NULL)
        return table_refuse(t, "candidate", trouble, &r->failure);
    out->token.accepted = out->token.committed = -1;
    return true;
}

/* Returns the table of the next event; of_sequence: without vocabulary and controls, which concern all sequences. */
static struct table_file *
first_table(struct trace_reader *r, bool of_sequence)
{
    struct table_file *first = NULL;
    for (unsigned i = 0; i < TABLES; i++) {
        struct table_file *t = &r->tables[i];
        if (t->more && (first == NULL || t->event.number < first->event.number) &&
            !(of_sequence && (t->event.type == EVENT_VOCAB || t->event.type == EVENT_CONTROL)))
            first = t;
    }
    return first;
}

/* Checks, after the last event, whether all tables of a closed trace are as long as they were. */
static bool
is_as_closed(struct trace_reader *r)
{
    for (unsigned i = 0; i < TABLES; i++) {
        const struct table_file *t = &r->tables[i];
        const unsigned long long then = r->end.lines[i], now = t->n_events;
        const bool more = t->waits && !r->info.cut; /* a full trace had lines after its end */
        if (then == LINES_NOT_SAID || passes_over(r, i) || (now == then && !more))
            continue;
        return err_set(
            &r->failure, ERR_WORK,
            "%s/%s: has %s than the %llu lines that it had when the trace was closed; the other lines replay",
            r->folder, trace_tables[i].file, now < then ? "fewer" : "more", then);
    }
    return true;
}

static bool
next_event(struct trace_reader *r, struct event *out)
{
    if (r->used != NULL && !table_next(r->used, &r->info, r->survey.last_event, &r->failure))
        return false;
    r->used = NULL;
    const struct table_file *of_sequence = first_table(r, true);
    struct table_file *first = first_table(r, false);
    const struct event *next = first != NULL ? &first->event : NULL;
    if (verdict_queue_due(&r->verdicts, r->number, next, of_sequence != NULL ? &of_sequence->event : NULL)) {
        verdict_queue_next(&r->verdicts, r->number, next, out);
    } else {
        if (first == NULL) {
            is_as_closed(r);
            return false;
        }
        if (first->event.number <= r->number)
            return table_refuse(first, "event", "has a number that another file has too", &r->failure);
        if (first->event.run < r->run)
            return table_refuse(first, "run", "goes back to an earlier run", &r->failure);
        if (!hand_out(r, first, out))
            return false;
        r->used = first;
    }
    r->number = out->number;
    r->run = out->run;
    r->round = out->round;
    if (out->type == EVENT_ROUND) { /* it has no pointers into the table; the next call reports a failure */
        r->used = NULL;
        r->round_ended = !table_next(first, &r->info, r->survey.last_event, &r->failure) || !first->more ||
                         !survey_same_round(out, &first->event);
    }
    return true;
}

bool
trace_reader_next(struct trace_reader *r, struct event *out, struct err *err)
{
    return (r->failure.kind == ERR_NONE && next_event(r, out)) || err_copy(err, &r->failure);
}
