#include "traces/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "traces/run_json.h"
#include "traces/table_file.h"
#include "traces/trace_folder.h"
#include "traces/verdict_queue.h"

#define LONGEST_US ((uint64_t)1 << 62) /* where the time line stops growing */

struct span { /* a run on the time line */
    uint32_t run;
    uint64_t start_us, duration_us;
};

struct trace_reader {
    char *folder;
    int fd;
    struct run_info info;
    uint64_t closed_event; /* 0: not closed cleanly */
    uint64_t last_event;   /* nothing beyond is handed out */
    uint64_t rounds;
    struct span *spans; /* (n_spans) by ascending run */
    size_t n_spans, max_spans;
    uint64_t duration_us; /* of all of them */

    struct table_file tables[TABLES];
    struct table_file *used; /* the table whose event was handed out: read on before the next */
    uint64_t number;         /* of the last event handed out */
    uint32_t run, round;
    bool round_ended; /* the last ROUND event was its round's last line */
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
    const bool ok = run_json_parse(name, text, n, &r->info, &r->closed_event, err);
    free(text);
    return ok;
}

/* Runs are never interleaved, and their events carry their number. */
static bool
check_run(const struct table_file *t, uint32_t run, struct err *err)
{
    return t->event.run >= run || table_refuse(t, "run", "goes back to an earlier run", err);
}

static struct span *
add_span(struct trace_reader *r, uint32_t run)
{
    if (r->n_spans == r->max_spans) {
        size_t max = 2 * r->max_spans + 16;
        struct span *spans = realloc(r->spans, max * sizeof *spans);
        if (spans == NULL)
            return NULL;
        r->spans = spans;
        r->max_spans = max;
    }
    struct span *span = &r->spans[r->n_spans++];
    *span = (struct span){.run = run, .start_us = r->duration_us < LONGEST_US ? r->duration_us : LONGEST_US};
    return span;
}

static bool
extend_span(struct trace_reader *r, struct span **span, const struct event *e, struct err *err)
{
    if (*span == NULL || e->run != (*span)->run)
        *span = add_span(r, e->run);
    if (*span == NULL)
        return err_set(err, ERR_WORK, "out of memory for the runs of %s", r->folder);
    if (e->t_us > (*span)->duration_us)
        (*span)->duration_us = e->t_us;
    r->duration_us = (*span)->start_us + (*span)->duration_us;
    return true;
}

/* Sequences of a batch have their lines under the same number. */
static bool
same_round(const struct event *before, const struct event *e)
{
    return before->number > 0 && before->run == e->run && before->round == e->round && before->seq != e->seq;
}

/* Where the trace ends, how many rounds it has, and how long each run took. Every run begins with a control, and ends
 * with a round or a control. */
static bool
survey(struct trace_reader *r, struct err *err)
{
    struct table_file *rounds = &r->tables[TABLE_ROUNDS], *controls = &r->tables[TABLE_CONTROLS];
    struct event last_round = {.number = 0};
    r->last_event = r->closed_event > 0 ? r->closed_event : UINT64_MAX;
    for (;;) {
        if (!table_next(rounds, &r->info, r->last_event, err))
            return false;
        if (!rounds->more)
            break;
        r->rounds += !same_round(&last_round, &rounds->event);
        last_round = rounds->event;
    }
    if (r->closed_event == 0)
        r->last_event = last_round.number;
    if (!table_rewind(rounds, err) || !table_next(rounds, &r->info, r->last_event, err) ||
        !table_next(controls, &r->info, r->last_event, err))
        return false;
    uint32_t run = 0;
    struct span *span = NULL;
    while (rounds->more || controls->more) {
        struct table_file *t =
            !controls->more || (rounds->more && rounds->event.number < controls->event.number) ? rounds : controls;
        if (!check_run(t, run, err) || !extend_span(r, &span, &t->event, err))
            return false;
        run = t->event.run;
        if (!table_next(t, &r->info, r->last_event, err))
            return false;
    }
    return true;
}

static bool
open_trace(struct trace_reader *r, struct err *err)
{
    r->fd = open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->fd < 0)
        return err_set(err, ERR_WORK, "cannot open the trace %s: %s", r->folder, strerror(errno));
    if (!read_run_json(r, err))
        return false;
    for (unsigned i = 0; i < TABLES; i++)
        if (!table_open(&r->tables[i], r->fd, r->folder, (enum table_id)i, err))
            return false;
    return survey(r, err) && trace_reader_rewind(r, err);
}

bool
trace_reader_open(struct trace_reader **out, const char *folder, struct err *err)
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
    free(r->spans);
    free(r->folder);
    free(r);
}

const struct run_info *
trace_reader_info(const struct trace_reader *r)
{
    return &r->info;
}

uint64_t
trace_reader_rounds(const struct trace_reader *r)
{
    return r->rounds;
}

bool
trace_reader_round_ended(const struct trace_reader *r)
{
    return r->round_ended;
}

bool
trace_reader_closed(const struct trace_reader *r)
{
    return r->closed_event > 0;
}

uint64_t
trace_reader_duration_us(const struct trace_reader *r)
{
    return r->duration_us;
}

uint64_t
trace_reader_time(const struct trace_reader *r, const struct event *e)
{
    size_t low = 0, high = r->n_spans; /* the first run after e's */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->spans[middle].run <= e->run)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0;
    const struct span *span = &r->spans[low - 1];
    return span->start_us + (e->run == span->run && e->t_us < span->duration_us ? e->t_us : span->duration_us);
}

bool
trace_reader_rewind(struct trace_reader *r, struct err *err)
{
    r->failure.kind = ERR_NONE;
    r->used = NULL;
    r->number = 0;
    r->run = r->round = 0;
    verdict_queue_begin(&r->verdicts);
    for (unsigned i = 0; i < TABLES; i++)
        if (!table_rewind(&r->tables[i], &r->failure) ||
            !table_next(&r->tables[i], &r->info, r->last_event, &r->failure)) {
            if (err != NULL)
                *err = r->failure;
            return false;
        }
    return true;
}

/* ---- reading ---- */

static bool
hand_out(struct trace_reader *r, struct table_file *t, struct event *out)
{
    *out = t->event;
    if (out->type == EVENT_VOCAB)
        out->round = r->round; /* has no such column */
    if (out->type == EVENT_CONTROL && strcmp(out->control.name, "policy") == 0 &&
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

/* The table whose event comes first; of_sequence: vocabulary and controls, which concern all sequences, aside. */
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

static bool
next_event(struct trace_reader *r, struct event *out)
{
    if (r->used != NULL && !table_next(r->used, &r->info, r->last_event, &r->failure))
        return false;
    r->used = NULL;
    const struct table_file *of_sequence = first_table(r, true);
    struct table_file *first = first_table(r, false);
    const struct event *next = first != NULL ? &first->event : NULL;
    if (verdict_queue_due(&r->verdicts, r->number, next, of_sequence != NULL ? &of_sequence->event : NULL)) {
        verdict_queue_next(&r->verdicts, r->number, next, out);
    } else {
        if (first == NULL)
            return false;
        if (first->event.number <= r->number)
            return table_refuse(first, "event", "has a number that another file has too", &r->failure);
        if (!check_run(first, r->run, &r->failure) || !hand_out(r, first, out))
            return false;
        r->used = first;
    }
    r->number = out->number;
    r->run = out->run;
    r->round = out->round;
    if (out->type == EVENT_ROUND) { /* nothing in it points into the table; a failure is the next call's */
        r->used = NULL;
        r->round_ended =
            !table_next(first, &r->info, r->last_event, &r->failure) || !first->more || !same_round(out, &first->event);
    }
    return true;
}

bool
trace_reader_next(struct trace_reader *r, struct event *out, struct err *err)
{
    bool ok = r->failure.kind == ERR_NONE && next_event(r, out);
    if (!ok && err != NULL)
        *err = r->failure;
    return ok;
}
