/* Verdicts have no lines of their own: a draft's line says what became of it. So the writer keeps drafts until their verdicts are
 * known (struct draft_queue), and the reader keeps verdicts until it is their turn (struct verdict_queue). */
#ifndef TRACES_VERDICTS_H
#define TRACES_VERDICTS_H

#include "engine/events/event.h"

/* ---- writing: lines of a file ascend, so later tokens and the round's own line queue up after the drafts ---- */

struct draft_queue {           /* zeroed: empty */
    struct queued_line *lines; /* (max), those in use are lines[first .. n) */
    size_t first, n, max;
};

void draft_queue_free(struct draft_queue *);
/* A token or a round (no text); `ready`: nothing more is to be learnt of it. NULL, or why there is no place for it. */
const char *draft_queue_add(struct draft_queue *, const struct event *, bool ready);
void draft_queue_verdict(struct draft_queue *, const struct event *verdict);
/* A round's or a run's end settles the drafts that nobody verified: those of this round are ready; those of rounds that
 * never ended, an earlier one of the same sequence or one of an earlier run, are dropped. */
void draft_queue_end(struct draft_queue *, const struct event *end);
/* Takes out the next event whose line can be written, valid until the next call; NULL: there is none yet. */
const struct event *draft_queue_next(struct draft_queue *);

/* ---- reading: drafts of several sequences may alternate; their verdicts come a sequence after the other ---- */

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
