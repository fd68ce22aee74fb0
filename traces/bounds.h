/* How much of a run a trace takes: what is left out of it, and where it ends when it is full. It ends behind a whole round, so
 * the writer marks how far its lines had come there. */
#ifndef TRACES_BOUNDS_H
#define TRACES_BOUNDS_H

#include "engine/events/run_info.h"
#include "traces/table_out.h"

struct bounds_mark { /* behind some event: */
    uint64_t event, rounds;
    size_t used[TABLES];    /* of the lines in memory; 0 where they were written since */
    uint64_t lines[TABLES]; /* of each table up to there */
};

struct bounds {
    struct trace_bounds of;
    uint64_t bytes; /* of all files so far, what is in memory counted */
    struct bounds_mark last,
        whole;           /* behind the last ROUND line; behind the last round that all sequences have ended */
    uint32_t run, round; /* of the last ROUND line */
};

bool bounds_leave_out(const struct bounds *, const struct event *);
/* Before the event's line: does it begin what comes after a whole round? */
void bounds_before(struct bounds *, const struct event *, const struct table_out[TABLES], uint64_t rounds);
/* Behind it, a line of so many bytes: false, there is no room for it. */
bool bounds_behind(struct bounds *, const struct event *, size_t bytes, const struct table_out[TABLES],
                   uint64_t rounds);
void bounds_written(struct bounds *); /* what was in memory is in the files */

#endif
