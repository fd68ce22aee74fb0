/* run.json: what stays the same from a run's start to its end, as JSON. Strings that come from outside (paths, names,
 * the prompt) may hold any bytes and are escaped as in the tables; 64-bit numbers are strings; reals are printed so that
 * they read back exactly. */
#ifndef TRACES_RUN_JSON_H
#define TRACES_RUN_JSON_H

#include "engine/events/run_info.h"
#include "traces/schema.h"

#define RUN_JSON       "run.json"
#define RUN_JSON_END   384 /* bytes that closing adds to it, at most */
#define LINES_NOT_SAID UINT64_MAX

/* What a trace says of itself when it is closed. */
struct trace_end {
    uint64_t closed_event; /* number of its last event; 0: it wasn't closed, or has none */
    /* Of each table, its header aside; LINES_NOT_SAID: by older writers, and of tables that it does without. */
    uint64_t lines[TABLES];
};

/* The file's text, memory of the caller. */
bool run_json_print(const struct run_info *, char **text, struct err *);
/* The same text for a trace that was closed cleanly: with its end, in place of one that it had; `cut`: because it was full. Memory of
 * the caller. */
bool run_json_close(const char *text, const struct trace_end *, bool cut, char **closed, struct err *);
extern const char *const trace_layer_names[TRACE_LAYERS_OFF + 1]; /* "all", "some", "off" */

/* Everything is checked: what comes out can be indexed, counted and printed without a second look. `name` is for error
 * lines. On success the caller frees what *info owns (run_info_free). */
bool run_json_parse(const char *name, const char *text, size_t len, struct run_info *info, struct trace_end *,
                    struct err *);

extern const char *const knob_kind_names[KNOB_CHOICE + 1]; /* "real", "integer", "choice" */

#endif
