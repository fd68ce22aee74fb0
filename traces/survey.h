/* How far a trace is whole, and how long each of its runs took: read from rounds.csv and controls.csv alone, ahead of whoever
 * reads the events, and again when a writer may have got further. Every run begins with a control, or a round, and ends with
 * one; runs come one after another, and so they stand on the time line. */
#ifndef TRACES_SURVEY_H
#define TRACES_SURVEY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "engine/base/err.h"
#include "traces/table_file.h"

struct survey {
    struct table_file rounds, controls;
    uint64_t last_event; /* nothing beyond may be handed out: what follows the last whole round, or the trace's end */
    uint64_t n_rounds;   /* all sequences' lines under a number are one */
    uint64_t duration_us;
    /* survey.c's own */
    struct event last_round;
    uint64_t candidate; /* a round that other sequences may still have lines of ends here */
    struct span *spans; /* (n_spans) by ascending run */
    size_t n_spans, max_spans;
    uint32_t run;
};

bool survey_open(struct survey *, int folder_fd, const char *folder, struct err *);
void survey_close(struct survey *);
/* Reads on. `closed`: the last event of a trace that was closed, 0: one that may grow, or was never closed; `growing`: then
 * a round counts when no other sequence can have a line of it any more. */
bool survey_go_on(struct survey *, const struct run_info *, uint64_t closed, bool growing, struct err *);
/* What lies behind the last whole round may be seen as well, up to the last `end` of a run. */
bool survey_take_end(struct survey *, const struct run_info *, struct err *);
/* Where an event is on the time line. */
uint64_t survey_time(const struct survey *, const struct event *);

/* Of one round, of different sequences. */
bool survey_same_round(const struct event *before, const struct event *);

/* Of a trace that another process is writing, what its files' facts say: did it grow, is it still the same one? */
struct growth {
    dev_t device;
    ino_t rounds; /* which file rounds.csv was */
    struct timespec written;
    off_t bytes, run_bytes; /* of rounds.csv and controls.csv; of run.json, and when and which one it was: */
    ino_t run;
    uint64_t still_since; /* when it was last seen to grow */
};

void growth_begin(struct growth *, int folder_fd, uint64_t now_us);
/* changed: run.json is another file than last time, or longer. False when rounds.csv has been put in another's place, or
 * was cut: what was read of it is none of it any more. */
bool growth_look(struct growth *, int folder_fd, const char *folder, uint64_t now_us, bool *changed, struct err *);

#endif
