/* Streams of events written as traces, and compared with what a reader hands out. */
#ifndef TESTS_RIGS_TRACE_CHECKS_H
#define TESTS_RIGS_TRACE_CHECKS_H

#include "tests/rigs/folders.h"
#include "tests/rigs/trace_events.h"
#include "traces/reader.h"

/* Writes the stream as a trace into folder/t, closes it cleanly or takes `closed_event` out again; returns the path in
 * path (256 bytes). */
void write_trace(const char *folder, const struct stream *, bool closed, char path[256]);
struct trace_reader *open_trace(const char *path); /* fails the running test if that fails */

/* The trace has the stream's events up to an event: a round's end, unless it was closed cleanly. Returns how many
 * rounds that are. */
uint64_t assert_replays_a_beginning(const char *path, const struct stream *);
/* It has the stream's events up to that number. */
void assert_reads_back(struct trace_reader *, const struct stream *, uint64_t last);
/* Writes the stream as a trace, which has it all up to `last`, reads it back twice, and frees it. */
void assert_comes_back(const char *folder, struct stream *, bool closed, uint64_t last);

#endif
