/* One sequence of one run of a trace: what stood when it began, how long it is, and its events, those of other runs and
 * sequences left out. What a trace promises (reader.h) holds for it, too. */
#ifndef TRACES_SAVED_RUN_H
#define TRACES_SAVED_RUN_H

#include "engine/events/settings.h"
#include "traces/reader.h"

struct saved_choice {
    const char *folder;
    uint32_t run; /* 0: the last in which the sequence has a round */
    uint32_t seq;
};

struct saved_start { /* what is in force when a run begins */
    struct settings settings;
    char *prompt; /* owned */
    char baseline[32],
        baseline_se[32]; /* as they were told of this prompt, with the machine at its full speed; "": not */
};

struct saved_run {
    const char *folder; /* the caller's */
    struct trace_reader *reader;
    const struct run_info *info; /* the reader's */
    uint32_t run, seq;
    struct saved_start begin;
    bool versus;          /* the run has two settings: this one's is told by `seq` */
    uint64_t prompt_hash; /* of its tokens */
    uint32_t begin_round; /* that its prompt was read in: 0, of a sequence that joined a batch later more */
    uint64_t begin_us;    /* of its first event; */
    uint64_t duration_us; /* and from there to its last one */
    uint64_t rounds;
    bool *used; /* (n_policies) it ran under that policy; owned */

    bool left; /* it was told that the sequence left, of what was handed out so far */
};

/* Reads it through once, but for what layers and policies said. ERR_USAGE: there is no such run, no such sequence.
 * saved_run_close() also after a failure. */
bool saved_run_open(struct saved_run *, const struct saved_choice *, struct err *);
void saved_run_close(struct saved_run *);
bool saved_run_rewind(struct saved_run *, bool brief, struct err *); /* brief: without what layers and policies said */
/* The next of its events: VOCAB of all runs up to its own, at time 0; its TOKEN, LAYER, SERIES, VERDICT, ROUND; of controls those
 * that are about it, `end` among them, `run`, `prompt`, `versus` and what a person did to the screen's run (paused, broke, looked
 * out) not. t_us is from its beginning. False with err->kind == ERR_NONE at the end. */
bool saved_run_next(struct saved_run *, struct event *, struct err *);

#endif
