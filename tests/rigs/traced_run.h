/* A run that is traced: a stream of events, the log that they are appended to, and the trace's writer. */
#pragma once

#include "tests/rigs/trace_checks.h"
#include "traces/writer.h"

struct traced_run {
    char folder[256], path[300]; /* a folder of the test's own; the trace in it */
    bool mounted;                /* a file system is mounted at folder, and must be unmounted */
    struct stream stream;
    size_t appended; /* events of the stream that are in the log */
    struct event_log *log;
    struct trace_writer *writer;
};

/* Set-up and tear-down of a test: *state is a struct traced_run with an empty stream. */
int traced_run_set_up(void **state);
int traced_run_tear_down(void **state);
/* Opens a log of at most cap bytes (0: the usual size) and the trace. Returns false if the trace cannot be opened. */
bool traced_run_open(struct traced_run *, size_t cap, struct err *);
/* Appends the stream's remaining events to the log. */
void traced_run_append(struct traced_run *);
