#include "traces/verdicts.h"

#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"

#define LINES_MOST ((size_t)1 << 16)

/* ---- writing ---- */

struct queued_line {
    struct event event;
    bool ready, dropped;
};

void
draft_queue_free(struct draft_queue *q)
{
    free(q->lines);
    *q = (struct draft_queue){0};
}

const char *
draft_queue_add(struct draft_queue *q, const struct event *e, bool ready)
{
    if (q->n == q->max && q->first > 0) {
        q->n -= q->first;
        memmove(q->lines, q->lines + q->first, q->n * sizeof *q->lines);
        q->first = 0;
    }
    if (q->n == q->max) {
        const size_t max = q->max == 0 ? 256 : 2 * q->max;
        if (max > LINES_MOST)
            return "too many drafts wait for their verdicts";
        struct queued_line *lines = realloc(q->lines, max * sizeof *lines);
        if (lines == NULL)
            return "out of memory";
        q->lines = lines;
        q->max = max;
    }
    q->lines[q->n++] = (struct queued_line){.event = *e, .ready = ready};
    return NULL;
}

static bool
same_round(const struct event *a, const struct event *b)
{
    return a->run == b->run && a->seq == b->seq && a->round == b->round;
}

void
draft_queue_verdict(struct draft_queue *q, const struct event *verdict)
{
    for (size_t i = q->n; i > q->first; i--) {
        struct queued_line *line = &q->lines[i - 1];
        if (line->ready || line->event.type != EVENT_TOKEN || !same_round(&line->event, verdict) ||
            line->event.token.candidate != verdict->verdict.candidate)
            continue;
        line->event.token.accepted = verdict->verdict.accepted;
        line->event.token.committed = verdict->verdict.committed;
        line->ready = true;
        return;
    }
}

void
draft_queue_end(struct draft_queue *q, const struct event *end)
{
    for (size_t i = q->first; i < q->n; i++) {
        struct queued_line *line = &q->lines[i];
        if (line->ready)
            continue;
        if (same_round(&line->event, end))
            line->ready = true;
        else if (line->event.run != end->run || (line->event.seq == end->seq && end->type == EVENT_ROUND))
            line->dropped = true;
    }
}

const struct event *
draft_queue_next(struct draft_queue *q)
{
    while (q->first < q->n && q->lines[q->first].dropped)
        q->first++;
    if (q->first < q->n && q->lines[q->first].ready)
        return &q->lines[q->first++].event;
    if (q->first == q->n)
        q->first = q->n = 0;
    return NULL;
}

/* ---- reading ---- */

void
verdict_queue_free(struct verdict_queue *q)
{
    free(q->lines);
    *q = (struct verdict_queue){0};
}

void
verdict_queue_begin(struct verdict_queue *q)
{
    q->first = q->n = q->due = 0;
}

const char *
verdict_queue_add(struct verdict_queue *q, const struct event *draft)
{
    size_t of_sequence = 0;
    for (size_t i = q->first; i < q->n; i++)
        of_sequence += q->lines[i].seq == draft->seq;
    if (of_sequence == VERIFY_NODES || q->n - q->first == LINES_MOST)
        return "has more drafts before it than a round can have";
    if (q->n == q->max && q->first > 0) {
        q->n -= q->first;
        memmove(q->lines, q->lines + q->first, q->n * sizeof *q->lines);
        q->first = 0;
    }
    if (!array_grow(&q->lines, &q->max, q->n + 1, sizeof *q->lines))
        return "has more drafts before it than fit into memory";
    q->lines[q->n++] = *draft;
    return NULL;
}

/* Moves the lines of sequence `seq` after `from` to `from`; returns the index of the first line of the other
 * sequences. */
static size_t
gather(struct verdict_queue *q, size_t from, uint32_t seq)
{
    for (size_t i = from; i < q->n; i++) {
        if (q->lines[i].seq != seq)
            continue;
        const struct event line = q->lines[i];
        memmove(&q->lines[from + 1], &q->lines[from], (i - from) * sizeof line);
        q->lines[from++] = line;
    }
    return from;
}

/* Returns where the verdicts due begin. Sequences follow in the order of their first drafts; the number of missing
 * event numbers determines how many verdicts are due. */
static size_t
due_from(struct verdict_queue *q, size_t at, uint64_t missing)
{
    while (at < q->n) {
        const size_t next = gather(q, at, q->lines[at].seq);
        if (next - at > missing)
            break;
        missing -= next - at;
        at = next;
    }
    return at;
}

/* Must the event follow the verdict on that draft? */
static bool
follows(const struct event *e, const struct event *draft)
{
    return e->type == EVENT_ROUND ||
           (e->type == EVENT_TOKEN && (e->token.source != SOURCE_DRAFT || e->round != draft->round));
}

bool
verdict_queue_due(struct verdict_queue *q, uint64_t last, const struct event *next, const struct event *whose)
{
    const size_t waiting = q->n - q->first;
    if (q->due > 0 || waiting == 0)
        return q->due > 0;
    if (next == NULL || next->run != q->lines[q->first].run || next->number > last + waiting)
        q->due = due_from(q, q->first, waiting) - q->first;
    if (q->due > 0)
        return true;
    size_t own = 0;
    bool must = false;
    for (size_t i = q->first; i < q->n && whose != NULL; i++)
        if (q->lines[i].seq == whose->seq) {
            own++;
            must = next == whose && follows(next, &q->lines[i]);
        }
    if (own == 0 || !(must || next->number > last + own))
        return false;
    const uint64_t missing = next->number > last ? next->number - last - 1 : 0;
    size_t at = q->first;
    if (missing > own && q->lines[at].seq != whose->seq)
        at = due_from(q, at, missing - own);
    q->due = gather(q, at, whose->seq) - q->first;
    return true;
}

void
verdict_queue_next(struct verdict_queue *q, uint64_t last, const struct event *next, struct event *out)
{
    const struct event *draft = &q->lines[q->first];
    memset(out, 0, sizeof *out);
    out->type = EVENT_VERDICT;
    if (next == NULL)
        out->number = last + 1;
    else if (next->number > last + q->due)
        out->number = next->number - q->due;
    else
        out->number = last; /* no number is left for it */
    out->t_us = next != NULL && next->run == draft->run ? next->t_us : draft->t_us;
    out->run = draft->run;
    out->seq = draft->seq;
    out->round = draft->round;
    out->verdict = (struct verdict_event){
        .candidate = draft->token.candidate, .accepted = draft->token.accepted, .committed = draft->token.committed};
    q->due--;
    q->first++;
}
