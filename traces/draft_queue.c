#include "traces/draft_queue.h"

#include <stdlib.h>
#include <string.h>

#define LINES_MOST ((size_t)1 << 16)

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
