/* Verdicts have no lines of their own: a draft's line says what became of it. Read back, they wait here until it is their
 * turn. Drafts of several sequences may alternate; their verdicts come a sequence after the other. */
#ifndef TRACES_VERDICT_QUEUE_H
#define TRACES_VERDICT_QUEUE_H

#include "engine/events/event.h"

struct verdict_queue {   /* zeroed: empty */
    struct event *lines; /* (max) of drafts that were handed out, in their order; lines[first .. n) wait */
    size_t first, n, max;
    size_t turn; /* so many of them are handed out next, one after the other */
};

void verdict_queue_free(struct verdict_queue *);
void verdict_queue_begin(struct verdict_queue *); /* empty again */
/* A draft whose line has a verdict. NULL, or why it can't have one. */
const char *verdict_queue_add(struct verdict_queue *, const struct event *draft);
/* Do verdicts come before the event `next`, NULL at the end? They come before whatever can only follow them, or earlier,
 * where as many numbers are missing as there are verdicts; last is the number of the last event handed out. `whose`: the
 * next event that is of a sequence, which is where numbers are missing for. */
bool verdict_queue_due(struct verdict_queue *, uint64_t last, const struct event *next, const struct event *whose);
/* The verdict whose turn it is; there must be one. */
void verdict_queue_next(struct verdict_queue *, uint64_t last, const struct event *next, struct event *out);

#endif
