/* run.json: the facts of a run that do not change, as JSON. Paths, names and the prompt may contain any bytes and are
 * escaped as in the tables. 64-bit numbers are strings. Reals are printed so that they are read back exactly. */
#pragma once

#include "engine/events/run_info.h"
#include "traces/schema.h"

#define RUN_JSON       "run.json"
#define RUN_JSON_END   384 /* bytes that closing adds to it, at most */
#define LINES_NOT_SAID UINT64_MAX

/* Added when a trace is closed. */
struct trace_end {
    uint64_t closed_event; /* number of its last event; 0: it was not closed, or has none */
    /* Lines of each table, without the header; LINES_NOT_SAID: from older writers, or the trace lacks the table. */
    uint64_t lines[TABLES];
};

/* Prints the file's text, which the caller frees. */
bool run_json_print(const struct run_info *, char **text, struct err *);
/* Adds or replaces the end in the text of a trace; cut: the trace was full. The caller frees *closed. */
bool run_json_close(const char *text, const struct trace_end *, bool cut, char **closed, struct err *);

/* Parses and checks everything: all numbers are in range, all texts printable or escaped. `name` is for error
 * messages. On success the caller frees the members of *info with run_info_free(). */
bool run_json_parse(const char *name, const char *text, size_t len, struct run_info *info, struct trace_end *,
                    struct err *);
