/* Writes a trace: a folder of CSV files and run.json (docs/design.md, "Trace"), in a thread of its own, so that the run
 * never waits. The lines of a round are written before the round's line in rounds.csv. So a process killed at any
 * instant leaves a trace that replays up to its last complete round. If a write fails or the log overflows, the trace
 * stops with a message, and the run continues. */
#pragma once

#include "engine/events/event.h"
#include "engine/events/run_info.h"

struct trace_writer;

/* Creates the folder and its parents; refuses a folder that contains a trace. Reads run_info only during this call.
 * Open it before the run's first event is appended, and close it before the log. A trace that reaches its bounds (NULL:
 * it has none) is complete up to its end, and reports this as its trouble. */
bool trace_writer_open(struct trace_writer **, const char *folder, const struct trace_bounds *, const struct run_info *,
                       struct event_log *, struct err *);
/* Why it stopped; NULL: it did not. For any thread; the text is valid as long as the writer. */
const char *trace_writer_trouble(const struct trace_writer *);
/* Waits until all events so far are written, except drafts that wait for verdicts, or writing has stopped. */
void trace_writer_flush(struct trace_writer *);
/* Copies the trace as it is now into another folder (trace_copy()); between two rounds the copy is marked as closed. */
bool trace_writer_copy(struct trace_writer *, const char *to, struct err *);
/* Writes the rest of the log, marks the trace as closed in run.json, frees the writer. No events may be appended
 * meanwhile. Fails if writing had stopped or the end could not be written; ERR_CANCELLED: the trace was full. */
bool trace_writer_close(struct trace_writer *, struct err *);
