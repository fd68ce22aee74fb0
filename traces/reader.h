/* Reads a trace as the stream of events that it was written from. It merges the tables in the order of events and never
 * has a whole table in memory. Lines after the last complete round are dropped, unless run.json marks the trace as
 * closed. If a closed trace's tables are now longer or shorter, all events are returned, then an error. Unknown columns
 * are ignored; a missing one is an error with file and line.
 *
 * Drafts have accepted and committed unknown (-1). Their EVENT_VERDICTs follow in the gap of event numbers, at the
 * latest before the round's correction or bonus, or its end. Numbers never descend.
 *
 * A trace may contain anything, but returned events are valid: token ids are below vocab (predictions and `top` may be
 * TOKEN_NONE), layers are 1..L, exit layers and d_max at most L (-1: none), positions at most ctx, candidates below
 * VERIFY_NODES, counts at most 65535, enumerations in range, runs ascend, texts are terminated, names (policy, knob,
 * key, stop_reason) have no control characters, and policies are declared. Texts of controls and vocabulary may contain
 * any bytes, and reals are any float. */
#pragma once

#include "engine/events/event.h"
#include "engine/events/run_info.h"

struct trace_reader;

/* growing: another process may still write the trace. trace_reader_look() checks the files for new lines (at a
 * monotonic time). A round is complete when its line is; the end of a run is returned once nothing has followed it for
 * a second, or the trace is closed. trace_reader_look() fails, then and later, if the trace was replaced or
 * shortened. */
bool trace_reader_open(struct trace_reader **, const char *folder, bool growing, struct err *);
bool trace_reader_look(struct trace_reader *, uint64_t now_us, struct err *);
void trace_reader_close(struct trace_reader *);
const struct run_info *trace_reader_info(const struct trace_reader *);
struct trace_state {
    uint64_t rounds;      /* complete ones; the lines of all sequences with one number are one round */
    uint64_t duration_us; /* of all runs, one after another */
    bool closed;          /* the trace was closed */
    bool round_ended;     /* after a ROUND event: it was the last of its round */
};
struct trace_state trace_reader_state(const struct trace_reader *);
/* The time of an event on that time line. */
uint64_t trace_reader_time(const struct trace_reader *, const struct event *);
/* The next event; its texts are valid until the next call. False with err->kind == ERR_NONE at the end. */
bool trace_reader_next(struct trace_reader *, struct event *, struct err *);
/* brief: LAYER, EXPERTS and SERIES events, most of a trace, are skipped. */
bool trace_reader_rewind(struct trace_reader *, bool brief, struct err *);
