/* Where a training is, in the file OUT.state beside its result OUT: a text that says what it was begun with, a checksum, then all that
 * it changes as it goes, as whoever trains has put it there. The file is put into place whole, so after an interruption of whatever
 * kind the same command goes on with the same numbers from where it was put last. */
#ifndef CLI_TRAIN_TRAIN_STATE_H
#define CLI_TRAIN_TRAIN_STATE_H

#include <stdint.h>

#include "cli/train/train_settings.h"
#include "engine/base/slice.h"

struct train_state {
    char *path;
    const struct train_settings *settings; /* the caller's */
    int fd;                                /* that is read; -1: none */
    uint64_t left;                         /* bytes of it that were not taken yet */
    uint64_t due_us;                       /* when it is to be put again, by the clock; UINT64_MAX: never */
};

/* Whether there is one to go on with says train_state_there(). Refused in one line: one that was begun with other settings, or that is
 * damaged, or something else. The settings must outlive it. */
bool train_state_open(struct train_state *, const char *out, const struct train_settings *, struct err *);
bool train_state_there(const struct train_state *);
/* The next n bytes. False: it has no more. */
bool train_state_take(struct train_state *, void *to, size_t n, struct err *);
/* All was taken; false: something is left. */
bool train_state_taken(struct train_state *, struct err *);

/* All n pieces, in place of what was there; on the disk when this returns. Where that can't be (the disk is full) it is said, once, and
 * training goes on without. */
void train_state_put(struct train_state *, const struct slice *pieces, size_t n);
/* So long after the last time that putting takes a fiftieth of the time. */
bool train_state_due(const struct train_state *);

/* done: nothing is left to go on with, the file is removed. Also when it is all zero or could not be opened. */
void train_state_close(struct train_state *, bool done);

#endif
