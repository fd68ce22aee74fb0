/* The writer's thread converts the log's events to lines and commits them from time to time: first all other tables,
 * then controls.csv, then rounds.csv. So all lines of a round are on disk before its line in rounds.csv, and all lines
 * of a run before its end. */
#include "traces/writer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file_replace.h"
#include "base/platform.h"
#include "base/plural.h"
#include "traces/run_json.h"
#include "traces/table_file.h"
#include "traces/trace_folder.h"
#include "traces/verdicts.h"

#define COMMIT_BYTES ((size_t)256 << 10) /* lines in memory that cause a commit */
#define POLL_US      20000               /* between reads of the log while it grows */
#define IDLE_US      50000               /* and while it does not: cheaper than a wake for every event */

/* The limits of a trace. A full trace ends after a complete round, so the writer stores the lengths of the tables
 * there. */
struct bounds_mark { /* the lengths after an event */
    uint64_t event, rounds;
    size_t used[TABLES];    /* of the lines in memory; 0: they were written since */
    uint64_t lines[TABLES]; /* of each table up to there */
};

struct bounds {
    struct trace_bounds of;
    uint64_t bytes; /* of all files, including lines in memory */
    struct bounds_mark last,
        whole;           /* after the last ROUND line, and after the last round that is complete for all sequences */
    uint32_t run, round; /* of the last ROUND line */
};

struct trace_writer {
    char *folder;
    int fd;
    char *run_json;
    struct table_out tables[TABLES];
    struct event_log *log;
    struct event_reader *reader; /* the thread's */
    struct draft_queue queue;    /* the thread's */
    uint64_t seen;               /* number of the last event read; the thread's */
    uint64_t rounds;             /* complete rounds written; the thread's */
    uint64_t pending;            /* complete rounds in memory */
    bool single;                 /* the run has one sequence */
    bool between_rounds;         /* the events read end at a complete round, `ended_round`; the thread's */
    uint32_t ended_round;
    struct bounds bounds; /* the thread's */

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* wakes the thread */
    pthread_cond_t done; /* wakes those that wait for the thread */
    uint64_t committed;  /* number of the last event written; under the lock */
    uint64_t wanted;     /* number of the event that a caller waits for */
    bool closing, stopped;

    pthread_mutex_t files; /* held while the files are written or copied */
    struct trace_end end;  /* of the files; closed_event 0: they end within a round; under `files` */

    struct err trouble; /* written once, before troubled is set */
    atomic_bool troubled;
};

/* ---- bounds ---- */

static bool
bounds_leave_out(const struct bounds *b, const struct event *e)
{
    if ((e->type != EVENT_LAYER && e->type != EVENT_EXPERTS) || b->of.layers == TRACE_LAYERS_ALL)
        return false;
    if (b->of.layers == TRACE_LAYERS_OFF)
        return true;
    return (e->type == EVENT_EXPERTS || e->layer.probed_by == PROBED_SCOPE) &&
           (b->of.every == 0 || e->round % b->of.every != 0);
}

static void
mark(struct bounds_mark *m, uint64_t event, const struct table_out *tables, uint64_t rounds)
{
    m->event = event;
    m->rounds = rounds;
    for (unsigned i = 0; i < TABLES; i++) {
        m->used[i] = tables[i].used;
        m->lines[i] = tables[i].n_lines;
    }
}

/* Call it before the event's line: marks the end of a complete round. */
static void
bounds_before(struct bounds *b, const struct event *e, const struct table_out tables[TABLES], uint64_t rounds)
{
    if (e->type == EVENT_ROUND && (e->run != b->run || e->round != b->round))
        b->whole = b->last;
    else if (e->type == EVENT_CONTROL && e->control.kind == RECORDED_RUN)
        mark(&b->whole, e->number - 1, tables, rounds);
}

/* Call it after the event's line, with its number of bytes. Returns false if the trace is full. */
static bool
bounds_behind(struct bounds *b, const struct event *e, size_t bytes, const struct table_out tables[TABLES],
              uint64_t rounds)
{
    b->bytes += bytes;
    if (b->of.bytes > 0 && b->bytes > b->of.bytes)
        return false;
    if (e->type == EVENT_ROUND) {
        b->run = e->run;
        b->round = e->round;
        mark(&b->last, e->number, tables, rounds);
    }
    return true;
}

/* Call it after all lines are written. */
static void
bounds_written(struct bounds *b)
{
    memset(b->last.used, 0, sizeof b->last.used);
    memset(b->whole.used, 0, sizeof b->whole.used);
}

/* ---- the thread ---- */

static bool
put_run_json(const struct trace_writer *w, const char *text, struct err *err)
{
    return file_replace_text(w->fd, RUN_JSON, 0666, text, strlen(text), err);
}

static bool
stop_trace(struct trace_writer *w, const char *why)
{
    if (!atomic_load(&w->troubled)) {
        err_set(&w->trouble, ERR_WORK,
                "the trace %s stopped after %llu round%s and the run continues; the trace can be replayed so far: %s",
                w->folder, (unsigned long long)w->rounds, plural(w->rounds), why);
        atomic_store(&w->troubled, true);
    }
    return false;
}

static bool
commit(struct trace_writer *w)
{
    static const enum table_id order[TABLES] = {TABLE_TOKENS, TABLE_LAYERS,   TABLE_EXPERTS, TABLE_SERIES,
                                                TABLE_VOCAB,  TABLE_CONTROLS, TABLE_ROUNDS};
    struct err why;
    bool ok = true;
    pthread_mutex_lock(&w->files);
    for (unsigned i = 0; i < TABLES && ok; i++)
        ok = table_out_write(&w->tables[order[i]], &why);
    w->end.closed_event = w->between_rounds ? w->seen : 0;
    for (unsigned i = 0; i < TABLES; i++)
        w->end.lines[i] = w->tables[i].table != NULL ? w->tables[i].n_lines : LINES_NOT_SAID;
    pthread_mutex_unlock(&w->files);
    if (!ok)
        return stop_trace(w, why.text);
    w->rounds += w->pending;
    w->pending = 0;
    bounds_written(&w->bounds);
    return !table_out_deleted(&w->tables[TABLE_ROUNDS]) || stop_trace(w, "its folder was deleted");
}

/* Closes the trace: writes its end and the tables' lengths to run.json. */
static bool
close_run_json(struct trace_writer *w, const struct bounds_mark *last, bool cut, struct err *err)
{
    struct trace_end end = {.closed_event = last->event};
    char *closed = NULL;
    for (unsigned i = 0; i < TABLES; i++)
        end.lines[i] = w->tables[i].table != NULL ? last->lines[i] : LINES_NOT_SAID;
    const bool ok = run_json_close(w->run_json, &end, cut, &closed, err) && put_run_json(w, closed, err);
    free(closed);
    return ok;
}

/* Closes a full trace after its last complete round. */
static bool
end_full(struct trace_writer *w)
{
    const struct bounds_mark end = w->bounds.whole;
    struct err why;
    for (unsigned i = 0; i < TABLES; i++)
        w->tables[i].used = end.used[i];
    if (!commit(w))
        return false;
    if (!close_run_json(w, &end, true, &why))
        return stop_trace(w, why.text);
    err_set(&w->trouble, ERR_CANCELLED,
            "the trace %s has reached the size of --trace-max: it ends after %llu round%s, and the run continues",
            w->folder, (unsigned long long)end.rounds, plural(end.rounds));
    atomic_store(&w->troubled, true);
    return false;
}

static bool
write_line(struct trace_writer *w, const struct event *e)
{
    struct err why;
    struct table_out *t = &w->tables[table_of(e->type)];
    const size_t before = t->used;
    if (t->table == NULL || bounds_leave_out(&w->bounds, e))
        return true;
    bounds_before(&w->bounds, e, w->tables, w->rounds + w->pending);
    if (!table_out_line(t, e, &why))
        return stop_trace(w, why.text);
    w->pending += e->type == EVENT_ROUND;
    if (!bounds_behind(&w->bounds, e, t->used - before, w->tables, w->rounds + w->pending))
        return end_full(w);
    return t->used < COMMIT_BYTES || commit(w);
}

static bool
write_ready(struct trace_writer *w)
{
    const struct event *e;
    while ((e = draft_queue_next(&w->queue)) != NULL)
        if (!write_line(w, e))
            return false;
    return true;
}

static bool
queue(struct trace_writer *w, const struct event *e, bool ready)
{
    const char *why = draft_queue_add(&w->queue, e, ready);
    return why == NULL ? write_ready(w) : stop_trace(w, why);
}

static bool
add_event(struct trace_writer *w, const struct event *e)
{
    w->seen = e->number;
    if (e->type == EVENT_ROUND || (e->type == EVENT_CONTROL && e->control.kind == RECORDED_END)) {
        w->between_rounds = w->single || e->type == EVENT_CONTROL;
        w->ended_round = e->round;
    } else if (e->type != EVENT_VOCAB && e->type != EVENT_CONTROL && e->round != w->ended_round) {
        /* the scope's probes begin no round: while an engine waits it probes positions that it left out */
        w->between_rounds = w->between_rounds && e->type == EVENT_LAYER && e->layer.probed_by == PROBED_SCOPE;
    }
    switch (e->type) {
    case EVENT_TOKEN: return queue(w, e, e->token.source != SOURCE_DRAFT);
    case EVENT_VERDICT: draft_queue_verdict(&w->queue, e); return write_ready(w);
    case EVENT_ROUND: draft_queue_end(&w->queue, e); return queue(w, e, true);
    case EVENT_CONTROL:
        if (e->control.kind == RECORDED_RUN)
            draft_queue_end(&w->queue, e);
        return write_ready(w) && write_line(w, e);
    case EVENT_LAYER:
    case EVENT_EXPERTS:
    case EVENT_SERIES:
    case EVENT_VOCAB: return write_line(w, e);
    default: return true; /* progress is not recorded */
    }
}

/* Writes all events of the log; false: it has stopped. */
static bool
drain(struct trace_writer *w)
{
    const struct event *e;
    while ((e = event_reader_next(w->reader)) != NULL) {
        if (event_reader_lost(w->reader) > 0) {
            char why[120];
            snprintf(why, sizeof why, "the disk is too slow for it, %llu event%s lost",
                     (unsigned long long)event_reader_lost(w->reader),
                     event_reader_lost(w->reader) == 1 ? " was" : "s were");
            commit(w); /* the lines before it */
            return stop_trace(w, why);
        }
        if (!add_event(w, e))
            return false;
    }
    return commit(w);
}

static void *
writer_thread(void *user)
{
    struct trace_writer *w = user;
    bool ok = true, finished = false;
    while (ok && !finished) {
        uint64_t before = w->seen;
        ok = drain(w);
        pthread_mutex_lock(&w->lock);
        w->committed = w->seen;
        pthread_cond_broadcast(&w->done);
        finished = w->closing && w->committed >= w->wanted;
        if (ok && !finished && w->committed >= w->wanted)
            platform_condition_wait(&w->wake, &w->lock, clock_us() + (w->seen == before ? IDLE_US : POLL_US));
        pthread_mutex_unlock(&w->lock);
    }
    event_reader_close(w->reader); /* a stopped trace must not keep the log's chunks */
    pthread_mutex_lock(&w->lock);
    w->stopped = true;
    pthread_cond_broadcast(&w->done);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- opening and closing ---- */

/* run.json comes last, because a folder without it is no trace. */
static bool
put_files(struct trace_writer *w, bool moe, struct err *err)
{
    bool ok = true;
    for (unsigned i = 0; ok && i < TABLES; i++)
        ok = (trace_tables[i].of_moe && !moe) ||
             (table_out_open(&w->tables[i], w->fd, (enum table_id)i, moe, err) &&
              (w->bounds.bytes += w->tables[i].used) > 0 && table_out_write(&w->tables[i], err));
    if (ok && put_run_json(w, w->run_json, err))
        return true;
    for (unsigned i = 0; i < TABLES; i++) /* remove the files, so that a second try can succeed */
        if (w->tables[i].table != NULL && w->tables[i].fd >= 0)
            unlinkat(w->fd, w->tables[i].table->file, 0);
    return false;
}

static bool
set_up(struct trace_writer *w, const struct run_info *run, struct err *err)
{
    struct run_info within = *run;
    within.trace = w->bounds.of;
    if (!run_json_print(&within, &w->run_json, err) || !trace_folder_make(w->folder, err) ||
        !trace_folder_open(&w->fd, w->folder, err))
        return false;
    struct err why;
    w->bounds.bytes = strlen(w->run_json) + RUN_JSON_END;
    if (!put_files(w, run->experts > 0, &why))
        return err_set(err, ERR_WORK, "cannot write a trace into %s: %s", w->folder, why.text);
    w->reader = event_reader_open(w->log);
    if (w->reader == NULL)
        return err_set(err, ERR_WORK, "out of memory for the trace");
    int rc = pthread_create(&w->thread, NULL, writer_thread, w);
    if (rc != 0) {
        event_reader_close(w->reader);
        return err_set(err, ERR_WORK, "no thread to write the trace: %s; too little memory, or too many processes?",
                       strerror(rc));
    }
    return true;
}

static void
writer_free(struct trace_writer *w)
{
    for (unsigned i = 0; i < TABLES; i++)
        table_out_close(&w->tables[i]);
    if (w->fd >= 0)
        close(w->fd);
    pthread_cond_destroy(&w->wake);
    pthread_cond_destroy(&w->done);
    pthread_mutex_destroy(&w->lock);
    pthread_mutex_destroy(&w->files);
    draft_queue_free(&w->queue);
    free(w->run_json);
    free(w->folder);
    free(w);
}

bool
trace_writer_open(struct trace_writer **out, const char *folder, const struct trace_bounds *bounds,
                  const struct run_info *run, struct event_log *log, struct err *err)
{
    *out = NULL;
    if (folder[0] == '\0')
        return err_set(err, ERR_USAGE, "a trace needs the name of a folder");
    struct trace_writer *w = calloc(1, sizeof *w);
    if (w != NULL)
        w->folder = strdup(folder);
    if (w == NULL || w->folder == NULL) {
        free(w);
        return err_set(err, ERR_WORK, "out of memory for the trace");
    }
    w->fd = -1;
    w->log = log;
    w->bounds.of = bounds != NULL ? *bounds : (struct trace_bounds){0};
    w->single = run->sequences <= 1;
    platform_condition_open(&w->wake);
    pthread_cond_init(&w->done, NULL);
    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_init(&w->files, NULL);
    sigset_t before;
    trace_signals_block(&before);
    bool ok = set_up(w, run, err);
    trace_signals_restore(&before);
    if (!ok) {
        writer_free(w);
        return false;
    }
    *out = w;
    return true;
}

const char *
trace_writer_trouble(const struct trace_writer *w)
{
    return atomic_load(&w->troubled) ? w->trouble.text : NULL;
}

static void
wait_for(struct trace_writer *w, uint64_t number)
{
    if (number > w->wanted)
        w->wanted = number;
    pthread_cond_signal(&w->wake);
    while (!w->stopped && w->committed < number)
        pthread_cond_wait(&w->done, &w->lock);
}

void
trace_writer_flush(struct trace_writer *w)
{
    pthread_mutex_lock(&w->lock);
    wait_for(w, event_log_last(w->log));
    pthread_mutex_unlock(&w->lock);
}

bool
trace_writer_copy(struct trace_writer *w, const char *to, struct err *err)
{
    char *closed = NULL;
    trace_writer_flush(w);
    pthread_mutex_lock(&w->files);
    const bool close = w->end.closed_event > 0 && !atomic_load(&w->troubled);
    const bool ok =
        (!close || run_json_close(w->run_json, &w->end, false, &closed, err)) && trace_copy(w->folder, to, closed, err);
    pthread_mutex_unlock(&w->files);
    free(closed);
    return ok;
}

bool
trace_writer_close(struct trace_writer *w, struct err *err)
{
    if (w == NULL)
        return true;
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    wait_for(w, event_log_last(w->log));
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);

    bool ok = !atomic_load(&w->troubled);
    if (!ok) {
        if (err != NULL)
            *err = w->trouble;
    } else if (w->seen > 0) {
        struct err why;
        sigset_t before;
        trace_signals_block(&before);
        struct bounds_mark last = {.event = w->seen};
        for (unsigned i = 0; i < TABLES; i++)
            last.lines[i] = w->tables[i].n_lines;
        ok = close_run_json(w, &last, false, &why);
        trace_signals_restore(&before);
        if (!ok)
            err_set(err, ERR_WORK, "the trace %s could not be closed, but it replays up to its last round: %s",
                    w->folder, why.text);
    }
    writer_free(w);
    return ok;
}
