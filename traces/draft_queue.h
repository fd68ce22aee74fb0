/* Lines that can't be written yet. A draft's line also says what became of it, so drafts wait for their verdicts; as
 * the lines of a file ascend, later tokens and the round's own line queue up behind them. */
#ifndef TRACES_DRAFT_QUEUE_H
#define TRACES_DRAFT_QUEUE_H

#include "engine/events/event.h"

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

#endif
