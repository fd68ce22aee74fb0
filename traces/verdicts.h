/* Verdicts have no lines of their own, because a draft's line contains its verdict. So the writer keeps drafts until
 * their verdicts are known (struct draft_queue), and the reader keeps verdicts until they are due (struct
 * verdict_queue). */
#pragma once

#include "engine/events/event.h"

/* ---- writing: lines of a file ascend, so later tokens and the round's own line queue up after the drafts ---- */

struct draft_queue {           /* zeroed: empty */
    struct queued_line *lines; /* (max), those in use are lines[first .. n) */
    size_t first, n, max;
};

void draft_queue_free(struct draft_queue *);
/* Adds a token or a round (no text); ready: its line is complete. Returns NULL, or why it failed. */
const char *draft_queue_add(struct draft_queue *, const struct event *, bool ready);
void draft_queue_verdict(struct draft_queue *, const struct event *verdict);
/* At the end of a round or a run, unverified drafts of this round become ready, and drafts of earlier rounds that never
 * ended are dropped. */
void draft_queue_end(struct draft_queue *, const struct event *end);
/* Removes and returns the next event whose line is complete, valid until the next call; NULL: none. */
const struct event *draft_queue_next(struct draft_queue *);

/* ---- reading: drafts of several sequences may alternate; their verdicts come a sequence after the other ---- */

struct verdict_queue {   /* zeroed: empty */
    struct event *lines; /* (max) verdicts of returned drafts, in their order; lines[first .. n) wait */
    size_t first, n, max;
    size_t due; /* number of verdicts that are due */
};

void verdict_queue_free(struct verdict_queue *);
void verdict_queue_begin(struct verdict_queue *); /* empties it */
/* Adds the verdict of a draft's line. Returns NULL, or why it is impossible. */
const char *verdict_queue_add(struct verdict_queue *, const struct event *draft);
/* True if verdicts come before the event `next` (NULL: the end): before any event that must follow them, or earlier,
 * if as many numbers are missing as there are verdicts. last: number of the last returned event; whose: the next event
 * that belongs to a sequence (not VOCAB or CONTROL), or NULL. */
bool verdict_queue_due(struct verdict_queue *, uint64_t last, const struct event *next, const struct event *whose);
/* Returns the verdict that is due, which must exist. */
void verdict_queue_next(struct verdict_queue *, uint64_t last, const struct event *next, struct event *out);
