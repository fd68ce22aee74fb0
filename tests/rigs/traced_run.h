/* A run that is being traced: a stream of events, the log they are appended to, the trace's writer. */
#ifndef TESTS_RIGS_TRACED_RUN_H
#define TESTS_RIGS_TRACED_RUN_H

#include "tests/rigs/trace_checks.h"
#include "traces/writer.h"

struct traced_run {
    char folder[256], path[300]; /* a folder of the test's own; the trace in it */
    bool mounted;                /* a file system at folder, to be unmounted */
    struct stream stream;
    size_t appended; /* events of the stream that are in the log */
    struct event_log *log;
    struct trace_writer *writer;
};

/* A test's set-up and tear-down: *state is a struct traced_run with an empty stream. */
int traced_run_set_up(void **state);
int traced_run_tear_down(void **state);
/* Opens a log of at most cap bytes (0: the usual), and the trace; false: the trace can't be opened. */
bool traced_run_open(struct traced_run *, size_t cap, struct err *);
/* Appends to the log what the stream has more. */
void traced_run_append(struct traced_run *);

#endif
