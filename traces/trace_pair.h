/* Merges two saved runs of one prompt into one stream of events: the stream of a run under two settings
 * (engine/session/control_point.c), with the runs as sequences 0 and 1. They advance in step by emitted tokens, one
 * round at a time: the sequence that has emitted fewer tokens is next. Rounds are numbered in this order. Each event
 * takes as long as it took in its own run, so the stream's time is the sum of both. Pauses, breakpoints and other
 * controls of the two runs' screens are omitted.
 *
 * The stream satisfies the guarantees of reader.h; event numbers ascend. */
#pragma once

#include "traces/reader.h"

/* One sequence of one run of a trace. */
struct saved_choice {
    const char *folder;
    uint32_t run; /* 0: the last one in which the sequence has a round */
    uint32_t seq;
};

struct trace_pair;

/* Copies the folders. ERR_USAGE: the runs have different prompts or models, or they began under a policy that their
 * versions declare differently. */
bool trace_pair_open(struct trace_pair **, const struct saved_choice choice[2], struct err *);
void trace_pair_close(struct trace_pair *); /* may be NULL */
/* Returns the description of sequence 0; its `second` is that of sequence 1. */
const struct run_info *trace_pair_info(const struct trace_pair *);
uint64_t trace_pair_rounds(const struct trace_pair *); /* of both together */
uint64_t trace_pair_duration_us(const struct trace_pair *);
/* The next event; its texts are valid until the next call. False with err->kind == ERR_NONE at the end. */
bool trace_pair_next(struct trace_pair *, struct event *, struct err *);
bool trace_pair_rewind(struct trace_pair *, bool brief, struct err *); /* brief: as trace_reader_rewind() */
