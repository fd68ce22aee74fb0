/* Two saved runs of one prompt beside each other, as one stream of events: that of a run under two settings
 * (engine/session/versus.c), whose sequences 0 and 1 they are. In step by emitted token, a round of one at a time, the turn is that of
 * the one that has emitted fewer; rounds are numbered in this order. The time is that of both together: each event takes as long as
 * it took in its own run. What a person did to the screens of those runs (pauses, breakpoints) is left out.
 *
 * What a reader promises (reader.h) holds; numbers ascend. */
#ifndef TRACES_TRACE_PAIR_H
#define TRACES_TRACE_PAIR_H

#include "traces/saved_run.h"

struct trace_pair;

/* ERR_USAGE with a line: the runs are of different prompts or models, which can't be in step (specscope diff compares them all
 * the same); or they declare a policy that both ran under differently, being of different versions. Folders are copied. */
bool trace_pair_open(struct trace_pair **, const struct saved_choice choice[2], struct err *);
void trace_pair_close(struct trace_pair *); /* may be NULL */
/* Of sequence 0; its `second` is sequence 1's. */
const struct run_info *trace_pair_info(const struct trace_pair *);
uint64_t trace_pair_rounds(const struct trace_pair *); /* of both together */
uint64_t trace_pair_duration_us(const struct trace_pair *);
/* The next event; its texts live until the next call. False with err->kind == ERR_NONE at the end. */
bool trace_pair_next(struct trace_pair *, struct event *, struct err *);
bool trace_pair_rewind(struct trace_pair *, bool brief, struct err *); /* brief: as trace_reader_rewind_brief() */

#endif
