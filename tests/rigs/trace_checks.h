/* Writes streams of events as traces and compares them with what a reader returns. */
#pragma once

#include "tests/rigs/folders.h"
#include "tests/rigs/trace_events.h"
#include "traces/reader.h"

/* Writes the stream as a trace into folder/t and returns the path in path (256 bytes). The trace is closed cleanly, or
 * its `closed_event` is removed again. */
void write_trace(const char *folder, const struct stream *, bool closed, char path[256]);
struct trace_reader *open_trace(const char *path); /* fails the running test on an error */

/* Asserts that the trace has the stream's events up to an event, which is a round's end unless the trace was closed
 * cleanly. Returns the number of rounds. */
uint64_t assert_replays_a_beginning(const char *path, const struct stream *);
/* Asserts that the reader returns the stream's events up to number `last`. */
void assert_reads_back(struct trace_reader *, const struct stream *, uint64_t last);
/* Writes the stream as a trace, asserts that it has all events up to `last`, reads it back twice, and frees the
 * stream. */
void assert_comes_back(const char *folder, struct stream *, bool closed, uint64_t last);
