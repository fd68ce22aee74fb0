/* Writes a trace: a folder of CSV files and run.json (docs/design.md, "Trace").
 *
 * It has a thread and a cursor of its own and never holds anybody up. The lines of a round reach the file system
 * before the round's line in rounds.csv, so a process killed at any instant leaves a trace that replays up to the last
 * whole round. When a write fails or the log ran over, the trace stops with a message and the run goes on. */
#ifndef TRACES_WRITER_H
#define TRACES_WRITER_H

#include "engine/events/event.h"
#include "engine/events/run_info.h"

struct trace_writer;

/* Creates the folder (parents too). One that already holds a trace is refused. run_info is only read here. Open it
 * before the run's first event is appended, close it before the log. */
bool trace_writer_open(struct trace_writer **, const char *folder, const struct run_info *, struct event_log *,
                       struct err *);
/* No more of it than that; when it is full, that is the trouble that it has, and it is a whole one up to there. */
bool trace_writer_open_within(struct trace_writer **, const char *folder, const struct trace_bounds *,
                              const struct run_info *, struct event_log *, struct err *);
/* Why it stopped writing, or NULL while all is well. Safe from any thread; the text lives as long as the writer. */
const char *trace_writer_trouble(const struct trace_writer *);
/* Waits until all events appended so far are handed to the file system (or it stopped); drafts wait for their verdicts
 * all the same. */
void trace_writer_flush(struct trace_writer *);
/* Drains the log, marks the trace as closed cleanly in run.json, frees the writer. Nothing may be appended meanwhile.
 * False if it had stopped or that failed: err says why; ERR_CANCELLED if it was as full as its bounds let it be. */
bool trace_writer_close(struct trace_writer *, struct err *);

#endif
